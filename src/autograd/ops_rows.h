// Choosing rows and elements by number.
#pragma once

#include <span>

#include "autograd/var.h"

namespace fovea {

// table: [n, d] -> [ids, d]. The table's gradient is row-sparse. Ids equal to `padding` give zeros and no
// gradient.
Var embedding(const Var& table, std::span<const int32_t> ids, int32_t padding = -1);

// x: [n, ...] -> [ids, ...]; the gradient is dense.
Var gather(const Var& x, std::span<const int32_t> ids);

// x: [rows, n] -> [rows]: element columns[i] of row i.
Var pick(const Var& x, std::span<const int32_t> columns);

}  // namespace fovea
