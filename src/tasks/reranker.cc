#include "tasks/reranker.h"

#include <cmath>

#include "autograd/ops.h"
#include "infer/length_batches.h"

namespace fovea::tasks {
namespace {

LoadedEncoder load(const std::filesystem::path& folder, const std::string& compute) {
  LoadedEncoder loaded = open_encoder(folder, {}, compute);
  const int64_t labels = loaded.network->heads().labels;
  require(labels == 1, folder.string(), ": a head of ", labels,
          " labels; rerank needs a cross-encoder with one, which scores a pair of texts");
  return loaded;
}

float activated(float logit, ScoreActivation activation) {
  return activation == ScoreActivation::identity
             ? logit
             : static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit))));
}

}  // namespace

Reranker::Reranker(const std::filesystem::path& folder, const std::string& compute)
    : parts_(load(folder, compute)),
      activation_(
          read_cross_encoder(folder, parts_.modules.model).activation.value_or(ScoreActivation::sigmoid)),
      prepared_(*parts_.network, parts_.compute) {}

RelevanceScores Reranker::score(const std::string& query, std::span<const std::string> texts,
                                int64_t batch_tokens) const {
  const data::MarkedTokenizer& tokenizer = *parts_.tokenizer;
  const std::vector<int32_t> first = tokenizer.encode(query);
  std::vector<data::MarkedText> pairs;
  std::vector<int64_t> lengths;
  RelevanceScores result;
  for (const std::string& text : texts) {
    const std::vector<int32_t> second = tokenizer.encode(text);
    pairs.push_back(tokenizer.mark(first, second, max_tokens()));
    lengths.push_back(static_cast<int64_t>(pairs.back().ids.size()));
    result.cut.push_back(static_cast<int64_t>(first.size() + second.size()) + tokenizer.marks_around(true) >
                         max_tokens());
  }
  result.scores.resize(texts.size());
  for_length_batches(lengths, {.tokens = batch_tokens}, [&](std::span<const size_t> members) {
    std::vector<int32_t> ids, types, sizes;
    for (const size_t i : members) {
      ids.insert(ids.end(), pairs[i].ids.begin(), pairs[i].ids.end());
      types.insert(types.end(), pairs[i].types.begin(), pairs[i].types.end());
      sizes.push_back(static_cast<int32_t>(pairs[i].ids.size()));
    }
    const NoGrad no_grad;
    nn::Context context;
    const models::Sentences packed(ids, sizes);
    const Var hidden = parts_.network->hidden(packed, types, context);
    const Tensor logits = parts_.network->class_logits(hidden, packed.lengths, context).value().contiguous();
    for (size_t i = 0; i < members.size(); ++i) {
      require(std::isfinite(logits.data()[i]), "the model's weights are damaged: a pair scored ",
              logits.data()[i]);
      result.scores[members[i]] = activated(logits.data()[i], activation_);
    }
  });
  return result;
}

}  // namespace fovea::tasks
