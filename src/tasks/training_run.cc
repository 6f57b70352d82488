#include "tasks/training_run.h"

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "nn/weights.h"
#include "tasks/learning_curve.h"
#include "train/averaging.h"
#include "train/checkpoint.h"

namespace fovea::tasks {
namespace {

// The weights that validation saw: the moving average of a run that keeps one.
void load_best(const std::filesystem::path& out, const nn::Module& network) {
  const train::CheckpointStore store(out);
  const auto set = store.best() ? store.best() : store.last();
  if (!set) return;
  const bool averaged = std::filesystem::exists(*set / "ema.safetensors");
  nn::load_weights(network, *set / (averaged ? "ema.safetensors" : "model.safetensors"));
}

void choose_weights(const TrainingRun& run, RunObserver& observer, TrainingOutcome& outcome) {
  const std::vector<std::filesystem::path> files = train::RecentWeights(run.out, run.options.average).files();
  if (files.size() < 2) return load_best(run.out, run.network);
  const std::filesystem::path mean = run.out / "checkpoints" / "average.safetensors";
  train::average_checkpoints(files, mean);
  nn::load_weights(run.network, mean);
  const auto count = static_cast<int64_t>(files.size());
  if (!run.job.validate) {
    outcome.averaged = count;
    return observer.on_note(message("the model is the average of the last ", count, " checkpoints"));
  }
  const NoGrad no_grad;
  const double value = run.job.validate().value;
  const bool better = value >= outcome.best;
  observer.on_note(message("average of the last ", count, " checkpoints: ", run.score_name, " ", value,
                           "; best single checkpoint: ", outcome.best, "; the model is the ",
                           better ? "average" : "best single one"));
  if (!better) return load_best(run.out, run.network);
  outcome.best = value;
  outcome.averaged = count;
}

}  // namespace

std::shared_ptr<const data::Tokenizer> learn_tokenizer(const std::string& tokenizer, int64_t vocabulary,
                                                       std::span<const std::span<const std::string>> texts) {
  if (tokenizer == "words") return data::count_words(texts, {.max_size = vocabulary});
  require(tokenizer == "bpe" || tokenizer == "unigram", "tokenizer: got ", in_quotes(tokenizer),
          ", wanted bpe, unigram or words");
  return data::train_sentencepiece(texts, {.type = tokenizer, .size = static_cast<int32_t>(vocabulary)});
}

data::Tokenizers obtain_tokenizers(const std::filesystem::path& out,
                                   const std::function<data::Tokenizers()>& learn) {
  const std::filesystem::path kept = out / "tokenizer";
  if (std::filesystem::is_directory(kept)) return data::load_tokenizers(kept);
  data::Tokenizers tokenizers = learn();
  DirectorySet set(kept);
  data::save_tokenizers(set.path(), tokenizers);
  set.commit();
  return tokenizers;
}

TrainingOutcome run_training(const TrainingRun& run, RunObserver& observer) {
  train::Job job = run.job;
  job.higher_is_better = true;
  train::Trainer trainer(run.network, run.rule, run.schedule, run.options, job);
  TrainingOutcome outcome;
  outcome.parameters = run.network.parameter_count();
  outcome.outcome = trainer.run(run.out, observer);
  outcome.step = trainer.step();
  if (job.validate && trainer.best().best) outcome.best = *trainer.best().best;
  if (outcome.outcome != train::Outcome::interrupted) choose_weights(run, observer, outcome);
  return outcome;
}

void finish_folder(const std::filesystem::path& out, const std::string& card) {
  write_curve(out);
  write_atomically(out / "README.md", card);
}

std::string weights_note(const TrainingOutcome& outcome) {
  if (outcome.averaged == 0) return "";
  return message("The weights are the average of the last ", outcome.averaged, " checkpoints.\n");
}

}  // namespace fovea::tasks
