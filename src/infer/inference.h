// A translation model in use: its weights packed, its output layer ready to choose tokens.
#pragma once

#include <memory>

#include "infer/beam.h"
#include "infer/output_layer.h"
#include "models/translation.h"

namespace fovea {

class Inference {
 public:
  // The model must outlive this object, and its weights must not change meanwhile. Throws Error when int8 is
  // asked for and a weight is not finite. Safe to use from several threads.
  explicit Inference(const models::TranslationModel& model, Compute compute = Compute::float32);

  // Reads the sources (each ending with data::kEnd) and stands before the first target token of each. The
  // decoder must not outlive this object.
  std::unique_ptr<StepDecoder> start(const models::Sentences& sources) const;

 private:
  const models::TranslationModel& model_;
  nn::Prepared prepared_;
  OutputLayer output_;
};

}  // namespace fovea
