// Opens Hugging Face classifiers of the BERT family, makes new heads on their encoders, and saves them.
#include "tasks/bert_classifier.h"

#include <algorithm>
#include <optional>

#include "data/encoder_tokenizer.h"
#include "io/file.h"
#include "models/bert_classifier.h"
#include "models/bert_folder.h"
#include "nn/weights.h"
#include "tasks/cross_encoder.h"
#include "tasks/encoder.h"
#include "tasks/encoder_files.h"

namespace fovea::tasks {
namespace {

constexpr const char* kSeveral = "multi_label_classification";
constexpr const char* kNumber = "regression";

// As transformers reads a config: a single label without a type is a number. One label alone can be nothing else, unless it
// is there or not.
data::LabelForm form_of(const models::BertConfig& config) {
  if (config.problem_type == kSeveral) return data::LabelForm::several;
  return config.problem_type == kNumber || config.labels.size() == 1 ? data::LabelForm::number
                                                                     : data::LabelForm::one;
}

std::optional<std::string> problem_type_of(data::LabelForm form) {
  switch (form) {
    case data::LabelForm::one:
      break;
    case data::LabelForm::several:
      return kSeveral;
    case data::LabelForm::number:
      return kNumber;
  }
  return {};
}

// The labels of a number's head, which has one output without a name.
std::vector<std::string> names_of(const BertHead& head) {
  return head.form == data::LabelForm::number ? std::vector<std::string>{"LABEL_0"} : head.labels;
}

LoadedClassifier with_network(std::unique_ptr<models::Bert> bert, int64_t max_tokens) {
  LoadedClassifier loaded;
  const models::BertConfig& config = bert->config();
  loaded.model = kBertModel;
  loaded.config = models::bert_config_json(config);
  loaded.form = form_of(config);
  if (loaded.form != data::LabelForm::number) loaded.labels = config.labels;
  const int64_t longest = config.longest();
  loaded.encoding = {.form = data::TextForm::marked,
                     .max_tokens = max_tokens == 0 ? longest : std::min(max_tokens, longest),
                     .pairs = config.pairs.value_or(false)};
  loaded.network = std::make_unique<models::BertClassifier>(std::move(bert));
  loaded.network->read_as(loaded.form);
  return loaded;
}

}  // namespace

void check_encoder_choices(const EncoderChoices& choices) {
  if (!choices.global.empty()) data::check_global_rule(choices.global);
  require(choices.added_global >= 0 && choices.added_global <= 1024, "added_global: got ",
          choices.added_global, ", wanted 0 to 1024");
  const std::string& random = choices.random_blocks;
  require(random.empty() || random == "paper" || random == "hf-eval" || random == "none",
          "random_blocks: got ", in_quotes(random), ", wanted paper, hf-eval or none");
}

void choose_global(LoadedClassifier& loaded, const std::string& choice) {
  auto* const classifier = dynamic_cast<models::BertClassifier*>(loaded.network.get());
  require(classifier != nullptr,
          "global tokens can be chosen for Longformer and BigBird; the model is of kind ",
          in_quotes(loaded.model));
  classifier->bert().choose_global(choice, *loaded.tokenizer);
}

LoadedClassifier load_bert_classifier(const std::filesystem::path& folder, const std::string& compute) {
  LoadedEncoder encoder = open_encoder(folder, {}, compute);
  require(encoder.network->classifier != nullptr, folder.string(),
          ": the model was saved without a head for labels; wanted a folder such as "
          "BertForSequenceClassification, or train one: fovea train classify --from ",
          folder.string());
  const CrossEncoderSettings settings = read_cross_encoder(folder, encoder.modules.model);
  const bool pairs = encoder.network->config().pairs.value_or(settings.is_one);
  const size_t outputs = encoder.network->config().labels.size();
  LoadedClassifier loaded = with_network(std::move(encoder.network), encoder.modules.max_tokens);
  loaded.encoding.pairs = pairs;
  require(loaded.form != data::LabelForm::number || outputs == 1, folder.string(),
          ": problem_type is regression with ", outputs, " labels, wanted one number");
  if (loaded.form == data::LabelForm::number && settings.activation == ScoreActivation::sigmoid)
    dynamic_cast<models::BertClassifier&>(*loaded.network).use_sigmoid();
  loaded.tokenizer = std::move(encoder.tokenizer);
  loaded.tokenizer_files = read_tokenizer_files(encoder.modules.model);
  return loaded;
}

LoadedClassifier begin_bert_classifier(const std::filesystem::path& folder, const BertHead& head,
                                       const EncoderChoices& choices, Rng& rng) {
  const data::SentenceModules modules = data::read_sentence_modules(folder);
  std::vector<std::string> names = names_of(head);
  models::LoadedBert bert =
      models::load_bert(modules.model, rng, models::BertHeads{.labels = static_cast<int64_t>(names.size())});
  bert.network->name_labels(std::move(names));
  bert.network->describe_task(problem_type_of(head.form), head.pairs);
  const data::EncoderTokenizer tokenizer =
      data::load_encoder_tokenizer(modules.model, bert.network->config().model_type);
  data::require_as_many_tokens(*tokenizer.tokenizer, bert.network->config().vocab_size, folder.string());
  take_global(*bert.network, *tokenizer.tokenizer);
  if (!choices.global.empty()) bert.network->choose_global(choices.global, *tokenizer.tokenizer);
  if (choices.added_global > 0) bert.network->add_global_tokens(choices.added_global, rng);
  if (!choices.random_blocks.empty()) bert.network->choose_random_blocks(choices.random_blocks);
  LoadedClassifier loaded = with_network(std::move(bert.network), head.max_tokens);
  loaded.tokenizer = tokenizer.tokenizer;
  loaded.tokenizer_files = read_tokenizer_files(modules.model);
  set_longest_text(loaded.tokenizer_files, loaded.encoding.max_tokens, modules.model.string());
  return loaded;
}

LoadedClassifier load_bert_checkpoint(const std::filesystem::path& folder, const Json& settings,
                                      LoadedClassifier said) {
  const models::BertConfig config = models::bert_config(settings, (folder / "config.json").string());
  const data::EncoderTokenizer tokenizer = data::load_encoder_tokenizer(folder, config.model_type);
  data::require_as_many_tokens(*tokenizer.tokenizer, config.vocab_size, folder.string());
  const BertHead head{.labels = said.labels, .form = said.form};
  // The network is the encoder within a classifier, as the checkpoint names its weights.
  LoadedClassifier loaded;
  auto network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    std::vector<std::string> names = names_of(head);
    auto bert = std::make_unique<models::Bert>(
        config, models::BertHeads{.labels = static_cast<int64_t>(names.size())}, rng);
    bert->name_labels(std::move(names));
    take_global(*bert, *tokenizer.tokenizer);
    bert->describe_task(problem_type_of(head.form), config.pairs.value_or(false));
    loaded = with_network(std::move(bert), said.encoding.max_tokens);
    return std::move(loaded.network);
  });
  loaded.network = std::move(network);
  loaded.label_separator = said.label_separator;
  loaded.tokenizer = tokenizer.tokenizer;
  loaded.tokenizer_files = read_tokenizer_files(folder);
  return loaded;
}

