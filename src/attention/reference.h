// Attention by its definition, in double precision and written for clarity: the reference that every faster
// path is compared with.
//
// One query row at a time: score every key it may see, add the terms, select, weigh, sum. The gradient walks
// the same five steps back. Everything is stored that is worth looking at, N x N weights included.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/spec.h"

namespace fovea::reference {

using Array = std::vector<double>;  // row-major

// Numbers that meet the spec. An array that the spec does not ask for stays empty.
struct Inputs {
  int64_t batch = 1, heads = 1, kv_heads = 1;  // query head h meets key head h / (heads / kv_heads)
  int64_t queries = 0, keys = 0;
  int64_t d = 0, dk = 0, dv = 0;  // d: width of q; dk: of k, another only under bilinear, additive and concat
  int64_t hidden = 0;             // additive and concat
  Array q = {};                   // [B, H, Nq, d]
  Array k = {};                   // [B, Hk, Nk, dk]
  Array v = {};                   // [B, Hk, Nk, dv]
  // bilinear [d, dk]; additive [hidden, dk]; concat [hidden, dk + d], key first; location [places, d]
  Array w = {};
  Array u = {};             // additive [hidden, d]
  Array b = {};             // additive, concat [hidden]; empty is 0
  Array score_vector = {};  // additive, concat [hidden]
  Array bias = {};          // [B, H, Nq, Nk]
  Array slopes = {};        // alibi [H]
  Array table = {};         // relative [buckets, H]
  Array centre = {};        // gaussian [B, H, Nq]
  Array sink = {};          // [H]
  uint64_t seed = 0;        // dropout, hard, gumbel
};

struct Results {
  Array out = {};                    // [B, H, Nq, dv]
  Array lse = {};                    // [B, H, Nq]: of all visible scores and the sink
  Array weights = {};                // [B, H, Nq, Nk], as they met v
  std::vector<int64_t> chosen = {};  // [B, H, Nq]: hard and argmax; -1 where nothing is visible
  Array log_probability = {};        // [B, H, Nq]: hard, of the chosen key; 0 where nothing is visible
  Array entropy = {};                // [B, H, Nq]: hard, of the softmax
};

Results forward(const AttentionSpec& spec, const Inputs& in);

// What the loss thinks of each result; an empty array is 0.
struct ResultGradients {
  Array out, log_probability = {}, entropy = {};
};

// The gradient of every input, in an Inputs of the same shapes. Under hard, scores learn from log_probability
// and entropy alone (a draw has no derivative); under argmax they learn nothing; v always learns from out.
Inputs backward(const AttentionSpec& spec, const Inputs& in, const ResultGradients& d);

// ALiBi's slopes where none are given: 2^(-8 (h + 1) / H).
Array default_slopes(int64_t heads);

}  // namespace fovea::reference
