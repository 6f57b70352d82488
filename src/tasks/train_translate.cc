// Sentence pairs become tokens, a network learns one side from the other, and a folder remembers it all.
#include "tasks/train_translate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "data/batches.h"
#include "data/corpus.h"
#include "infer/bleu.h"
#include "tasks/text_size.h"
#include "tasks/train_settings.h"
#include "tasks/word_alignment.h"

namespace fovea::tasks {
namespace {

data::ParallelText read_pairs(const std::string& source, const std::string& target, bool skip_bad) {
  const data::CorpusOptions options{.skip_bad = skip_bad};
  return target.empty() ? data::read_parallel_tsv(source, options)
                        : data::read_parallel(source, target, options);
}

data::Tokenizers learn(const TranslateTraining& training, const data::ParallelText& text,
                       TranslateObserver& observer) {
  observer.on_note(message("learning ",
                           *training.vocabulary == 0 ? "all" : std::to_string(*training.vocabulary),
                           " tokens (", training.tokenizer, ") from ", text.size(), " pairs"));
  const std::span<const std::string> source(text.source), target(text.target);
  const auto from = [&](std::span<const std::span<const std::string>> texts) {
    return learn_tokenizer(training.tokenizer, *training.vocabulary, texts);
  };
  if (!training.joint) return {from({&source, 1}), from({&target, 1})};
  const std::span<const std::string> both[] = {source, target};
  const auto joint = from(both);
  return {joint, joint};
}

// Loss, perplexity and BLEU of the model as it stands.
class Validator {
 public:
  Validator(const data::ParallelText& text, const LoadedTranslator& loaded, const TranslateTraining& training,
            TranslateObserver& observer)
      : parts_(loaded),
        training_(training),
        observer_(observer),
        ids_(data::encode_parallel(text, loaded.tokenizers)) {
    const auto count = static_cast<size_t>(std::min(training.valid_sentences, text.size()));
    source_.assign(text.source.begin(), text.source.begin() + static_cast<int64_t>(count));
    reference_.assign(text.target.begin(), text.target.begin() + static_cast<int64_t>(count));
  }

  train::Validation run() {
    const nn::Prepared prepared(*parts_.network);
    nn::Context context;
    double sum = 0;
    int64_t tokens = 0;
    data::BatchStream stream(ids_, {.max_tokens = 4096, .shuffle = false});
    for (int64_t i = 0; i < stream.batches_per_epoch(); ++i) {
      const OutputLoss loss = parts_.network->loss(stream.next(), 0, context);
      sum += loss.negative_log_likelihood;
      tokens += loss.count;
    }
    const double mean = sum / static_cast<double>(std::max<int64_t>(1, tokens));
    std::vector<std::string> translated;
    for (const auto& best : Translator(*parts_.network, parts_.tokenizers).translate(source_, {.beam = 1}))
      translated.push_back(best.front().text);
    const std::vector<std::string> references[] = {reference_};
    const double bleu = infer::bleu(translated, references,
                                    {.tokenize = training_.tokenize, .lowercase = training_.lowercase})
                            .score;
    const size_t shown = static_cast<size_t>(turn_++) % source_.size();
    observer_.on_sample({source_[shown], reference_[shown], translated[shown]});
    return {bleu, {{"valid_loss", mean}, {"perplexity", std::exp(mean)}, {"bleu", bleu}}};
  }

