// What every translation model is: a network that scores target tokens given a source sentence.
//
// A model has two ways through the same layers. states() feeds whole targets, for training and for looking at
// attention. decode() writes them token by token. For that a model has
//
//   Memory encode(const Sentences& sources, nn::Context& context) const;   what is kept of the sources
//   State start(Memory memory) const;                                     a row for each sentence
//   Tensor step(State& state, std::span<const int32_t> tokens) const;     what the output layer reads
//
// with types of its own, a State that can reorder() its rows, and decode() made of them by decoding().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "autograd/ops_output.h"
#include "data/batches.h"
#include "models/sentences.h"
#include "nn/module.h"

namespace fovea::models {

// logits = states weight^T + bias.
struct OutputLayer {
  Var weight;  // [vocabulary, in]
  Var bias{};  // [vocabulary] or undefined
};

// Targets being written: one row for each hypothesis alive, at first one for each sentence.
class Decoding {
 public:
  virtual ~Decoding() = default;
  // Feeds the last token of every row; returns what the output layer reads, [rows, in]. A row's result does
  // not depend on the other rows while the model is prepared (nn::Prepared).
  virtual Tensor step(std::span<const int32_t> tokens) = 0;
  // Row i becomes a copy of what row parents[i] was; rows may repeat, and those not named are gone.
  virtual void reorder(std::span<const int32_t> parents) = 0;
};

class TranslationModel : public nn::Module {
 public:
  // The targets fed token by token (batch.target_in): what the output layer reads, [target tokens, in]. An
  // AttentionObserver sees on the way where every token looked: calls whose site is cross attention or
  // alignment are of target_in by source, all sentences of the batch packed one after the other.
  virtual Var states(const data::Batch& batch, nn::Context& context) const = 0;
  virtual OutputLayer output_layer() const = 0;
  // Reads the sources (each ending with data::kEnd) and stands before the first token of each target. The
  // model must outlive what is returned.
  virtual std::unique_ptr<Decoding> decode(const Sentences& sources) const = 0;

  // The loss of the targets given the sources, teacher-forced.
  OutputLoss loss(const data::Batch& batch, float smoothing, nn::Context& context) const;
};

// Scheduled sampling (Bengio et al. 2015): of what a decoder is fed in training, each token but the first is kept with
// probability `teacher_forcing`; the others become the model's own choice (the likeliest token) after what was fed
// before them. Changes batch.target_in. The choices are made without dropout and are not differentiated, as usual, so
// that the pass that learns is the ordinary one over the changed batch. The draws depend on the seed alone.
void feed_own_tokens(const TranslationModel& model, float teacher_forcing, uint64_t seed, data::Batch& batch);

// decode() of a model that has encode(), start() and step().
template <class Model>
std::unique_ptr<Decoding> decoding(const Model& model, const Sentences& sources) {
  class Steps : public Decoding {
   public:
    Steps(const Model& network, const Sentences& from) : model_(network), state_(begin(network, from)) {}
    Tensor step(std::span<const int32_t> tokens) override {
      const NoGrad no_grad;
      return model_.step(state_, tokens);
    }
    void reorder(std::span<const int32_t> parents) override { state_.reorder(parents); }

   private:
    static typename Model::State begin(const Model& network, const Sentences& from) {
      const NoGrad no_grad;
      nn::Context context;
      return network.start(network.encode(from, context));
    }
    const Model& model_;
    typename Model::State state_;
  };
  return std::make_unique<Steps>(model, sources);
}

// The settings that every translation model has: what a config says of vocabularies and shared tables.
struct TableSettings {
  const char* model;
  int64_t source_vocabulary, target_vocabulary;
  const std::string& tie;  // "all": source, target and output share one table; "output"; "none"
};
// Throws Error on vocabularies that are too small, an unknown tie, or one that does not fit them.
void check_tables(const TableSettings& settings);

}  // namespace fovea::models
