// Choosing rows and elements by number.
#pragma once

#include <span>

#include "autograd/var.h"

namespace fovea {

struct EmbeddingOptions {
  int32_t padding = -1;  // this id gives zeros, and no gradient to the table
  float scale = 1;
  Var added = {};  // [ids, d], such as positions
};
// y[i] = scale * table[ids[i]] + added[i]. table: [n, d] -> [ids, d]. The table's gradient is row-sparse.
Var embedding(const Var& table, std::span<const int32_t> ids, const EmbeddingOptions& options = {});

// x: [n, ...] -> [ids, ...]; the gradient is dense.
Var gather(const Var& x, std::span<const int32_t> ids);

// x: [rows, n] -> [rows]: element columns[i] of row i.
Var pick(const Var& x, std::span<const int32_t> columns);

}  // namespace fovea
