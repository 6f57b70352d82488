#include "tasks/training_run.h"

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "nn/weights.h"
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

ChosenWeights choose_weights(const std::filesystem::path& out, int64_t average, const nn::Module& network,
                             const ValidationScore& score, RunObserver& observer) {
  ChosenWeights chosen{.score = score.best};
  const std::vector<std::filesystem::path> files = train::RecentWeights(out, average).files();
  if (files.size() < 2) {
    load_best(out, network);
    return chosen;
  }
  const std::filesystem::path mean = out / "checkpoints" / "average.safetensors";
  train::average_checkpoints(files, mean);
  nn::load_weights(network, mean);
  const auto count = static_cast<int64_t>(files.size());
  if (!score.value) {
    chosen.averaged = count;
    observer.on_note(message("the model is the average of the last ", count, " checkpoints"));
    return chosen;
  }
  const NoGrad no_grad;
  const double value = score.value();
  const bool better = value >= score.best;
  observer.on_note(message("average of the last ", count, " checkpoints: ", score.name, " ", value,
                           "; best single checkpoint: ", score.best, "; the model is the ",
                           better ? "average" : "best single one"));
  if (better)
    chosen = {value, count};
  else
    load_best(out, network);
  return chosen;
}

}  // namespace fovea::tasks
