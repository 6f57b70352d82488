// A model that writes tokens, in use: its weights prepared, its output layer ready to choose tokens.
#pragma once

#include <memory>

#include "infer/beam.h"
#include "infer/output_layer.h"
#include "models/translation.h"

namespace fovea {

// Of any model that writes.
class DecoderInference {
 public:
  // The model must outlive this object, and its weights must not change meanwhile. Throws Error when int8 is
  // requested and a weight is not finite. Safe to use from several threads.
  explicit DecoderInference(const models::DecoderModel& model, Compute compute = Compute::float32);

  // Goes on with what the model's decode() gave. The decoder must not outlive this object.
  std::unique_ptr<StepDecoder> start(std::unique_ptr<models::Decoding> decoding) const;

 private:
  nn::Prepared prepared_;
  OutputLayer output_;
};

// Of a model whose decode() reads sources of its own kind.
template <class Model>
class InferenceOf : public DecoderInference {
 public:
  explicit InferenceOf(const Model& model, Compute compute = Compute::float32)
      : DecoderInference(model, compute), model_(model) {}
  // Encodes the sources and is ready for the first target token of each.
  template <class Source>
  std::unique_ptr<StepDecoder> start(const Source& sources) const {
    return DecoderInference::start(model_.decode(sources));
  }

 private:
  const Model& model_;
};

// Sources are models::Sentences, each ending with data::kEnd.
using Inference = InferenceOf<models::TranslationModel>;

}  // namespace fovea
