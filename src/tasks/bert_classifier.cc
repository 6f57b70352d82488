#include "tasks/bert_classifier.h"

#include <algorithm>

#include "data/encoder_tokenizer.h"
#include "io/file.h"
#include "models/bert_classifier.h"
#include "models/bert_folder.h"
#include "nn/weights.h"
#include "tasks/encoder.h"

namespace fovea::tasks {
namespace {

constexpr const char* kTokenizerFiles[] = {
    "vocab.txt",  "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "vocab.json", "merges.txt",     "sentencepiece.bpe.model"};

// A tokenizer travels as the files it came in.
void take_tokenizer(const std::filesystem::path& folder, ClassifierParts& parts) {
  for (const char* name : kTokenizerFiles)
    if (path_exists(folder / name)) parts.tokenizer_files.emplace_back(name, read_text(folder / name));
}

ClassifierParts with_network(std::unique_ptr<models::Bert> bert, int64_t max_tokens) {
  ClassifierParts parts;
  parts.model = kBertModel;
  parts.config = models::bert_config_json(bert->config());
  parts.labels = bert->config().labels;
  const int64_t longest = bert->config().longest();
  parts.encoding = {.form = data::TextForm::marked,
                    .max_tokens = max_tokens == 0 ? longest : std::min(max_tokens, longest)};
  parts.network = std::make_unique<models::BertClassifier>(std::move(bert));
  return parts;
}

}  // namespace

ClassifierParts load_bert_classifier(const std::filesystem::path& folder) {
  EncoderParts encoder = load_encoder(folder);
  require(encoder.network->classifier != nullptr, folder.string(),
          ": the model was saved without a head for labels; wanted a folder of the kind "
          "BertForSequenceClassification, or train one: fovea train classify --from ",
          folder.string());
  ClassifierParts parts = with_network(std::move(encoder.network), encoder.modules.max_tokens);
  parts.tokenizer = std::move(encoder.tokenizer);
  take_tokenizer(encoder.modules.model, parts);
  return parts;
}

ClassifierParts begin_bert_classifier(const std::filesystem::path& folder, std::vector<std::string> labels,
                                      int64_t max_tokens, Rng& rng) {
  const data::SentenceModules modules = data::read_sentence_modules(folder);
  models::LoadedBert loaded =
      models::load_bert(modules.model, rng, models::BertHeads{.labels = static_cast<int64_t>(labels.size())});
  loaded.network->name_labels(std::move(labels));
  const data::EncoderTokenizer tokenizer =
      data::load_encoder_tokenizer(modules.model, loaded.network->config().model_type);
  data::require_as_many_tokens(*tokenizer.tokenizer, loaded.network->config().vocab_size, folder.string());
  ClassifierParts parts = with_network(std::move(loaded.network), max_tokens);
  parts.tokenizer = tokenizer.tokenizer;
  take_tokenizer(modules.model, parts);
  return parts;
}

ClassifierParts load_bert_checkpoint(const std::filesystem::path& folder, const Json& settings,
                                     std::vector<std::string> labels, int64_t max_tokens) {
  const models::BertConfig config = models::bert_config(settings, (folder / "config.json").string());
  const data::EncoderTokenizer tokenizer = data::load_encoder_tokenizer(folder, config.model_type);
  data::require_as_many_tokens(*tokenizer.tokenizer, config.vocab_size, folder.string());
  // The parts' network is the encoder within a classifier, as the checkpoint names its weights.
  ClassifierParts parts;
  auto network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    auto bert = std::make_unique<models::Bert>(
        config, models::BertHeads{.labels = static_cast<int64_t>(labels.size())}, rng);
    bert->name_labels(std::move(labels));
    parts = with_network(std::move(bert), max_tokens);
    return std::move(parts.network);
  });
  parts.network = std::move(network);
  parts.tokenizer = tokenizer.tokenizer;
  take_tokenizer(folder, parts);
  return parts;
}

void save_bert_classifier(const std::filesystem::path& folder, const ClassifierParts& parts) {
  models::save_bert(folder, dynamic_cast<const models::BertClassifier&>(*parts.network).bert());
  for (const auto& [name, bytes] : parts.tokenizer_files) write_atomically(folder / name, bytes);
}

}  // namespace fovea::tasks