namespace {

// While it lives, the head gives numbers themselves rather than what a target scale makes them of: files of the
// family know no scale.
class UnscaledHead {
 public:
  explicit UnscaledHead(const models::BertClassifier& network)
      : head_(*network.bert().classifier),
        weight_(head_.weight.value().clone()),
        bias_(head_.bias.value().clone()) {
    const auto [mean, deviation] = network.target_scale();
    const Tensor weight = weight_.clone(), bias = bias_.clone();
    for (float& x : weight.span()) x *= deviation;
    for (float& x : bias.span()) x = x * deviation + mean;
    head_.weight.set_value(weight);
    head_.bias.set_value(bias);
  }
  ~UnscaledHead() {
    head_.weight.set_value(weight_);
    head_.bias.set_value(bias_);
  }
  UnscaledHead(const UnscaledHead&) = delete;
  UnscaledHead& operator=(const UnscaledHead&) = delete;

 private:
  const nn::Linear& head_;
  Tensor weight_, bias_;
};

}  // namespace

void save_bert_classifier(const std::filesystem::path& folder, const LoadedClassifier& loaded) {
  const auto& network = dynamic_cast<const models::BertClassifier&>(*loaded.network);
  {
    std::optional<UnscaledHead> unscaled;
    if (loaded.form == data::LabelForm::number) unscaled.emplace(network);
    models::save_bert(folder, network.bert());
  }
  for (const auto& [name, bytes] : loaded.tokenizer_files) write_atomically(folder / name, bytes);
}

}  // namespace fovea::tasks
