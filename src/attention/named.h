// Attention patterns known by the name of a paper: each is one line of the algebra.
#pragma once

#include <vector>

#include "attention/pattern.h"

namespace fovea {

// Longformer (Beltagy et al. 2020): each token sees `window` tokens, half on either side, `dilation` apart;
// the global tokens see and are seen by all.
struct Longformer {
  int64_t window = 512;  // even
  int64_t dilation = 1;
  std::vector<int64_t> global = {0};
};
Pattern longformer(const Longformer& options = {});

// BigBird (Zaheer et al. 2020): blocks of neighbours, random blocks, global tokens. ITC makes `global` of the
// existing tokens global; ETC has the model put `added` tokens in front and makes those global: positions
// below `added` are theirs, and the text follows. One of the two, or both.
struct BigBird {
  int64_t block = 64;
  int64_t window = 3;  // blocks, odd: the own one and its neighbours
  int64_t random = 3;  // blocks
  std::vector<int64_t> global = {};
  int64_t added = 0;
  int64_t seed = 0;
};
Pattern bigbird(const BigBird& options);

// Sparse Transformer (Child et al. 2019), strided: the last `stride` tokens and every stride-th before them.
// The two halves are one head's view when merged, else those of even and odd heads: the quicker way, since
// each half alone compiles into dense tiles.
Pattern sparse_strided(int64_t stride, bool merged = false);

// Sparse Transformer, fixed: the own block of `stride` up to the token, and the last `summary` tokens of each
// block.
Pattern sparse_fixed(int64_t stride, int64_t summary);

// Sliding window with sinks (Xiao et al. 2023): the last `window` tokens and the first `sinks`, never ahead.
Pattern streaming(int64_t window, int64_t sinks);

// Luong's local-m (2015): `reach` keys on either side of the query's own index in a source of another length.
Pattern local_m(int64_t reach);

}  // namespace fovea
