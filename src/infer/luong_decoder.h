// Luong's models made ready for translating: weights packed once, keys and values projected once for a
// sentence, beams moved by number.
#pragma once

#include <memory>

#include "infer/inference.h"
#include "models/luong.h"

namespace fovea {

class LuongInference : public Inference {
 public:
  // Reads the model's weights; later changes to them are not seen.
  explicit LuongInference(const models::Luong& model);
  ~LuongInference() override;

  std::unique_ptr<StepDecoder> start(const models::Sentences& sources) const override;

 private:
  struct Weights;
  class Decoder;
  std::unique_ptr<Weights> weights_;
};

}  // namespace fovea
