// A translator: a model folder opened, from lines of text to lines of text.
//
// The folder holds config.json, model.safetensors and the tokenizer, and nothing else is needed.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "data/tokenizer.h"
#include "infer/inference.h"
#include "io/json.h"
#include "models/translation.h"

namespace fovea::tasks {

struct TranslateOptions {
  int64_t beam = 5;
  int64_t n_best = 1;
  float length_penalty = 1;
  double max_length_factor = 2;
  int64_t batch_tokens = 2048;
  int64_t max_tokens = 512;
  bool scores = false;  // wanted of greedy search too, which is faster without

  static constexpr auto fields() {
    using T = TranslateOptions;
    return std::tuple{
        Field{"beam", &T::beam, "hypotheses kept at each step; 1 is greedy search"},
        Field{"n_best", &T::n_best, "translations printed for a line, best first; at most --beam"},
        Field{"length_penalty", &T::length_penalty,
              "hypotheses are ranked by log-probability / length^N; a larger N prefers longer translations"},
        Field{"max_length_factor", &T::max_length_factor,
              "a translation has at most N times as many tokens as the source, plus 10"},
        Field{"batch_tokens", &T::batch_tokens,
              "source tokens translated at once; changes speed and memory, not the result"},
        Field{
            "max_tokens", &T::max_tokens,
            "maximum number of source tokens of a line; the rest of a longer line is not translated, and a notice "
            "on standard error says so"}};
  }
};

struct Translation {
  std::string text;
  double score = 0;                  // 0 of greedy search unless wanted
  std::vector<int32_t> tokens = {};  // ids, without begin and end
  int64_t cut_to = 0;                // source tokens read, where the line has more; 0: all were read
};

// The attention that shows which words belong together, as training measured it (tasks/word_alignment.h).
struct AlignmentChoice {
  int64_t layer = 0;
  int64_t head = -1;     // -1: the average of the layer's heads
  double agreement = 0;  // share of certain links that it agrees with
};

// A model with its tokenizers. Several threads may use one at once, as long as none trains or saves it.
struct LoadedTranslator {
  std::string model;  // its name in the registry
  Json config;
  std::unique_ptr<models::TranslationModel> network;
  data::Tokenizers tokenizers;
  std::optional<AlignmentChoice> alignment = {};  // empty: not measured
  Compute compute = Compute::float32;  // int8: the network's matrices are rounded to what int8 can say
  // Of a published MarianMT folder: its own config.json. Such a model is saved as it came, so that `transformers`
  // reads it. Null: Fovea's own.
  Json published = {};
  nn::Prepared prepared = {};  // of a folder opened for use
};

// Reads a folder, Fovea's own or one of MarianMT. compute: "float32" or "int8"; empty: what the folder says.
// Throws Error naming the file when something is missing, damaged or does not fit.
LoadedTranslator read_translation(const std::filesystem::path& folder, const std::string& compute = "");
// The same, opened for use: it may not be saved or trained, for its layers keep their matrices in prepared form only.
LoadedTranslator load_translation(const std::filesystem::path& folder, const std::string& compute = "");
// Writes config.json, model.safetensors (of integers when loaded.compute is int8) and the tokenizer, each
// atomically; a published model as it came, unless it is of integers.
void save_translation(const std::filesystem::path& folder, const LoadedTranslator& loaded);
// All but the weights.
void save_translation_config(const std::filesystem::path& folder, const LoadedTranslator& loaded);

// translate() may be called by several threads at once.
class Translator {
 public:
  // The network must outlive this object, and its weights must not change meanwhile.
  Translator(const models::TranslationModel& network, const data::Tokenizers& tokenizers,
             Compute compute = Compute::float32);

  // For each line its n_best translations, best first; an empty line gives empty ones. A line's result does
  // not depend on the other lines.
  std::vector<std::vector<Translation>> translate(std::span<const std::string> lines,
                                                  const TranslateOptions& options) const;

 private:
  const data::Tokenizers tokenizers_;
  const Inference inference_;
};

}  // namespace fovea::tasks
