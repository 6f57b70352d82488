#include "tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/allocator.h"

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(Tensor, TransposeIsAViewThatCopiesRight) {
  const Tensor t = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor turned = t.transpose(0, 1);
  EXPECT_EQ(turned.data(), t.data());
  EXPECT_FALSE(turned.is_contiguous());
  EXPECT_THAT(turned.to_vector(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Tensor, PermuteOfThreeAxesCopiesRight) {
  const Tensor t = Tensor::from({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2, 3, 2});
  EXPECT_THAT(t.permute({2, 0, 1}).to_vector(), ElementsAre(0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11));
}

TEST(Tensor, NarrowSharesMemory) {
  const Tensor t = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor part = t.narrow(1, 1, 2);
  EXPECT_THAT(part.to_vector(), ElementsAre(2, 3, 5, 6));
  part.copy_from(Tensor::from({20, 30, 50, 60}, {2, 2}));
  EXPECT_THAT(t.to_vector(), ElementsAre(1, 20, 30, 4, 50, 60));
}

TEST(Tensor, ReshapeWorksOutOneSize) {
  const Tensor t = Tensor::zeros({4, 6});
  EXPECT_EQ(t.reshape({3, -1}).shape(), (Shape{3, 8}));
  EXPECT_THROW(t.reshape({5, -1}), Error);
  EXPECT_THROW(t.reshape({-1, -1}), Error);
  EXPECT_THROW(t.reshape({7, 3}), Error);
}

TEST(Tensor, EmptyTensorsWork) {
  const Tensor t = Tensor::zeros({0, 5});
  EXPECT_EQ(t.count(), 0);
  EXPECT_TRUE(t.transpose(0, 1).is_contiguous());
  EXPECT_EQ(t.clone().shape(), t.shape());
}

TEST(Tensor, ErrorsSayWhatWasGotAndWanted) {
  try {
    Tensor::zeros({2, 3}).narrow(1, 2, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("dimension 1 of shape [2, 3], which has 3"));
  }
  EXPECT_THROW(Shape({-1}), Error);
  EXPECT_THROW(Shape({int64_t{1} << 40, int64_t{1} << 40}), Error);
}

TEST(Allocator, KeepsAndReusesMemory) {
  const float* first;
  {
    const Tensor t(Shape{1000});
    first = t.data();
  }
  const Tensor again(Shape{1000});
  EXPECT_EQ(again.data(), first);
}

TEST(Allocator, CountsThePeak) {
  reset_peak_memory();
  const int64_t before = memory_use().peak_bytes;
  { const Tensor t(Shape{1 << 20}); }
  EXPECT_GE(memory_use().peak_bytes - before, 4 << 20);
  EXPECT_EQ(memory_use().live_bytes, before);
}

TEST(Allocator, ALargeFreeBlockServesASomewhatSmallerRequest) {
  trim_memory();
  const int64_t before = memory_use().cached_bytes;  // small blocks of the tests above
  const auto cached = [before] { return memory_use().cached_bytes - before; };
  Tensor(Shape{8800000});
  const int64_t whole = cached();
  ASSERT_GE(whole, 35200000);
  {
    const Tensor quarter(Shape{8800000 / 4});
    EXPECT_EQ(cached(), whole) << "a block of four times the size was taken";
    const Tensor smaller(Shape{8000000});
    EXPECT_EQ(cached(), 0);
    const Tensor next(Shape{8000000});
    EXPECT_EQ(cached(), 0);
    for (float& x : smaller.span()) x = 1;
    for (float& x : next.span()) x = 2;
    EXPECT_EQ(smaller.data()[7999999], 1);
  }
  const int64_t both = cached();
  const Tensor again(Shape{8800000});
  EXPECT_EQ(cached(), both - whole) << "the block did not come back with its full size";
  trim_memory();
}

TEST(Allocator, BlocksOfEverySizeAreAlignedAndApart) {
  std::vector<Tensor> live;
  // From a few bytes to more than a slab, most of them from slabs: twice, so that the second time finds them in the cache.
  for (int round = 0; round < 2; ++round) {
    const int64_t before = memory_use().live_bytes;
    for (const int64_t count :
         {1, 100, 16383, 16384, 16385, 20000, 400000, 524288, 524289, 4194304, 4194305, 20000000})
      for (int i = 0; i < 3; ++i) live.push_back(Tensor::full({count}, static_cast<float>(live.size())));
    for (size_t i = 0; i < live.size(); ++i) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(live[i].data()) % 64, 0u);
      EXPECT_EQ(live[i].data()[0], static_cast<float>(i));
      EXPECT_EQ(live[i].data()[live[i].count() - 1], static_cast<float>(i));
    }
    live.clear();
    EXPECT_EQ(memory_use().live_bytes, before);
  }
  // Blocks of slabs stay, the others go.
  const int64_t cached = memory_use().cached_bytes;
  trim_memory();
  EXPECT_LE(memory_use().cached_bytes, cached - 3 * 80'000'000);
}

}  // namespace
}  // namespace fovea
