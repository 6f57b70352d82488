// From a pattern to the block plan that kernels read. The cost is linear in the plan's size, except for
// predicates, which are evaluated for every pair that the other patterns leave open.
//
// Rows are cut where a pattern's behaviour changes (documents, blocks, global tokens), so that a tile's rows
// agree about as much as possible. With a dilation or a stride rows are also taken in residue classes, inside
// which they are plain windows. Each row's visible keys are a few intervals; a tile's segments are their
// union, cut into what every row sees (FULL), runs of which each row sees one stretch (INTERVAL) and the rest
// (BITS). Short runs are gathered into one segment.
#pragma once

#include <cstdint>
#include <memory>

#include "attention/key_mask.h"
#include "attention/pattern.h"
#include "kernels/attention/plan.h"

namespace fovea {

struct PlanSizes {
  int64_t queries = 0, keys = 0;
  int64_t batch = 1, heads = 1;
  int64_t tile_rows = 0;  // rows of a tile at most; 0 chooses by how many keys a row may see
  friend bool operator==(const PlanSizes&, const PlanSizes&) = default;
};

// Throws Error when the pattern does not fit the sizes: lengths of another batch, documents of another total,
// heads(...) that do not divide the heads, a layout of too few blocks. mask: null, or further limits what the
// pattern allows.
kernels::AttentionPlan compile(const Pattern& pattern, const PlanSizes& sizes, const KeyMask* mask = nullptr);

// The same plan, kept for the next call with equal pattern and sizes: the layers of a model ask for the same
// one. The last few are kept; predicates, equal only by name, are compiled afresh.
std::shared_ptr<const kernels::AttentionPlan> compiled(const Pattern& pattern, const PlanSizes& sizes);

// Pairs (query, key) that the plan visits, over the whole batch and all heads: the useful work.
int64_t visited_pairs(const kernels::AttentionPlan& plan, int64_t batch, int64_t heads);

}  // namespace fovea
