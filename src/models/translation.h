// What every translation model is: a network that scores target tokens given a source sentence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograd/ops_output.h"
#include "data/batches.h"
#include "nn/module.h"

namespace fovea::models {

// Sentences one after the other, without padding; the ids stay the caller's.
struct Sentences {
  std::span<const int32_t> ids;
  std::vector<int64_t> lengths;  // of each sentence

  Sentences(std::span<const int32_t> tokens, std::span<const int32_t> sizes)
      : ids(tokens), lengths(sizes.begin(), sizes.end()) {}
  int64_t count() const { return static_cast<int64_t>(lengths.size()); }
  int64_t total() const { return static_cast<int64_t>(ids.size()); }
  int64_t longest() const;
};

class TranslationModel : public nn::Module {
 public:
  // The loss of the targets given the sources, teacher-forced.
  virtual OutputLoss loss(const data::Batch& batch, float smoothing, nn::Context& context) const = 0;
};

}  // namespace fovea::models
