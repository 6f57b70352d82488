// The interface of networks that generate tokens one after the other: an output layer, and decoding step by step.
// Beam search and greedy search (infer/) need no more of a translator or a captioner than this.
//
// A model that writes has
//
//   Memory encode(source, nn::Context& context) const;                    what is kept of the source
//   State start(Memory memory) const;                                     a row for each sentence or picture
//   Tensor step(State& state, std::span<const int32_t> tokens) const;     what the output layer reads
//
// with types of its own, a State that can reorder() its rows, and decode() made of them by decoding().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "autograd/ops_output.h"
#include "autograd/var.h"
#include "nn/module.h"

namespace fovea::models {

// logits = states weight^T + bias.
struct OutputLayer {
  Var weight;  // [vocabulary, in]
  Var bias{};  // [vocabulary] or undefined
};

// Targets being written: one row for each hypothesis alive, at first one for each source.
class Decoding {
 public:
  virtual ~Decoding() = default;
  // Feeds the last token of every row; returns what the output layer reads, [rows, in]. A row's result does
  // not depend on the other rows while the model is prepared (nn::Prepared).
  virtual Tensor step(std::span<const int32_t> tokens) = 0;
  // Row i becomes a copy of what row parents[i] was; rows may repeat, and those not named are gone.
  virtual void reorder(std::span<const int32_t> parents) = 0;
};

// Throws Error unless there is a token for each row of a step.
void check_step(std::span<const int32_t> tokens, int64_t rows);

class DecoderModel : public nn::Module {
 public:
  virtual OutputLayer output_layer() const = 0;
};

// decode() of a model that has encode(), start() and step().
template <class Model, class Source>
std::unique_ptr<Decoding> decoding(const Model& model, const Source& source) {
  class Steps : public Decoding {
   public:
    Steps(const Model& network, const Source& from) : model_(network), state_(begin(network, from)) {}
    Tensor step(std::span<const int32_t> tokens) override {
      const NoGrad no_grad;
      return model_.step(state_, tokens);
    }
    void reorder(std::span<const int32_t> parents) override { state_.reorder(parents); }

   private:
    static typename Model::State begin(const Model& network, const Source& from) {
      const NoGrad no_grad;
      nn::Context context;
      return network.start(network.encode(from, context));
    }
    const Model& model_;
    typename Model::State state_;
  };
  return std::make_unique<Steps>(model, source);
}

// The loss of each sequence, scaled so that their mean is the loss of the batch, a mean over tokens: what rewards the
// choices of hard attention (nn/choices.h). states: what the output layer reads, [tokens, in]; lengths: of the
// sequences; options: those of the batch's loss. Nothing is recorded.
std::vector<float> sequence_losses(const Var& states, const OutputLayer& output,
                                   std::span<const int32_t> targets, std::span<const int32_t> lengths,
                                   const OutputLossOptions& options);

}  // namespace fovea::models
