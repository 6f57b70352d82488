#include "tasks/train_classify.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include "autograd/ops.h"
#include "data/text.h"
#include "io/file.h"
#include "models/registry.h"
#include "tasks/bert_classifier.h"

namespace fovea::tasks {
namespace {

// Texts as the network takes them, with the places of their labels.
struct Examples {
  data::PackedSentences texts;
  std::vector<int32_t> labels;
};

Examples encode(const data::LabelledText& text, const ClassifierParts& parts, const std::string& path) {
  return {data::encode_texts(text.texts, *parts.tokenizer, parts.encoding),
          data::label_places(text.labels, parts.labels, path)};
}

data::Tokenizers learn(const ClassifyTraining& training, const data::LabelledText& text,
                       RunObserver& observer) {
  observer.on_note(message("learning ", training.tokenizer, " tokens from ", text.size(), " texts"));
  std::vector<std::string> lower;
  if (training.lowercase)
    for (const std::string& one : text.texts) lower.push_back(data::lowercase(one));
  const std::span<const std::string> texts(training.lowercase ? lower : text.texts);
  const auto tokenizer = learn_tokenizer(training.tokenizer, training.vocabulary, {&texts, 1});
  return {tokenizer, tokenizer};
}

// A fresh network with a tokenizer learnt from the text.
ClassifierParts begin_classifier(const ClassifyFiles& files, const ClassifyTraining& training,
                                 const Json& model_settings, const data::LabelledText& text,
                                 std::vector<std::string> labels, RunObserver& observer, Rng& rng) {
  ClassifierParts parts;
  parts.model = training.model;
  parts.labels = std::move(labels);
  make_directories(files.out);
  parts.tokenizer = obtain_tokenizers(files.out, [&] { return learn(training, text, observer); }).source;
  parts.config = models::model_config<models::Classifiers>(
      training.model, model_settings,
      models::vocabulary_and_classes(parts.tokenizer->size(), static_cast<int64_t>(parts.labels.size())));
  parts.network = models::make_model<models::Classifiers>(training.model, parts.config, rng);
  parts.encoding = {
      .form = parts.network->form(), .max_tokens = training.max_length, .lowercase = training.lowercase};
  return parts;
}

// Batches of examples, shuffled anew every epoch.
class ExampleStream {
 public:
  ExampleStream(const Examples& examples, int64_t batch_tokens, uint64_t seed)
      : examples_(examples),
        order_(sizes(examples), fingerprint(examples), {.max_tokens = batch_tokens, .seed = seed}) {}

  data::TextBatch next() { return data::make_text_batch(examples_.texts, order_.next()); }
  data::BatchOrder& order() { return order_; }

 private:
  static std::vector<data::BatchOrder::Size> sizes(const Examples& examples) {
    std::vector<data::BatchOrder::Size> all;
    for (int64_t i = 0; i < examples.texts.size(); ++i) all.push_back({examples.texts.length(i), 0});
    return all;
  }
  static uint64_t fingerprint(const Examples& examples) {
    data::CorpusFingerprint print;
    print.add(examples.texts);
    for (const int32_t label : examples.labels) print.add(static_cast<uint64_t>(label));
    return print.value();
  }

  const Examples& examples_;
  data::BatchOrder order_;
};

std::string model_card(const ClassifyFiles& files, const ClassifierParts& parts,
                       const TrainingOutcome& outcome, const std::string& command) {
  std::ostringstream card;
  card << "# A text classifier made with Fovea\n\n"
       << "Tells " << parts.labels.size() << " classes:";
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(kShown, parts.labels.size()); ++i)
    card << (i > 0 ? ", " : " ") << '`' << parts.labels[i] << '`';
  card << (parts.labels.size() > kShown ? ", ...\n" : ".\n") << "Trained on `" << files.train << "`, "
       << outcome.step << " steps, " << outcome.parameters << " parameters.\n";
  if (outcome.best >= 0) card << "Accuracy on `" << files.valid << "`: " << outcome.best << " %.\n";
  card << weights_note(outcome) << "\n    " << command << "\n\nUse it:\n\n    fovea classify "
       << files.out.string() << " < texts.txt > labels.txt\n";
  return card.str();
}

}  // namespace

