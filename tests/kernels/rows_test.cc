#include "kernels/vector/rows.h"

#include <vector>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

std::vector<int32_t> random_ids(int64_t count, int64_t bound) {
  std::vector<int32_t> ids(count);
  Rng rng(3);
  for (int32_t& id : ids) id = static_cast<int32_t>(rng.below(bound));
  return ids;
}

TEST(GatherRows, CopiesTheNamedRows) {
  for (const int64_t row_size : testing::odd_sizes()) {
    const Guarded table = Guarded::random(11 * row_size, 1);
    const std::vector<int32_t> ids = random_ids(130, 11);
    Guarded y(130 * row_size);
    gather_rows(table.data(), row_size, ids, y.data());
    for (int64_t i = 0; i < 130; ++i)
      for (int64_t j = 0; j < row_size; ++j) ASSERT_EQ(y[i * row_size + j], table[ids[i] * row_size + j]);
    EXPECT_TRUE(y.guards_intact());
  }
}

TEST(GroupRows, SortsIdsAndKeepsTheOrderOfPositions) {
  const std::vector<int32_t> ids{70000, 3, -1, 3, 0, 70000, 300, 3};
  const RowGroups groups = group_rows(ids);
  EXPECT_EQ(groups.rows, (std::vector<int32_t>{0, 3, 300, 70000}));
  EXPECT_EQ(groups.order, (std::vector<int32_t>{4, 1, 3, 7, 6, 0, 5}));
  EXPECT_EQ(groups.starts, (std::vector<int32_t>{0, 1, 4, 5, 7}));
}

TEST(GroupRows, OfNothingIsEmpty) {
  const RowGroups groups = group_rows({});
  EXPECT_TRUE(groups.rows.empty());
  EXPECT_EQ(groups.starts, (std::vector<int32_t>{0}));
}

TEST(SumGroups, AddsRowsThatShareAnId) {
  for (const int64_t row_size : testing::odd_sizes()) {
    const std::vector<int32_t> ids = random_ids(130, 11);
    const Guarded values = Guarded::random(130 * row_size, 1);
    const RowGroups groups = group_rows(ids);
    Guarded sums(static_cast<int64_t>(groups.rows.size()) * row_size), wanted(sums.size());
    sum_groups(groups, values.data(), row_size, sums.data());
    for (int64_t i = 0; i < 130; ++i)
      for (int64_t j = 0; j < row_size; ++j) wanted[ids[i] * row_size + j] += values[i * row_size + j];
    testing::expect_close(sums, wanted, 1e-6f, "row size " + std::to_string(row_size));
  }
}

TEST(ScatterAddRows, DoesNotDependOnThreads) {
  const std::vector<int32_t> ids = random_ids(1000, 50);
  const Guarded values = Guarded::random(1000 * 65, 1), table = Guarded::random(50 * 65, 2);
  Guarded one = table, three = table, wanted = table;
  set_num_threads(1);
  scatter_add_rows(values.data(), 65, ids, one.data());
  set_num_threads(3);
  scatter_add_rows(values.data(), 65, ids, three.data());
  set_num_threads(0);
  for (int64_t i = 0; i < 1000; ++i)
    for (int64_t j = 0; j < 65; ++j) wanted[ids[i] * 65 + j] += values[i * 65 + j];
  testing::expect_same_bits(three, one, "threads");
  testing::expect_close(one, wanted, 1e-6f, "sums");
}

// Copies `from`, contiguous over sizes, with its dimensions put in the order of `axes`.
void expect_permuted(const std::vector<int64_t>& sizes, const std::vector<int>& axes) {
  int64_t count = 1;
  std::vector<int64_t> strides(sizes.size()), out_sizes(sizes.size()), from(sizes.size()), to(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; count *= sizes[i]) strides[i] = count;
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= out_sizes[i]) {
    out_sizes[i] = sizes[axes[i]];
    from[i] = strides[axes[i]];
    to[i] = stride;
  }
  const Guarded x = Guarded::random(count, 1);
  Guarded got(count), wanted(count);
  copy_strided({out_sizes, x.data(), from.data(), got.data(), to.data()});
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, place = 0;
    for (size_t k = out_sizes.size(); k-- > 0; rest /= out_sizes[k]) place += rest % out_sizes[k] * from[k];
    wanted[i] = x[place];
  }
  testing::expect_same_bits(got, wanted, "permute");
  EXPECT_TRUE(got.guards_intact());
}

TEST(CopyStrided, PermutesAnyWay) {
  expect_permuted({}, {});
  expect_permuted({130}, {0});
  expect_permuted({37, 65}, {1, 0});
  expect_permuted({1000, 37}, {1, 0});
  expect_permuted({3, 5, 7}, {2, 1, 0});
  expect_permuted({3, 5, 7}, {1, 2, 0});
  expect_permuted({2, 37, 4, 16}, {0, 2, 1, 3});
  expect_permuted({2, 37, 4, 16}, {0, 2, 3, 1});
  expect_permuted({2, 0, 4}, {2, 0, 1});
  expect_permuted({70, 33, 40}, {2, 0, 1});
}

TEST(CopyStrided, WritesSlicesInPlace) {
  const Guarded x = Guarded::random(5 * 7, 1);
  Guarded y(5 * 20);
  const int64_t from[2] = {7, 1}, to[2] = {20, 1}, sizes[2] = {5, 7};
  copy_strided({sizes, x.data(), from, y.data() + 4, to});
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 20; ++j) EXPECT_EQ(y[i * 20 + j], j >= 4 && j < 11 ? x[i * 7 + j - 4] : 0.0f);
}

}  // namespace
}  // namespace fovea::kernels
