// Token ids into vectors, with what a Transformer does to them at once: scaled, and positions added.
#pragma once

#include <span>

#include "autograd/var.h"

namespace fovea {

// y[i] = scale * table[ids[i]] + added[i]. table: [vocabulary, d], added: [ids, d] or undefined -> [ids, d].
// The table's gradient is row-sparse. Throws Error when an id is not a row of the table.
Var embed_tokens(const Var& table, std::span<const int32_t> ids, float scale = 1, const Var& added = {});

}  // namespace fovea
