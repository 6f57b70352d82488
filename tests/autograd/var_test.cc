#include "autograd/var.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "base/error.h"

namespace fovea {
namespace {

using testing::ElementsAre;

Var leaf(std::initializer_list<float> values, const Shape& shape) {
  return Var(Tensor::from(values, shape), true);
}

TEST(Var, ProductHasTheTextbookGradient) {
  const Var a = leaf({1, 2, 3, 4}, {2, 2}), b = leaf({5, 6, 7, 8}, {2, 2});
  matmul(a, b).backward(Tensor::full({2, 2}, 1));
  EXPECT_THAT(a.grad().to_vector(), ElementsAre(11, 15, 11, 15));
  EXPECT_THAT(b.grad().to_vector(), ElementsAre(4, 4, 6, 6));
}

TEST(Var, GradientsOfSharedParentsAdd) {
  const Var a = leaf({1, 2}, {2, 1});
  const Var parts[] = {a, a, transpose(transpose(a, 0, 1), 0, 1)};
  concat(parts, 1).backward(Tensor::from({1, 10, 100, 2, 20, 200}, {2, 3}));
  EXPECT_THAT(a.grad().to_vector(), ElementsAre(111, 222));
}

TEST(Var, SplitCollectsAllPartsAndZeroesMissingOnes) {
  const Var x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  const int64_t counts[] = {1, 2};
  split(x, 1, counts)[1].backward(Tensor::from({1, 2, 3, 4}, {2, 2}));
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(0, 1, 2, 0, 3, 4));
}

TEST(Var, SlicesAddIntoTheirOwnPart) {
  const Var x = leaf({1, 2, 3, 4}, {4});
  const Var parts[] = {slice(x, 0, 1, 2), slice(x, 0, 2, 2)};
  concat(parts, 0).backward(Tensor::from({1, 2, 3, 4}, {4}));
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(0, 1, 5, 4));
}

TEST(Var, AddingNeverWritesIntoSharedMemory) {
  const Var a = leaf({1, 2}, {2});
  const Tensor shared = Tensor::from({1, 1}, {2});
  a.add_grad(shared);
  a.add_grad(shared);
  EXPECT_THAT(a.grad().to_vector(), ElementsAre(2, 2));
  EXPECT_THAT(shared.to_vector(), ElementsAre(1, 1));
}

TEST(Var, RowSparseGradientsMergeAndBecomeDense) {
  const Var table = leaf({0, 0, 0, 0, 0, 0}, {3, 2});
  table.add_grad(RowSparse{{0, 2}, Tensor::from({1, 1, 2, 2}, {2, 2})});
  table.add_grad(RowSparse{{2}, Tensor::from({3, 3}, {1, 2})});
  ASSERT_NE(table.sparse_grad(), nullptr);
  EXPECT_THAT(table.sparse_grad()->rows, ElementsAre(0, 2));
  EXPECT_THAT(table.grad().to_vector(), ElementsAre(1, 1, 0, 0, 5, 5));
  EXPECT_EQ(table.sparse_grad(), nullptr);
  table.add_grad(RowSparse{{1}, Tensor::from({7, 7}, {1, 2})});
  EXPECT_THAT(table.grad().to_vector(), ElementsAre(1, 1, 7, 7, 5, 5));
}

TEST(Var, StridedViewsTakeAndPassStridedGradients) {
  const Var x = leaf({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2, 6});
  const Var heads = permute(reshape(x, {2, 3, 2}), {1, 0, 2});
  const int64_t counts[] = {1, 2};
  const std::vector<Var> parts = split(heads, 0, counts);
  const Var both[] = {parts[1], parts[0], parts[0]};
  concat(both, 0).backward(Tensor::from({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {4, 2, 2}));
  EXPECT_THAT(x.grad().to_vector(), ElementsAre(20, 22, 0, 1, 4, 5, 24, 26, 2, 3, 6, 7));
}

TEST(Var, NoGradRecordsNothing) {
  const Var a = leaf({1}, {1, 1});
  const NoGrad guard;
  EXPECT_FALSE(matmul(a, a).requires_grad());
}

TEST(Var, BackwardTwiceOnFreshGraphsAccumulates) {
  const Var a = leaf({3}, {1, 1});
  matmul(a, a).backward();
  matmul(a, a).backward();
  EXPECT_EQ(a.grad().item(), 12);
}

TEST(Var, AMillionStepsAreFreedWithoutRecursion) {
  Var x = leaf({1}, {1, 1});
  for (int i = 0; i < 1000000; ++i) x = transpose(x, 0, 1);
}

TEST(Var, ErrorsNameTheShapes) {
  const Var a = leaf({1, 2}, {1, 2});
  EXPECT_THROW(matmul(a, a), Error);
  EXPECT_THROW(a.backward(), Error);
  EXPECT_THROW(Var(Tensor::scalar(1)).backward(), Error);
  EXPECT_THROW(linear(a, a, Var(Tensor::zeros({3}))), Error);
}

}  // namespace
}  // namespace fovea
