#include "tasks/train_translate.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "data/batches.h"
#include "data/corpus.h"
#include "infer/bleu.h"
#include "models/registry.h"

namespace fovea::tasks {
namespace {

data::ParallelText read_pairs(const std::string& source, const std::string& target, bool skip_bad) {
  const data::CorpusOptions options{.skip_bad = skip_bad};
  return target.empty() ? data::read_parallel_tsv(source, options)
                        : data::read_parallel(source, target, options);
}

data::Tokenizers learn(const TranslateTraining& training, const data::ParallelText& text,
                       TranslateObserver& observer) {
  observer.on_note(message("learning ", training.tokenizer, " tokens from ", text.size(), " pairs"));
  const std::span<const std::string> source(text.source), target(text.target);
  const auto from = [&](std::span<const std::span<const std::string>> texts) {
    return learn_tokenizer(training.tokenizer, training.vocabulary, texts);
  };
  if (!training.joint) return {from({&source, 1}), from({&target, 1})};
  const std::span<const std::string> both[] = {source, target};
  const auto joint = from(both);
  return {joint, joint};
}

// Loss, perplexity and BLEU of the model as it stands.
class Validator {
 public:
  Validator(const data::ParallelText& text, const TranslationParts& parts, const TranslateTraining& training,
            TranslateObserver& observer)
      : parts_(parts),
        training_(training),
        observer_(observer),
        ids_(data::encode_parallel(text, parts.tokenizers)) {
    const auto count = static_cast<size_t>(std::min(training.valid_sentences, text.size()));
    source_.assign(text.source.begin(), text.source.begin() + static_cast<int64_t>(count));
    reference_.assign(text.target.begin(), text.target.begin() + static_cast<int64_t>(count));
  }