 private:
  const LoadedTranslator& parts_;
  const TranslateTraining& training_;
  TranslateObserver& observer_;
  data::ParallelIds ids_;
  std::vector<std::string> source_, reference_;
  int64_t turn_ = 0;
};

// The model's whole settings. A word of one language and one of another do not share a vector because they
// share a number: tables are one for both sides only where the vocabulary is.
Json config_for(const std::string& model, Json settings, const data::Tokenizers& tokenizers) {
  const auto complete = [&] {
    return models::model_config<models::Translators>(
        model, settings, models::vocabularies(tokenizers.source->size(), tokenizers.target->size()));
  };
  Json config = complete();
  if (tokenizers.joint() || config.value("tie", "") != "all") return config;
  settings["tie"] = "output";
  return complete();
}

// Decides what follows from the data.
void fit_to_data(const data::ParallelText& text, const Json& model_settings, TranslateTraining& training) {
  const TextSize source = text_size(text.source, training.max_length),
                 target = text_size(text.target, training.max_length);
  const bool large = model_settings.value("width", 0) >= 512;
  if (!training.vocabulary && training.from.empty())
    training.vocabulary = training.tokenizer == "words" ? 30'000
                          : training.joint ? vocabulary_for(joined(source, target), large ? 32'000 : 8'000)
                                           : vocabulary_for(source.tokens > target.tokens ? source : target,
                                                            large ? 32'000 : 8'000);
  // Recurrent models learn from smaller batches.
  const int64_t most = training.model == "transformer" ? 4096 : 2048;
  if (!training.batch_tokens)
    training.batch_tokens = batch_for(std::max(source.tokens, target.tokens), 512, most);
}

uint64_t fingerprint(const data::ParallelText& text) {
  DataFingerprint print;
  print.add(text.source);
  print.add(text.target);
  return print.value();
}

// Settings of validation, without any.
void check_unvalidated(const TranslateTraining& training) {
  const TranslateTraining standard;
  for (const auto& [name, given] :
       {std::pair{"valid_sentences", training.valid_sentences != standard.valid_sentences},
        {"tokenize", training.tokenize != standard.tokenize},
        {"lowercase", training.lowercase != standard.lowercase}})
    require(!given, flag_name(name),
            " describes how validation computes BLEU; give --valid, or leave it out");
}

CardText card_text(const TranslateFiles& files) {
  const auto both = [](const std::string& source, const std::string& target) {
    return "`" + source + (target.empty() ? "`" : "` and `" + target + "`");
  };
  return {.title = "A translator made with Fovea",
          .train = both(files.train_source, files.train_target),
          .valid = both(files.valid_source, files.valid_target),
          .use = "fovea translate " + files.out.string() + " < source.txt > target.txt"};
}

void check_teacher_forcing(const TranslateTraining& training, const std::string& model, const char* advice) {
  require(training.teacher_forcing == 1 || model != "transformer",
          "teacher_forcing: a Transformer is always fed the target's own words; ", advice);
}

}  // namespace

void apply_preset(const std::string& name, TranslateTraining& training, Json& settings) {
  // A trained model is moved little.
  if (!training.from.empty()) {
    training.learning_rate = 3e-5;
    training.batch_tokens = 2048;
    settings = Json::object();
    return;
  }
  if (training.model != "transformer") {
    // Recurrent models fit small data sooner than they generalise.
    training.warmup = 0.05;
    training.learning_rate = name == "base" ? 1e-3 : name == "small" ? 1.5e-3 : 3e-3;
    const int64_t width = name == "base" ? 512 : name == "small" ? 256 : 128;
    settings = {{"embedding", width}, {"width", width}, {"dropout", 0.3}, {"tie", "output"}};
    if (training.model == "luong") settings["layers"] = name == "tiny" ? 1 : 2;
    return;
  }
  // Pre-norm where runs are short: it learns with a short warm-up.
  if (name == "tiny") {
    settings = {{"width", 128},        {"heads", 4},     {"hidden", 256},     {"encoder_layers", 4},
                {"decoder_layers", 4}, {"dropout", 0.3}, {"norm_first", true}};
    training.learning_rate = 5e-3;
  } else if (name == "small") {
    settings = {{"width", 256},        {"heads", 4},     {"hidden", 1024},    {"encoder_layers", 3},
                {"decoder_layers", 3}, {"dropout", 0.2}, {"norm_first", true}};
    training.learning_rate = 2e-3;
  } else {
    settings = {{"width", 512},        {"heads", 8},          {"hidden", 2048},
                {"encoder_layers", 6}, {"decoder_layers", 6}, {"dropout", 0.1}};
    training.learning_rate = 7e-4;
  }
}

void check_training(const TranslateTraining& training, const Json& model_settings) {
  require(training.teacher_forcing >= 0 && training.teacher_forcing <= 1, "teacher_forcing: got ",
          training.teacher_forcing, ", wanted 0 to 1");
  // Of a folder to train on, train_translate() looks at the model in it.
  if (training.from.empty())
    check_teacher_forcing(training, training.model, "choose --model bahdanau, luong or rnn");
  check_rates(training.learning_rate, training.warmup, training.smoothing);
  require(training.valid_sentences > 0, "valid_sentences: got ", training.valid_sentences,
          ", wanted at least 1");
  require(training.max_length >= 1, "max_length: got ", training.max_length, ", wanted at least 1");
  check_vocabulary(training.tokenizer, training.vocabulary);
  require(!training.batch_tokens || *training.batch_tokens >= 1, "batch_tokens: got ",
          training.batch_tokens.value_or(0), ", wanted at least 1");
  require(
      training.joint || !model_settings.contains("tie") || model_settings["tie"] != "all",
      "tie: got 'all', which wants one vocabulary for both languages, but joint is false; choose output or "
      "none");
}

TrainingOutcome train_translate(const TranslateFiles& files, const TrainSettings<TranslateTraining>& settings,
                                const std::string& command, TranslateObserver& observer,
                                const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  check_settings(settings);
  if (files.valid_source.empty()) check_unvalidated(settings.training);
  // A model that cannot be read leaves no folder behind.
  const bool tuned = !settings.training.from.empty();
  LoadedTranslator loaded = tuned ? read_translation(settings.training.from, "float32") : LoadedTranslator{};
  if (tuned)
    check_teacher_forcing(settings.training, loaded.model,
                          "leave out --teacher-forcing, or choose a folder of a recurrent model");
  const data::ParallelText text =
      read_pairs(files.train_source, files.train_target, settings.training.skip_bad);
  if (text.skipped.total() > 0) observer.on_note(text.skipped.text());
  const data::ParallelText valid_text =
      files.valid_source.empty()
          ? data::ParallelText{}
          : read_pairs(files.valid_source, files.valid_target, settings.training.skip_bad);
  TranslateTraining training = settings.training;
  fit_to_data(text, settings.model, training);
  const RunFolder folder(files.out,
                         run_identity<TranslateTraining>({training, settings.options, settings.model},
                                                         fingerprint(text), counted(text.size(), "pair")),
                         observer);

  loaded.tokenizers =
      folder.tokenizers([&] { return tuned ? loaded.tokenizers : learn(training, text, observer); });
  if (!tuned) {
    loaded.model = training.model;
    loaded.config = config_for(training.model, settings.model, loaded.tokenizers);
    Rng rng(settings.options.seed);
    loaded.network = models::make_model<models::Translators>(training.model, loaded.config, rng);
  }
  const data::ParallelIds ids = data::encode_parallel(text, loaded.tokenizers, training.max_length);
  if (ids.dropped > 0)
    observer.on_note(
        message(ids.dropped, " pairs of more than ", training.max_length, " tokens are left out"));
  require(ids.size() > 0, files.train_source, ": no pair has at most ", training.max_length,
          " tokens; raise max_length");
  observer.on_note(message(ids.size(), " pairs, vocabulary of ", loaded.tokenizers.target->size(), ", ",
                           loaded.network->parameter_count(), " parameters"));
  std::optional<Validator> validator;
  if (valid_text.size() > 0) validator.emplace(valid_text, loaded, training, observer);

  TrainingPlan plan;
  plan.network = loaded.network.get();
  plan.rule = train::Adam{.learning_rate = training.learning_rate, .beta2 = 0.98, .epsilon = 1e-9};
  plan.schedule = schedule_of(training.schedule, training.warmup);
  plan.options = settings.options;
  plan.passes = tuned ? 3 : 40;
  for (int64_t i = 0; i < ids.size(); ++i)
    plan.sizes.push_back({ids.target.length(i) + 1, ids.source.length(i) + 1});
  plan.batch_size = *training.batch_tokens;
  plan.batch_unit = plan.unit = "tokens";
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    data::Batch batch = data::make_batch(ids, chosen);
    if (training.teacher_forcing < 1)
      models::feed_own_tokens(*loaded.network, training.teacher_forcing, context.next_seed(), batch);
    const OutputLoss loss = loaded.network->loss(batch, training.smoothing, context);
    return train::BatchLoss{loss.loss, static_cast<double>(loss.count)};
  };
  if (validator) plan.validate = [&] { return validator->run(); };
  plan.score_name = "BLEU";
  plan.should_stop = should_stop;
  plan.save_config = [&](const std::filesystem::path& out) { save_translation_config(out, loaded); };
  plan.save_model = [&](const std::filesystem::path& out) {
    if (valid_text.size() > 0)
      loaded.alignment = choose_alignment(loaded, ids, data::encode_parallel(valid_text, loaded.tokenizers));
    save_translation(out, loaded);
  };
  plan.card = card_text(files);
  plan.command = command;
  return run_training(folder, plan, observer);
}

}  // namespace fovea::tasks
