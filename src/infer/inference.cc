#include "infer/inference.h"

namespace fovea {
namespace {

Tensor value_of(const Var& v) {
  return v.defined() ? v.value() : Tensor();
}

class Decoder : public StepDecoder {
 public:
  Decoder(std::unique_ptr<models::Decoding> decoding, const OutputLayer& output)
      : decoding_(std::move(decoding)), output_(output) {}
  Logits step(std::span<const int32_t> tokens) override { return output_.logits(decoding_->step(tokens)); }
  std::vector<int32_t> best(std::span<const int32_t> tokens, std::span<const int32_t> skipped) override {
    return output_.best(decoding_->step(tokens), skipped);
  }
  void reorder(std::span<const int32_t> parents) override { decoding_->reorder(parents); }

 private:
  std::unique_ptr<models::Decoding> decoding_;
  const OutputLayer& output_;
};

}  // namespace

DecoderInference::DecoderInference(const models::DecoderModel& model, Compute compute)
    : prepared_(model, compute),
      output_(model.output_layer().weight.value(), value_of(model.output_layer().bias), compute) {}

std::unique_ptr<StepDecoder> DecoderInference::start(std::unique_ptr<models::Decoding> decoding) const {
  return std::make_unique<Decoder>(std::move(decoding), output_);
}

}  // namespace fovea
