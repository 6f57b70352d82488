// The layer from which a decoder chooses the next tokens.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "infer/logits.h"
#include "nn/prepared_linear.h"

namespace fovea {

class OutputLayer {
 public:
  // weight: [vocabulary, in], kept and not copied; bias: [vocabulary] or undefined.
  OutputLayer(const Tensor& weight, const Tensor& bias, Compute compute);
  ~OutputLayer();

  // x: [rows, in].
  Logits logits(const Tensor& x) const;

  // The token with the largest logit of every row, the first of equal ones; the token skipped[row], where it
  // is not -1, is left out. Throws Error when logits are not finite.
  //
  // In float32 most logits are never computed. A product with int8 weights comes within a known distance of
  // each of them, by Cauchy and Schwarz, and few are near enough to the largest to be worth computing: those
  // are, to the bit, so the choice is the one of logits(). The int8 weights, a quarter of the memory, are
  // made when first requested.
  std::vector<int32_t> best(const Tensor& x, std::span<const int32_t> skipped) const;

 private:
  struct Screen;
  const Screen& screen() const;

  Tensor weight_, bias_;
  Compute compute_;
  nn::PreparedLinear layer_;
  mutable std::mutex mutex_;  // of screen_
  mutable std::unique_ptr<Screen> screen_;
};

}  // namespace fovea