  train::Validation run() {
    const NoGrad no_grad;
    const nn::Prepared prepared(*parts_.network);
    nn::Context context;
    double sum = 0;
    int64_t tokens = 0;
    data::BatchStream stream(ids_, {.max_tokens = training_.batch_tokens, .shuffle = false});
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
  const TranslationParts& parts_;
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

std::string model_card(const TranslateFiles& files, const TrainingOutcome& outcome,
                       const std::string& command) {
  std::ostringstream card;
  card << "# A translator made with Fovea\n\n"
       << "Trained on `" << files.train_source
       << (files.train_target.empty() ? "" : "` and `" + files.train_target) << "`, " << outcome.step
       << " steps, " << outcome.parameters << " parameters.\n";
  if (outcome.best >= 0)
    card << "Best greedy BLEU on `" << files.valid_source << "` and `" << files.valid_target
         << "`: " << outcome.best << ".\n";
  card << weights_note(outcome) << "\n    " << command << "\n\nTranslate with it:\n\n    fovea translate "
       << files.out.string() << " < source.txt > target.txt\n";
  return card.str();
}

}  // namespace

void apply_preset(const std::string& name, TranslateTraining& training, Json& settings) {
  require(name == "tiny" || name == "small" || name == "base", "preset: got ", in_quotes(name),
          ", wanted tiny, small or base");
  if (training.model != "transformer") {
    // Recurrent models learn from smaller batches, and fit small data sooner than they generalise.
    training.batch_tokens = 2048;
    training.warmup = 500;
    training.learning_rate = name == "base" ? 1e-3 : name == "small" ? 1.5e-3 : 3e-3;
    training.vocabulary = name == "base" ? 16000 : name == "small" ? 8000 : 10000;
    const int64_t width = name == "base" ? 512 : name == "small" ? 256 : 128;
    settings = {{"embedding", width}, {"width", width}, {"dropout", 0.3}, {"tie", "output"}};
    if (training.model == "luong") settings["layers"] = name == "tiny" ? 1 : 2;
    return;
  }
  if (name == "tiny") {
    settings = {{"width", 128},        {"heads", 4},          {"hidden", 256},
                {"encoder_layers", 4}, {"decoder_layers", 4}, {"dropout", 0.3}};
    training.learning_rate = 5e-3;
    training.warmup = 2000;
    training.vocabulary = 10000;
  } else if (name == "small") {
    settings = {{"width", 256},        {"heads", 4},          {"hidden", 1024},
                {"encoder_layers", 3}, {"decoder_layers", 3}, {"dropout", 0.2}};
    training.learning_rate = 2e-3;
    training.warmup = 2000;
  } else {
    settings = {{"width", 512},        {"heads", 8},          {"hidden", 2048},
                {"encoder_layers", 6}, {"decoder_layers", 6}, {"dropout", 0.1}};
    training.learning_rate = 7e-4;
    training.warmup = 4000;
    training.vocabulary = 32000;
  }
}

TrainingOutcome train_translate(const TranslateFiles& files, const TranslateTraining& training,
                                const Json& model_settings, const train::TrainOptions& options,
                                const std::string& command, TranslateObserver& observer,
                                const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  models::check_settings<models::Translators>(training.model, model_settings);
  require(files.valid_source.empty() || training.valid_sentences > 0, "valid_sentences: got ",
          training.valid_sentences, ", wanted at least 1");
  require(
      training.joint || !model_settings.contains("tie") || model_settings["tie"] != "all",
      "tie: got 'all', which wants one vocabulary for both languages, but joint is false; choose output or "
      "none");
  const data::ParallelText text = read_pairs(files.train_source, files.train_target, training.skip_bad);
  if (text.skipped.total() > 0) observer.on_note(text.skipped.text());
  const data::ParallelText valid_text =
      files.valid_source.empty() ? data::ParallelText{}
                                 : read_pairs(files.valid_source, files.valid_target, training.skip_bad);
  make_directories(files.out);

  TranslationParts parts;
  parts.model = training.model;
  parts.tokenizers = obtain_tokenizers(files.out, [&] { return learn(training, text, observer); });
  parts.config = config_for(training.model, model_settings, parts.tokenizers);
  Rng rng(options.seed);
  parts.network = models::make_model<models::Translators>(training.model, parts.config, rng);
  const data::ParallelIds ids = data::encode_parallel(text, parts.tokenizers, training.max_length);
  if (ids.dropped > 0)
    observer.on_note(
        message(ids.dropped, " pairs of more than ", training.max_length, " tokens are left out"));
  require(ids.size() > 0, files.train_source, ": no pair has at most ", training.max_length,
          " tokens; raise max_length");

  observer.on_note(message(ids.size(), " pairs, ", parts.tokenizers.target->size(), " tokens, ",
                           parts.network->parameter_count(), " parameters"));
  data::BatchStream stream(ids, {.max_tokens = training.batch_tokens, .seed = options.seed});
  std::unique_ptr<Validator> validator;
  if (valid_text.size() > 0) validator = std::make_unique<Validator>(valid_text, parts, training, observer);

  train::Job job;
  job.next_loss = [&](nn::Context& context) {
    const data::Batch batch = stream.next();
    const OutputLoss loss = parts.network->loss(batch, training.smoothing, context);
    return train::BatchLoss{loss.loss, static_cast<double>(loss.count)};
  };
  job.position = [&] { return Json(stream.position().text()); };
  job.seek = [&](const Json& position) {
    require(position.is_string(), "checkpoint: the place in the data is damaged");
    stream.seek(data::BatchPosition::parse(position.get<std::string>()));
  };
  job.save_more = [&](const std::filesystem::path& folder) { save_translation_config(folder, parts); };
  if (validator) job.validate = [&] { return validator->run(); };
  job.should_stop = should_stop;
  job.identity = Json{{"task", "translate"},
                      {"model", parts.model},
                      {"settings", parts.config},
                      {"smoothing", training.smoothing},
                      {"seed", options.seed}};

  const train::ScheduleOptions schedule{.name = "inverse_sqrt", .warmup = training.warmup};
  const TrainingOutcome outcome = run_training(
      {.out = files.out,
       .network = *parts.network,
       .rule = train::Adam{.learning_rate = training.learning_rate, .beta2 = 0.98, .epsilon = 1e-9},
       .schedule = schedule,
       .options = options,
       .job = job,
       .score_name = "BLEU"},
      observer);
  if (outcome.outcome == train::Outcome::interrupted) return outcome;
  save_translation(files.out, parts);
  finish_folder(files.out, model_card(files, outcome, command));
  return outcome;
}

}  // namespace fovea::tasks
