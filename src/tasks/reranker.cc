#include "tasks/reranker.h"

#include <cmath>

#include "autograd/ops.h"
#include "infer/length_batches.h"

namespace fovea::tasks {
namespace {

EncoderParts load(const std::filesystem::path& folder, const std::string& compute) {
  EncoderParts parts = load_encoder(folder, {}, compute);
  const int64_t labels = parts.network->heads().labels;
  require(labels == 1, folder.string(), ": a head of ", labels,
          " labels; rerank needs a cross-encoder with one, which scores a pair of texts");
  return parts;
}

float activated(float logit, ScoreActivation activation) {
  return activation == ScoreActivation::identity
             ? logit
             : static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit))));
}

}  // namespace

ScoreActivation score_activation(const Json& config, const std::string& where) {
  const Json* named = nullptr;
  if (config.contains("sentence_transformers") && config["sentence_transformers"].is_object() &&
      config["sentence_transformers"].contains("activation_fn"))
    named = &config["sentence_transformers"]["activation_fn"];
  else if (config.contains("sbert_ce_default_activation_function"))
    named = &config["sbert_ce_default_activation_function"];
  if (named == nullptr || named->is_null()) return ScoreActivation::sigmoid;
  std::string name;
  value_from_json(*named, name, where + ": the activation of scores");
  if (name.ends_with(".Identity")) return ScoreActivation::identity;
  if (name.ends_with(".Sigmoid")) return ScoreActivation::sigmoid;
  fail(where, ": the activation of scores is ", in_quotes(name),
       ", wanted torch.nn.modules.linear.Identity or torch.nn.modules.activation.Sigmoid");
}

Reranker::Reranker(const std::filesystem::path& folder, const std::string& compute)
    : parts_(load(folder, compute)),
      activation_(score_activation(load_json(parts_.modules.model / "config.json"),
                                   (parts_.modules.model / "config.json").string())),
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
