// A translation model made ready for translating, whatever its kind.
#pragma once

#include <memory>

#include "infer/beam.h"
#include "infer/packed_linear.h"
#include "models/translation.h"

namespace fovea {

class Inference {
 public:
  virtual ~Inference() = default;
  // Encodes the sources (each ending with data::kEnd) and stands before the first target token of each. The
  // decoder must not outlive this object.
  virtual std::unique_ptr<StepDecoder> start(const models::Sentences& sources) const = 0;
};

// The model may go, but its weights must not change while the result is in use: some are shared.
std::unique_ptr<Inference> make_inference(const models::TranslationModel& model,
                                          Compute compute = Compute::float32);

}  // namespace fovea
