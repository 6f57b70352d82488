// What every translation model is: a network that scores target tokens given a source sentence.
//
// A model has two ways through the same layers. states() feeds whole targets, for training and for looking at
// attention. decode() writes them token by token (models/decoder.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "autograd/ops_output.h"
#include "data/batches.h"
#include "models/decoder.h"
#include "models/sentences.h"

namespace fovea::models {

class TranslationModel : public DecoderModel {
 public:
  // The targets fed token by token (batch.target_in): what the output layer reads, [target tokens, in]. An
  // AttentionObserver sees on the way where every token looked: calls whose site is cross attention or
  // alignment are of target_in by source, all sentences of the batch packed one after the other.
  virtual Var states(const data::Batch& batch, nn::Context& context) const = 0;
  // Encodes the sources (each ending with data::kEnd) and is ready for the first token of each target. The
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

// The settings that every translation model has: what a config says of vocabularies and shared tables.
struct TableSettings {
  const char* model;
  int64_t source_vocabulary, target_vocabulary;
  const std::string& tie;  // "all": source, target and output share one table; "output"; "none"
};
// Throws Error on vocabularies that are too small, an unknown tie, or one that does not fit them.
void check_tables(const TableSettings& settings);

}  // namespace fovea::models
