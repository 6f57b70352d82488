// The measurements behind `fovea bench`: each takes its options and returns a row, as JSON and as text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>

#include "base/fields.h"
#include "io/json.h"

namespace fovea::bench {

struct Row {
  Json json;         // null for a row that is for people only
  std::string text;  // ends with a line break
};

// FMA peak and memory bandwidth of this machine.
Row bench_peak();

struct AttentionOptions {
  int64_t batch = 1, heads = 8, kv_heads = 0, n = 2048, nk = 0, d = 64, dv = 0;
  std::string spec = "scaled_dot / full / soft";
  std::string direction = "forward";
  bool projected_keys = false;
  double seconds = 1;

  static constexpr auto fields() {
    using T = AttentionOptions;
    return std::tuple{Field{"batch", &T::batch, "sequences"},
                      Field{"heads", &T::heads, "query heads"},
                      Field{"kv_heads", &T::kv_heads, "key and value heads; 0: as many as --heads"},
                      Field{"n", &T::n, "queries"},
                      Field{"nk", &T::nk, "keys; 0: as many as --n"},
                      Field{"d", &T::d, "features of queries and keys"},
                      Field{"dv", &T::dv, "features of values; 0: as many as --d"},
                      Field{"spec", &T::spec, "attention to measure: score / pattern / selection"},
                      Field{"direction", &T::direction, "forward, or both (forward and gradients)"},
                      Field{"projected_keys", &T::projected_keys,
                            "additive score: keys are already multiplied by W, as in a decoder"},
                      Field{"seconds", &T::seconds, "time to spend measuring, in seconds"}};
  }
};
Row bench_attention(AttentionOptions options);

struct OpsOptions {
  std::string filter;
  double seconds = 0.5;
  bool limits = true;
};
// Calls on_row as soon as an op was measured; first, with limits, what the machine gives.
void bench_ops(const OpsOptions& options, const std::function<void(const Row&)>& on_row);

struct TrainOptions {
  std::string model = "transformer", preset = "tiny";
  double seconds = 2;

  static constexpr auto fields() {
    using T = TrainOptions;
    return std::tuple{Field{"model", &T::model, "model to train, as in fovea train translate"},
                      Field{"preset", &T::preset, "size of the transformer: tiny, base or marian"},
                      Field{"seconds", &T::seconds, "time to spend measuring, in seconds"}};
  }
};
Row bench_train(const TrainOptions& options);

struct ClassifyOptions {
  std::string model = "lstm", preset = "small";
  int64_t texts = 32, shortest = 20, longest = 200;
  double seconds = 2;

  static constexpr auto fields() {
    using T = ClassifyOptions;
    return std::tuple{
        Field{"model", &T::model, "model to train: lstm, han, transformer, or bert (fine-tuning)"},
        Field{"preset", &T::preset, "size: small, or for bert tiny, mini or base"},
        Field{"texts", &T::texts, "texts in a batch"},
        Field{"shortest", &T::shortest, "tokens of the shortest text"},
        Field{"longest", &T::longest, "tokens of the longest text"},
        Field{"seconds", &T::seconds, "time to spend measuring, in seconds"}};
  }
};
Row bench_classify(const ClassifyOptions& options);

struct TranslateOptions {
  std::string model = "transformer", preset = "tiny", compute = "float32";
  int64_t batch = 32, sentences = 0, length = 24, beam = 1;
  double seconds = 2;

  static constexpr auto fields() {
    using T = TranslateOptions;
    return std::tuple{
        Field{"model", &T::model, "model to run, as in fovea train translate"},
        Field{"preset", &T::preset,
              "size of the transformer: tiny, base or marian (that of most OPUS-MT models)"},
        Field{"batch", &T::batch, "sentences translated together"},
        Field{"sentences", &T::sentences, "sentences in all; 0: two batches, or one sentence with --batch 1"},
        Field{"length", &T::length, "tokens of each translation"},
        Field{"beam", &T::beam, "hypotheses kept at each step; 1 is greedy search"},
        Field{"compute", &T::compute, "arithmetic of the matrix products: float32 or int8"},
        Field{"seconds", &T::seconds, "time to spend measuring, in seconds"}};
  }
};
Row bench_translate(TranslateOptions options);

struct EncodeOptions {
  std::string model = "bert", shape = "base", compute = "float32", direction = "forward";
  int64_t batch = 8, tokens = 128, lines = 0, layers = 0;
  double seconds = 2;

  static constexpr auto fields() {
    using T = EncodeOptions;
    return std::tuple{
        Field{"model", &T::model, "bert, longformer (windows of 512) or bigbird (blocks of 64)"},
        Field{"shape", &T::shape, "base (12 layers of 768) or minilm (6 layers of 384)"},
        Field{"batch", &T::batch, "texts read together"},
        Field{"tokens", &T::tokens, "tokens of each text"},
        Field{"lines", &T::lines, "texts in all; 0: one batch"},
        Field{"layers", &T::layers, "layers; 0: those of the shape"},
        Field{"compute", &T::compute, "arithmetic of the matrix products: float32 or int8"},
        Field{"direction", &T::direction, "forward, or both (forward and gradients)"},
        Field{"seconds", &T::seconds, "time to spend measuring, in seconds"}};
  }
};
Row bench_encode(EncodeOptions options);

}  // namespace fovea::bench
