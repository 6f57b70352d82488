// Reading synthetic texts with an encoder of the BERT family, or a step of its training, held against the
// machine's FMA peak.
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "base/error.h"
#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "io/json.h"
#include "models/bert.h"
#include "models/lengthen.h"
#include "tensor/allocator.h"

namespace fovea::bench {
namespace {

models::BertConfig config_of(const EncodeOptions& o) {
  const bool base = o.shape == "base";
  require(base || o.shape == "minilm", "bench encode: shape ", in_quotes(o.shape), ", wanted base or minilm");
  models::BertConfig config;
  config.model_type = o.model == "bigbird" ? "big_bird" : o.model;
  require(o.model == "bert" || o.model == "longformer" || o.model == "bigbird", "bench encode: model ",
          in_quotes(o.model), ", wanted bert, longformer or bigbird");
  config.hidden_size = base ? 768 : 384;
  config.num_hidden_layers = o.layers > 0 ? o.layers : base ? 12 : 6;
  config.num_attention_heads = 12;
  config.intermediate_size = 4 * config.hidden_size;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  config.max_position_embeddings = o.tokens + 1;
  config.block_size = models::kBigBirdBlock;
  config.num_random_blocks = models::kBigBirdRandomBlocks;
  if (o.model == "longformer")
    config.attention_window.assign(static_cast<size_t>(config.num_hidden_layers), models::kLongformerWindow);
  return config;
}

// Pairs (query, key) of one text.
double pairs_of(const models::BertConfig& config, double tokens) {
  if (config.model_type == "longformer")
    return tokens * std::min<double>(tokens, models::kLongformerWindow + 1);
  const double block = models::kBigBirdBlock;
  const bool sparse =
      config.model_type == "big_bird" && tokens > (5 + 2 * models::kBigBirdRandomBlocks) * block;
  // Five blocks for each row; the first and the last block see all.
  return sparse ? (tokens - 2 * block) * 5 * block + 2 * block * tokens : tokens * tokens;
}

double flops_of(const models::BertConfig& config, const EncodeOptions& o, bool both) {
  const auto width = static_cast<double>(config.hidden_size),
             hidden = static_cast<double>(config.intermediate_size);
  const auto tokens = static_cast<double>(o.tokens);
  const double matrices = 2 * (4 * width * width + 2 * width * hidden) * tokens;
  const double attention = 4 * width * pairs_of(config, tokens);
  return static_cast<double>(config.num_hidden_layers * o.lines) *
         (matrices * (both ? 3 : 1) + attention * (both ? 3.5 : 1));
}

}  // namespace

Row bench_encode(EncodeOptions o) {
  if (o.lines == 0) o.lines = o.batch;
  for (const int64_t size : {o.batch, o.tokens, o.lines})
    require(size >= 1 && size <= 1 << 17, "bench encode: a size of ", size, ", wanted 1 to ", 1 << 17);
  require(o.layers >= 0 && o.layers <= 100, "bench encode: ", o.layers, " layers, wanted at most 100");
  require(o.direction == "forward" || o.direction == "both", "bench encode: direction ",
          in_quotes(o.direction), ", wanted forward or both");
  const bool both = o.direction == "both";
  const Compute compute = compute_named(o.compute);
  require(!both || compute == Compute::float32, "bench encode: training computes in float32");
  const models::BertConfig config = config_of(o);
  Rng rng(1);
  const models::Bert network(config, {}, rng);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < o.batch * o.tokens; ++i)
    ids.push_back(static_cast<int32_t>(2 + rng.below(static_cast<uint32_t>(config.vocab_size - 2))));
  trim_memory();
  const MemoryWatch memory;
  nn::Prepared prepared;
  if (!both) prepared = nn::Prepared(network, compute);
  const auto read = [&](int64_t lines) {
    const std::vector<int32_t> lengths(static_cast<size_t>(lines), static_cast<int32_t>(o.tokens));
    nn::Context context{.training = both};
    const std::span<const int32_t> tokens(ids.data(), static_cast<size_t>(lines * o.tokens));
    return network.hidden({tokens, lengths}, {}, context);
  };
  const auto step = [&] {
    for (int64_t line = 0; line < o.lines; line += o.batch) {
      const int64_t lines = std::min(o.batch, o.lines - line);
      if (both) {
        mean(read(lines)).backward();
        network.clear_grad();
      } else {
        const NoGrad no_grad;
        read(lines);
      }
    }
  };
  Measured result = measure_beside_peak(step, o.seconds);
  result.peak_bytes = memory.peak_bytes();
  const double flops = flops_of(config, o, both);
  const auto tokens = static_cast<double>(o.lines * o.tokens);
  Json line{{"model", o.model},
            {"shape", o.shape},
            {"threads", num_threads()},
            {"batch", o.batch},
            {"tokens", o.tokens},
            {"lines", o.lines},
            {"layers", config.num_hidden_layers},
            {"compute", o.compute},
            {"direction", o.direction},
            {"tokens_per_second", tokens / result.seconds}};
  line.update(work_json(result, flops));
  return {std::move(line),
          message(o.model, " ", o.shape, ", ", o.lines, " texts of ", o.tokens, " tokens, batch ", o.batch,
                  ", ", o.compute, ": ", decimals(result.seconds * 1e3, 1), " ms (best of ", result.runs,
                  "), ", decimals(tokens / result.seconds, 0), " tokens/s", work_text(result, flops), "\n")};
}

}  // namespace fovea::bench
