// Labelled texts become tokens, a network learns their labels, and a folder remembers both.
#include "tasks/train_classify.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "data/text.h"
#include "tasks/bert_classifier.h"
#include "tasks/text_size.h"
#include "tasks/train_settings.h"

namespace fovea::tasks {
namespace {

// Texts as the network takes them, with what it should say of them.
struct Examples {
  data::EncodedTexts texts;
  data::Targets targets;
};

Examples encode(const data::LabelledText& text, const LoadedClassifier& loaded, const std::string& path) {
  return {data::encode_texts(text.texts, *loaded.tokenizer, loaded.encoding),
          data::targets_of(text, loaded.form, loaded.labels, path)};
}

// The texts as a tokenizer sees them.
std::vector<std::string> texts_read(const data::LabelledText& text, const ClassifyTraining& training) {
  if (!training.lowercase) return text.texts;
  std::vector<std::string> lower;
  for (const std::string& one : text.texts) lower.push_back(data::lowercase(one));
  return lower;
}

data::LabelledOptions reading_options(const ClassifyTraining& training) {
  return {.skip_bad = training.skip_bad,
          .label_column = training.label_column,
          .text_column = training.text_column,
          .form = label_form(training),
          .separator = training.label_separator.value_or(","),
          .pairs = training.pairs,
          .pair_column = training.pair_column};
}

// Decides what follows from the data.
void fit_to_data(const data::LabelledText& text, ClassifyTraining& training) {
  if (training.task == "multi_label")
    training.label_separator = training.label_separator.value_or(",");
  else
    training.label_separator.reset();
  const TextSize size = text_size(texts_read(text, training), training.max_length);
  const bool encoder = !training.from.empty();
  if (!training.batch_tokens) training.batch_tokens = encoder ? 2048 : batch_for(size.tokens, 512, 4096);
  if (encoder) {
    if (!training.word_dropout) training.word_dropout = 0.0f;
    return;
  }
  if (!training.tokenizer && training.vocabulary == 0) training.tokenizer = "words";  // all of them
  if (!training.tokenizer)
    training.tokenizer = size.ready_tokenized && size.tokens < 2'000'000 ? "words" : "bpe";
  // Where no word occurs twice, all of them are learnt.
  const int64_t repeated =
      size.repeated_words == 0 ? 0 : std::min<int64_t>(size.repeated_words + data::kSpecials, 30'000);
  if (!training.vocabulary)
    training.vocabulary = *training.tokenizer == "words" ? repeated : vocabulary_for(size, 10'000);
  if (!training.word_dropout)
    training.word_dropout = size.tokens < 250'000 ? 0.25f : size.tokens < 1'000'000 ? 0.1f : 0.0f;
}

uint64_t fingerprint(const data::LabelledText& text) {
  DataFingerprint print;
  print.add(text.texts);
  print.add(text.labels);
  return print.value();
}

data::Tokenizers learn(const ClassifyTraining& training, const data::LabelledText& text,
                       const std::string& path, RunObserver& observer) {
  observer.on_note(message("learning ",
                           *training.vocabulary == 0 ? "all" : std::to_string(*training.vocabulary),
                           " tokens (", *training.tokenizer, ") from ", text.size(), " texts"));
  const std::vector<std::string> read = texts_read(text, training);
  const std::span<const std::string> texts(read);
  try {
    const auto tokenizer = learn_tokenizer(*training.tokenizer, *training.vocabulary, {&texts, 1});
    return {tokenizer, tokenizer};
  } catch (const Error& error) {
    fail(path, ": ", error.what());
  }
}

// A fresh network with a tokenizer learnt from the text.
LoadedClassifier begin_classifier(const RunFolder& folder, const TrainSettings<ClassifyTraining>& settings,
                                  const data::LabelledText& text, const std::string& path,
                                  std::vector<std::string> labels, RunObserver& observer, Rng& rng) {
  const ClassifyTraining& training = settings.training;
  LoadedClassifier loaded;
  loaded.model = training.model;
  loaded.labels = std::move(labels);
  loaded.form = label_form(training);
  loaded.tokenizer = folder.tokenizers([&] { return learn(training, text, path, observer); }).source;
  loaded.config = models::model_config<models::Classifiers>(
      training.model, settings.model,
      models::vocabulary_and_classes(
          loaded.tokenizer->size(),
          loaded.form == data::LabelForm::number ? 1 : static_cast<int64_t>(loaded.labels.size()),
          training.pairs));
  loaded.network = models::make_model<models::Classifiers>(training.model, loaded.config, rng);
  loaded.network->read_as(loaded.form);
  loaded.network->use_tokenizer(*loaded.tokenizer);
  loaded.encoding = {.form = loaded.network->form(),
                     .max_tokens = training.max_length,
                     .lowercase = training.lowercase,
                     .pairs = training.pairs};
  return loaded;
}

// Numbers are learnt in units of their spread.
void scale_targets(const data::LabelledText& text, const std::string& path,
                   models::ClassificationModel& network) {
  double sum = 0, squares = 0;
  for (const float number : text.numbers) sum += number;
  const double mean = sum / static_cast<double>(text.numbers.size());
  for (const float number : text.numbers) squares += (number - mean) * (number - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(text.numbers.size()));
  require(deviation > 0 && std::isfinite(static_cast<float>(deviation)), path, ": every text has the number ",
          mean, ", wanted different ones");
  network.set_target_scale(static_cast<float>(mean), static_cast<float>(deviation));
}

// Some words are hidden in training, so that no single one decides.
void drop_words(std::vector<int32_t>& tokens, float share, nn::Context& context) {
  if (share <= 0) return;
  Rng rng(context.next_seed());
  for (int32_t& token : tokens)
    if (rng.uniform() < share && token >= data::kSpecials) token = data::kUnknown;
}

CardText card_text(const ClassifyFiles& files, const LoadedClassifier& loaded) {
  constexpr size_t kShown = 20;
  const std::string texts = loaded.encoding.pairs ? "pairs of texts" : "text";
  std::string about = loaded.form == data::LabelForm::number
                          ? message("Predicts a number from ", texts, ".\n")
                      : loaded.form == data::LabelForm::several
                          ? message("Gives ", texts, " any of ", loaded.labels.size(), " labels:")
                          : message("Classifies ", texts, " into ", loaded.labels.size(), " classes:");
  for (size_t i = 0; i < std::min(kShown, loaded.labels.size()); ++i)
    about += (i > 0 ? ", `" : " `") + loaded.labels[i] + '`';
  if (!loaded.labels.empty()) about += loaded.labels.size() > kShown ? ", ...\n" : ".\n";
  return {.title = "A text classifier made with Fovea",
          .about = about,
          .train = "`" + files.train + "`",
          .valid = "`" + files.valid + "`",
          .use = "fovea classify " + files.out.string() + " < texts.txt > labels.txt"};
}

}  // namespace

void apply_preset(const std::string& name, ClassifyTraining& training, Json& settings) {
  const bool tiny = name == "tiny", base = name == "base";
  if (!training.from.empty()) {
    training.learning_rate = 5e-5;
    training.warmup = 0.1;
    training.batch_tokens = 2048;
    training.word_dropout = 0.0f;
    settings = Json::object();
  } else if (training.model == "transformer") {
    const int64_t width = tiny ? 64 : base ? 512 : 128;
    const int64_t heads = tiny ? 2 : base ? 8 : 4;
    settings = {{"width", width}, {"heads", heads}, {"hidden", 4 * width}, {"layers", base ? 6 : 2}};
    training.learning_rate = base ? 3e-4 : 1e-3;
    training.warmup = 0.1;
  } else {
    const int64_t width = tiny ? 64 : base ? 300 : 128;
    settings = {{"embedding", width},
                {"width", training.model == "han" ? std::max<int64_t>(width / 2, 50) : width}};
    training.learning_rate = base ? 1e-3 : 2e-3;
  }
}

data::LabelForm label_form(const ClassifyTraining& training) {
  if (training.task == "multi_label") return data::LabelForm::several;
  return training.task == "regression" ? data::LabelForm::number : data::LabelForm::one;
}

void check_training(const ClassifyTraining& training, const Json&) {
  require(training.smoothing == 0 || training.task == "classification",
          "smoothing: label smoothing is for one label a text; leave it out with --task ", training.task);
  // The default is no request: a config file lists it whatever the task is.
  require(training.label_separator.value_or(",") == "," || training.task == "multi_label",
          "label_separator: only --task multi_label has several labels a text");
  require(!training.label_separator || !training.label_separator->empty(),
          "label_separator: got none, wanted the separator between two labels, such as a comma");
  check_rates(training.learning_rate, training.warmup, training.smoothing);
  require(training.max_length == 0 || training.max_length >= 8, "max_length: got ", training.max_length,
          ", wanted at least 8, or 0 for no limit");
  check_vocabulary(training.tokenizer, training.vocabulary);
  require(!training.batch_tokens || *training.batch_tokens >= 1, "batch_tokens: got ",
          training.batch_tokens.value_or(0), ", wanted at least 1");
  const float dropped = training.word_dropout.value_or(0);
  require(dropped >= 0 && dropped < 1, "word_dropout: got ", dropped, ", wanted at least 0 and below 1");
}

TrainingOutcome train_classify(const ClassifyFiles& files, const TrainSettings<ClassifyTraining>& requested,
                               const std::string& command, RunObserver& observer,
                               const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  check_settings(requested);
  TrainSettings<ClassifyTraining> settings = requested;  // fitted to the data below
  ClassifyTraining& training = settings.training;
  training.pairs = training.pairs || !training.pair_column.empty();
  const data::LabelledOptions reading = reading_options(training);
  const data::LabelledText text = data::read_labelled(files.train, reading);
  observer.on_note(text.columns.note(files.train));
  if (text.skipped.total() > 0) observer.on_note(text.skipped.text("text"));
  data::LabelledOptions reading_more = reading;
  reading_more.like = &text.columns;
  const data::LabelledText valid_text =
      files.valid.empty() ? data::LabelledText{} : data::read_labelled(files.valid, reading_more);
  fit_to_data(text, training);

  const data::LabelForm form = label_form(training);
  std::vector<std::string> labels = data::label_set(text, files.train, form);
  if (form == data::LabelForm::several &&
      std::all_of(text.several.begin(), text.several.end(), [](const auto& one) { return one.size() < 2; }))
    observer.on_note("note: no text has more than one label; --label-separator is " +
                     in_quotes(reading.separator));
  if (!files.valid.empty()) data::targets_of(valid_text, form, labels, files.valid);  // refuses unknown ones
  Rng rng(settings.options.seed);
  LoadedClassifier loaded;
  // An encoder that cannot be read leaves no folder behind.
  const bool tuned = !training.from.empty();
  if (tuned) {
    EncoderChoices choices;
    fields_from_json(settings.model, choices, "from");
    loaded = begin_bert_classifier(
        training.from,
        {.labels = labels, .form = form, .pairs = training.pairs, .max_tokens = training.max_length}, choices,
        rng);
  }
  const RunFolder folder(files.out, run_identity(settings, fingerprint(text), counted(text.size(), "text")),
                         observer);
  if (!tuned) loaded = begin_classifier(folder, settings, text, files.train, labels, observer, rng);
  if (training.label_separator) loaded.label_separator = *training.label_separator;
  if (form == data::LabelForm::number) scale_targets(text, files.train, *loaded.network);
  const Examples examples = encode(text, loaded, files.train);
  const Examples valid = encode(valid_text, loaded, files.valid);
  observer.on_note(message(
      examples.texts.size(), training.pairs ? " pairs" : " texts", " of ", examples.texts.tokens.size(),
      " tokens, ",
      form == data::LabelForm::number ? "" : counted(static_cast<int64_t>(labels.size()), "label") + ", ",
      "vocabulary of ", loaded.tokenizer->size(), ", ", loaded.network->parameter_count(), " parameters"));

  TrainingPlan plan;
  plan.network = loaded.network.get();
  // A pretrained encoder is moved little.
  if (tuned)
    plan.rule = train::AdamW{.learning_rate = training.learning_rate, .weight_decay = 0.01};
  else
    plan.rule = train::Adam{.learning_rate = training.learning_rate, .beta2 = 0.98, .epsilon = 1e-9};
  plan.schedule = schedule_of(training.schedule, training.warmup);
  plan.options = settings.options;
  plan.passes = tuned ? 3 : 15;
  plan.more_passes_overfit = true;
  for (int64_t i = 0; i < examples.texts.size(); ++i) plan.sizes.push_back({examples.texts.length(i), 0});
  plan.batch_size = *training.batch_tokens;
  plan.batch_unit = "tokens";
  plan.unit = "texts";
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    data::TextBatch batch = data::make_text_batch(examples.texts, chosen);
    drop_words(batch.tokens, *training.word_dropout, context);
    return train::BatchLoss{
        loaded.network->loss({batch.tokens, batch.lengths, batch.firsts}, examples.targets.at(batch.places),
                             training.smoothing, context),
        static_cast<double>(batch.places.size())};
  };
  if (valid_text.size() > 0)
    plan.validate = [&] { return validation_of(classify_ids(*loaded.network, valid.texts), valid.targets); };
  plan.score_name = score_name_of(form).name;
  plan.score_unit = score_name_of(form).unit;
  plan.should_stop = should_stop;
  plan.save_config = [&](const std::filesystem::path& out) { save_classifier_config(out, loaded); };
  plan.save_model = [&](const std::filesystem::path& out) { save_classifier(out, loaded); };
  plan.card = card_text(files, loaded);
  plan.command = command;
  return run_training(folder, plan, observer);
}

}  // namespace fovea::tasks
