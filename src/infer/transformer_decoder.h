// The Transformer made ready for translating: weights packed once, keys and values cached, sources encoded
// once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "infer/inference.h"
#include "infer/packed_linear.h"
#include "models/transformer.h"

namespace fovea {

class TransformerInference : public Inference {
 public:
  // Reads the model's weights; later changes to them are not seen.
  explicit TransformerInference(const models::Transformer& model, Compute compute = Compute::float32);
  ~TransformerInference() override;

  // Encodes the sources (each ending with data::kEnd) and stands before the first target token of each. The
  // decoder must not outlive this object.
  std::unique_ptr<StepDecoder> start(const models::Sentences& sources) const override;

 private:
  struct Weights;
  class Decoder;
  Tensor encode(const models::Sentences& sources) const;
  std::unique_ptr<Weights> weights_;
};

}  // namespace fovea