void apply_preset(const std::string& name, ClassifyTraining& training, Json& settings) {
  require(name == "tiny" || name == "small" || name == "base", "preset: got ", in_quotes(name),
          ", wanted tiny, small or base");
  if (!training.from.empty()) {
    training.learning_rate = 5e-5;
    training.warmup = 100;
    training.batch_tokens = 2048;
    settings = Json::object();
    return;
  }
  const bool tiny = name == "tiny", base = name == "base";
  training.vocabulary = tiny ? 4000 : base ? 30000 : 10000;
  if (training.model == "transformer") {
    const int64_t width = tiny ? 64 : base ? 512 : 128;
    settings = {{"width", width},
                {"heads", tiny   ? 2
                          : base ? 8
                                 : 4},
                {"hidden", 4 * width},
                {"layers", base ? 6 : 2}};
    training.learning_rate = base ? 3e-4 : 1e-3;
    training.warmup = base ? 2000 : 400;
    return;
  }
  const int64_t width = tiny ? 64 : base ? 300 : 128;
  settings = {{"embedding", width},
              {"width", training.model == "han" ? std::max<int64_t>(width / 2, 50) : width}};
  training.learning_rate = base ? 1e-3 : 2e-3;
}

TrainingOutcome train_classify(const ClassifyFiles& files, const ClassifyTraining& training,
                               const Json& model_settings, const train::TrainOptions& options,
                               const std::string& command, RunObserver& observer,
                               const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  require(training.from.empty() || model_settings.empty(), "from: the encoder keeps its own sizes; got ",
          model_settings.dump());
  if (training.from.empty()) models::check_settings<models::Classifiers>(training.model, model_settings);
  require(training.max_length == 0 || training.max_length >= 8, "max_length: got ", training.max_length,
          ", wanted at least 8, or 0 for no limit");
  const data::LabelledOptions reading{.skip_bad = training.skip_bad,
                                      .label_column = training.label_column,
                                      .text_column = training.text_column};
  const data::LabelledText text = data::read_labelled(files.train, reading);
  if (text.skipped.total() > 0) observer.on_note(text.skipped.text("text"));
  const data::LabelledText valid_text =
      files.valid.empty() ? data::LabelledText{} : data::read_labelled(files.valid, reading);

  std::vector<std::string> told = data::label_set(text, files.train);
  Rng rng(options.seed);
  const ClassifierParts parts =
      training.from.empty()
          ? begin_classifier(files, training, model_settings, text, std::move(told), observer, rng)
          : begin_bert_classifier(training.from, std::move(told), training.max_length, rng);
  const Examples examples = encode(text, parts, files.train);
  const Examples valid = encode(valid_text, parts, files.valid);

  observer.on_note(message(examples.texts.size(), " texts of ", examples.texts.tokens.size(), " tokens, ",
                           parts.labels.size(), " labels, ", parts.network->parameter_count(),
                           " parameters"));
  ExampleStream stream(examples, training.batch_tokens, options.seed);

  train::Job job;
  job.next_loss = [&](nn::Context& context) {
    const data::TextBatch batch = stream.next();
    std::vector<int32_t> labels;
    for (const int64_t place : batch.places) labels.push_back(examples.labels[static_cast<size_t>(place)]);
    return train::BatchLoss{
        parts.network->loss({batch.tokens, batch.lengths}, labels, training.smoothing, context),
        static_cast<double>(batch.tokens.size())};
  };
  job.position = [&] { return Json(stream.order().position().text()); };
  job.seek = [&](const Json& position) {
    require(position.is_string(), "checkpoint: the place in the data is damaged");
    stream.order().seek(data::BatchPosition::parse(position.get<std::string>()));
  };
  job.save_more = [&](const std::filesystem::path& folder) { save_classifier_config(folder, parts); };
  if (valid_text.size() > 0)
    job.validate = [&] {
      return validation_of(classify_ids(*parts.network, valid.texts, training.batch_tokens), valid.labels);
    };
  job.should_stop = should_stop;
  job.identity = Json{{"task", "classify"},
                      {"model", parts.model},
                      {"settings", parts.config},
                      {"labels", parts.labels},
                      {"smoothing", training.smoothing},
                      {"seed", options.seed}};

  // A pretrained encoder is moved little, and brought to rest.
  const bool tuned = !training.from.empty();
  train::ScheduleOptions schedule{.name = "inverse_sqrt", .warmup = training.warmup};
  train::Rule rule = train::Adam{.learning_rate = training.learning_rate, .beta2 = 0.98, .epsilon = 1e-9};
  if (tuned) rule = train::AdamW{.learning_rate = training.learning_rate, .weight_decay = 0.01};
  if (tuned && options.steps < train::kAnySteps && options.steps > training.warmup) {
    schedule.name = "cosine";
    schedule.steps = options.steps;
  }
  const TrainingOutcome outcome = run_training({.out = files.out,
                                                .network = *parts.network,
                                                .rule = rule,
                                                .schedule = schedule,
                                                .options = options,
                                                .job = job,
                                                .score_name = "accuracy"},
                                               observer);
  if (outcome.outcome == train::Outcome::interrupted) return outcome;
  save_classifier(files.out, parts);
  finish_folder(files.out, model_card(files, parts, outcome, command));
  return outcome;
}

}  // namespace fovea::tasks
