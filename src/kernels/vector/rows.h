// Moving whole rows and blocks: gathering, summing rows that share a number, copying between strides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::kernels {

// y[i] = table[ids[i]]; table: [?, row_size], y: [count, row_size]. Every id must name a row of the table.
void gather_rows(const float* table, int64_t row_size, std::span<const int32_t> ids, float* y);

// Which positions share an id: rows ascending, each once; positions of rows[g] are
// order[starts[g] .. starts[g + 1]), in their own order.
struct RowGroups {
  std::vector<int32_t> rows;
  std::vector<int32_t> order;
  std::vector<int32_t> starts;
};
// Ids are not negative, except those equal to `skipped`, which join no group.
RowGroups group_rows(std::span<const int32_t> ids, int32_t skipped = -1);

// sums[g] = sum of values[p] over the positions p of group g, in order; sums: [groups, row_size].
void sum_groups(const RowGroups& groups, const float* values, int64_t row_size, float* sums);

// table[ids[i]] += values[i], equal ids in order of i: the same bits for any number of threads.
void scatter_add_rows(const float* values, int64_t row_size, std::span<const int32_t> ids, float* table);

// Copies an array between any two strided layouts: permutes, slices, joins.
struct StridedCopy {
  std::span<const int64_t> sizes;
  const float* from = nullptr;
  const int64_t* from_strides = nullptr;  // one per size, in elements
  float* to = nullptr;
  const int64_t* to_strides = nullptr;
};
void copy_strided(const StridedCopy& copy);

}  // namespace fovea::kernels
