// Philox 4x32-10 on vectors: the very draws of base/rng.h, element i being lane i % 4 of counter i / 4.
// For X.simd.cc files only.
#pragma once

#include <hwy/highway.h>

#include <cstdint>

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The factors of dropout: 0 for a dropped element, 1 / (1 - p) for a kept one.
class DropoutFactors {
  using D64 = hn::ScalableTag<uint64_t>;
  using D32 = hn::Repartition<uint32_t, D64>;
  using DF = hn::Repartition<float, D64>;
  using V64 = hn::Vec<D64>;

 public:
  static constexpr int64_t kBlock = 256;  // elements per fill, at most
  // Room for kBlock elements, up to 3 before the first and a whole step past the last.
  static constexpr int64_t kRoom = kBlock + 4 + HWY_MAX_BYTES;

  // An element is kept when its 32 bits are at least `threshold`.
  DropoutFactors(uint64_t seed, uint32_t threshold, float scale) : threshold_(threshold), scale_(scale) {
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      keys0_[round] = k0;
      keys1_[round] = k1;
    }
  }

  // Factors of elements [first, first + count), count <= kBlock: written to room[kRoom], returned as the
  // place of the first.
  HWY_INLINE const float* fill(int64_t first, int64_t count, float* room) const {
    const D64 d64;
    const D32 d32;
    const DF df;
    const int64_t lanes64 = static_cast<int64_t>(hn::Lanes(d64)), lanes32 = 2 * lanes64;
    const int64_t skipped = first % 4;
    const auto least = hn::Set(d32, threshold_);
    const auto scale = hn::Set(df, scale_);
    int64_t counter = first / 4;
    for (int64_t done = 0; done < skipped + count;
         done += kDraws * 2 * lanes32, counter += kDraws * lanes64) {
      hn::Vec<D32> bits[2 * kDraws];
      draw(static_cast<uint64_t>(counter), bits);
      for (int i = 0; i < 2 * kDraws; ++i) {
        const auto kept =
            hn::RebindMask(df, hn::Eq(hn::Max(bits[i], least), bits[i]));  // bits >= least, unsigned
        hn::StoreU(hn::IfThenElseZero(kept, scale), df, room + done + i * lanes32);
      }
    }
    return room + skipped;
  }

 private:
  // Draws in flight: a round waits for its multiplication, so that one alone would leave the ports idle.
  static constexpr int kDraws = 2;

  // The bits of counters [counter, counter + kDraws * Lanes(u64)), in element order.
  HWY_INLINE void draw(uint64_t counter, hn::Vec<D32>* bits) const {
    const D64 d64;
    const D32 d32;
    // Interleaving works within 128-bit blocks: with b blocks, lane s of block i holds counter s * b + i, so
    // that the lower halves of all blocks together are consecutive.
    constexpr int kLogBlocks = HWY_LANES(uint64_t) == 2 ? 0 : HWY_LANES(uint64_t) == 4 ? 1 : 2;
    const V64 lane = hn::Iota(d64, 0), odd = hn::And(lane, hn::Set(d64, 1));
    const V64 offsets = hn::Add(hn::ShiftLeft<kLogBlocks>(odd), hn::ShiftRight<1>(lane));
    // A 32-bit word sits in the low half of each 64-bit lane. The high half may hold anything: the
    // multiplication does not read it.
    V64 x0[kDraws], x1[kDraws], x2[kDraws], x3[kDraws];
    for (int i = 0; i < kDraws; ++i) {
      x0[i] = hn::Add(hn::Set(d64, counter + i * hn::Lanes(d64)), offsets);
      x1[i] = hn::ShiftRight<32>(x0[i]);
      x2[i] = x3[i] = hn::Zero(d64);
    }
    const auto m0 = hn::BitCast(d32, hn::Set(d64, 0xD2511F53u)),
               m1 = hn::BitCast(d32, hn::Set(d64, 0xCD9E8D57u));
    for (int round = 0; round < 10; ++round) {
      const V64 key0 = hn::Set(d64, keys0_[round]), key1 = hn::Set(d64, keys1_[round]);
      for (int i = 0; i < kDraws; ++i) {
        const V64 p0 = hn::MulEven(hn::BitCast(d32, x0[i]), m0),
                  p1 = hn::MulEven(hn::BitCast(d32, x2[i]), m1);
        x0[i] = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(x1[i], key0));
        x2[i] = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(x3[i], key1));
        x1[i] = p1;
        x3[i] = p0;
      }
    }
    const V64 low = hn::Set(d64, 0xFFFFFFFFu);
    for (int i = 0; i < kDraws; ++i) {
      const V64 x01 = hn::Or(hn::And(x0[i], low), hn::ShiftLeft<32>(x1[i]));
      const V64 x23 = hn::Or(hn::And(x2[i], low), hn::ShiftLeft<32>(x3[i]));
      bits[2 * i] = hn::BitCast(d32, hn::InterleaveLower(d64, x01, x23));
      bits[2 * i + 1] = hn::BitCast(d32, hn::InterleaveUpper(d64, x01, x23));
    }
  }

  uint64_t keys0_[10], keys1_[10];
  uint32_t threshold_;
  float scale_;
};

}  // namespace
}  // namespace fovea::kernels
