// Random numbers by counter (Philox 4x32-10): a draw is a function of key and counter, so it does not depend
// on threads, tiles or the order of calls, and a generator's whole state is two numbers.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace fovea {

// Four independent 32-bit draws for one (key, counter).
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t x0 = static_cast<uint32_t>(counter_low), x1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t x2 = static_cast<uint32_t>(counter_high), x3 = static_cast<uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * x0, p1 = uint64_t{0xCD9E8D57u} * x2;
    x0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ k0;
    x1 = static_cast<uint32_t>(p1);
    x2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {x0, x1, x2, x3};
}

// Uniform in [0, 1) with 24 random bits.
inline float uniform_from_bits(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// A stream of draws. Copy it to fork the same future; split() for an independent one.
class Rng {
 public:
  struct State {
    uint64_t key = 0;
    uint64_t drawn = 0;  // 32-bit draws taken so far
    friend bool operator==(const State&, const State&) = default;
  };

  explicit Rng(uint64_t seed = 0) : state_{seed, 0} {}
  explicit Rng(State state) : state_(state) {}
  const State& state() const { return state_; }

  uint32_t bits() {
    const uint64_t place = state_.drawn++;
    return philox(state_.key, place / 4)[place % 4];
  }
  uint64_t bits64() {
    const uint64_t low = bits();
    return low | uint64_t{bits()} << 32;
  }
  float uniform() { return uniform_from_bits(bits()); }
  // Uniform in [0, bound), bound > 0, without bias worth naming (64-bit multiply-shift).
  int64_t below(int64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<int64_t>((static_cast<Wide>(bits64()) * static_cast<uint64_t>(bound)) >> 64);
  }
  float normal() {
    const double u = (bits() + 0.5) * 0x1p-32, angle = 2 * std::numbers::pi * (bits() * 0x1p-32);
    return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(angle));
  }
  // An independent stream, named by a number: the same name gives the same stream.
  Rng split(uint64_t name) const {
    const auto x = philox(state_.key, name, 0x5eed5eed5eed5eedull);
    return Rng(uint64_t{x[0]} | uint64_t{x[1]} << 32);
  }

 private:
  State state_;
};

}  // namespace fovea
