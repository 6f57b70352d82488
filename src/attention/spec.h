// Attention as four independent choices: the score of a query and a key, terms added to it, which keys a query may
// attend to, and how scores become weights.
//
//   AttentionSpec spec{.pattern = causal() & window(256, 0), .selection = soft({.dropout = 0.1f})};
//   to_string(spec)                              "scaled_dot / causal & window(256,0) / soft(0.1)"
//   parse_spec("cosine(0.1) + alibi / causal")   every axis has a default: scaled_dot / full / soft
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>

#include "attention/pattern.h"
#include "kernels/attention/row_attention.h"

namespace fovea {

enum class ScoreKind {
  dot,         // q . k
  scaled_dot,  // q . k / gamma, gamma = sqrt(d) unless given
  cosine,      // cos(q, k) / tau
  bilinear,    // q^T W k
  additive,    // v^T tanh(W k + U q + b)
  concat,      // Luong's concat: v^T tanh(W [k; q] + b), one matrix for both
  location,    // Luong's location: q . W[place of the key], whatever the key holds
};

struct Score {
  ScoreKind kind = ScoreKind::scaled_dot;
  float number = 0;  // gamma or tau; 0 asks for the default (sqrt(d), 1)
  friend bool operator==(const Score&, const Score&) = default;
};

Score dot();
Score scaled_dot();
Score scaled_dot(float gamma);  // throws unless gamma > 0
Score cosine(float tau = 1);    // throws unless tau > 0
Score bilinear();
Score additive();
Score concat();
Score location();

// T5's relative positions: half of the buckets (all, when one-sided) are single distances, the rest grow
// logarithmically up to max_distance. The learned table is [buckets, H].
struct RelativeBuckets {
  int64_t buckets = 0;  // 0: no such term
  int64_t max_distance = 128;
  bool two_sided = true;
  friend bool operator==(const RelativeBuckets&, const RelativeBuckets&) = default;
};

// The bucket of a key at `distance` = key - position.
int64_t relative_bucket(const RelativeBuckets& relative, int64_t distance);

// What is done to a score x, in this order. Each is absent by default.
struct Terms {
  float soft_cap = 0;  // c tanh(x / c)
  // x - slope_h |position - key|; slopes 2^(-8 (h + 1) / H) unless given as a parameter [H]; trained
  bool alibi = false;
  bool bias = false;              // x + bias, broadcastable to [B, H, Nq, Nk]; trained
  RelativeBuckets relative = {};  // x + table[bucket(key - position)][h]; trained
  // sigma > 0: Luong's local-p. Weights are multiplied by exp(-(key - p)^2 / (2 sigma^2)) after the selection
  // and not normalised again; p [B, H, Nq] is the predicted position among the keys; trained
  float gaussian = 0;
  bool sink = false;  // one more logit for each head in the softmax's sum, carrying no value; trained
  friend bool operator==(const Terms&, const Terms&) = default;
};

// soft, hard, gumbel, argmax, top_k, sparsemax, sigmoid, identity; the enum explains each.
using kernels::SelectionKind;

// Dropout and the draws of hard and gumbel act in training only; see AttentionRequest::training.
struct Selection {
  SelectionKind kind = SelectionKind::soft;
  float dropout = 0;              // soft
  float tau = 1;                  // gumbel
  bool straight_through = false;  // gumbel
  int64_t k = 0;                  // top_k
  friend bool operator==(const Selection&, const Selection&) = default;
};

struct SoftOptions {
  float dropout = 0;
};
struct GumbelOptions {
  float tau = 1;
  bool straight_through = false;
};

Selection soft(SoftOptions options = {});  // throws unless 0 <= dropout < 1
Selection hard();
Selection gumbel(GumbelOptions options = {});  // throws unless tau > 0
Selection argmax();
Selection top_k(int64_t k);  // throws unless k >= 1
Selection sparsemax();
Selection sigmoid_selection();
Selection identity_selection();

// Whether it draws random numbers in training: dropout, hard and gumbel.
bool draws(const Selection& selection);

struct AttentionSpec {
  Score score = scaled_dot();
  Terms terms = {};
  Pattern pattern = full();
  Selection selection = soft();
  friend bool operator==(const AttentionSpec&, const AttentionSpec&) = default;
};

// Throws Error when a number makes no sense or two choices do not go together (a sink without a softmax).
void check(const AttentionSpec& spec);

std::string to_string(const AttentionSpec& spec);
std::ostream& operator<<(std::ostream& out, const AttentionSpec& spec);

// Functions that predicate(name) may name in a text.
using PredicateTable =
    std::map<std::string, std::function<bool(int64_t head, int64_t query, int64_t key)>, std::less<>>;

// Reads what to_string prints, and the freer forms of the grammar in docs/attention.md. Throws Error that
// points at the column: `attention: unknown pattern "widow" at column 14: did you mean "window"?`
AttentionSpec parse_spec(std::string_view text, const PredicateTable& predicates = {});
Selection parse_selection(std::string_view text);  // "hard", "gumbel(0.5,straight_through)"
Pattern parse_pattern(std::string_view text, const PredicateTable& predicates = {});

}  // namespace fovea
