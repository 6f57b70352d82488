#include "models/long_attention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"

namespace fovea::models {
namespace {

std::vector<patterns::TokenRange> ranges_of(const std::vector<int64_t>& places) {
  std::vector<patterns::TokenRange> ranges;
  for (const int64_t place : places) ranges.push_back({place, place});
  return ranges;
}

// Where all texts have one pattern, texts of equal length share its plan.
Pattern packed(const std::vector<int64_t>& lengths, std::vector<Pattern> parts) {
  const bool same =
      std::all_of(parts.begin(), parts.end(), [&](const Pattern& part) { return part == parts[0]; });
  if (same && !parts.empty()) parts.resize(1);
  return within(lengths, std::move(parts));
}

// BigBird's random blocks, other ones for each head. As published, they are the same at every step.
Pattern with_random_blocks(const Pattern& own, const BertConfig& c, int64_t layer) {
  std::vector<Pattern> of_heads;
  for (int64_t head = 0; head < c.num_attention_heads; ++head)
    of_heads.push_back(
        own | random_blocks(c.block_size, c.num_random_blocks, layer * c.num_attention_heads + head));
  return heads(std::move(of_heads));
}

}  // namespace

LongAttention::LongAttention(const BertConfig& config, const Sentences& texts,
                             const data::GlobalTokens& global, bool training) {
  FOVEA_ASSERT(config.is_long());
  size_t begin = 0;
  const int64_t added = config.added_global_tokens;
  for (const int64_t length : texts.lengths) {
    std::vector<int64_t> places(static_cast<size_t>(added));
    std::iota(places.begin(), places.end(), 0);
    for (const int64_t place : global.places(texts.ids.subspan(begin, static_cast<size_t>(length))))
      places.push_back(added + place);
    chosen_.push_back(std::move(places));
    lengths_.push_back(added + length);
    begin += static_cast<size_t>(length);
  }
  if (config.model_type == "longformer")
    lay_out_longformer(config);
  else
    lay_out_big_bird(config, training);
}

void LongAttention::add_global(const std::vector<int64_t>& places, int64_t begin, int64_t tokens) {
  for (const int64_t place : places) global_.rows.push_back(static_cast<int32_t>(begin + place));
  global_.counts.push_back(static_cast<int64_t>(places.size()));
  global_.lengths.push_back(tokens);
}

// attention_window counts both sides. A global token that is in a row's window is seen once.
void LongAttention::lay_out_longformer(const BertConfig& config) {
  int64_t begin = 0;
  for (size_t i = 0; i < lengths_.size(); ++i) {
    add_global(chosen_[i], begin, lengths_[i]);
    begin += lengths_[i];
  }
  std::map<int64_t, Pattern> of_windows;  // layers of equal windows share a plan
  for (const int64_t both : config.attention_window) {
    const auto [place, fresh] = of_windows.try_emplace(both);
    if (fresh) {
      const Pattern band = window(both / 2, both / 2);
      std::vector<Pattern> parts;
      for (const std::vector<int64_t>& places : chosen_)
        parts.push_back(places.empty() ? band : band | global_keys(ranges_of(places)));
      place->second = packed(lengths_, std::move(parts));
    }
    layers_.push_back(place->second);
  }
}

// A row sees its own block, the one before and the one after, the first and the last, and random ones. The
// first and the last block see all. In use, `transformers` takes block 0 for every random block: a row then
// sees it 1 + r times, as if ln(1 + r) were added to its scores.
void LongAttention::lay_out_big_bird(const BertConfig& config, bool training) {
  const int64_t block = config.block_size, random = config.num_random_blocks;
  const bool sparse = config.attention_type == "block_sparse";
  const bool drawn = training && random > 0 && config.random_blocks == "paper";
  const bool repeated = !drawn && random > 0 && config.random_blocks != "none";
  // The same arithmetic for every text, long or short, whatever the texts beside it are.
  const Tensor bias = sparse && repeated
                          ? Tensor::zeros({std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0})})
                          : Tensor();
  std::vector<Pattern> parts;
  std::vector<uint8_t> is_sparse;
  int64_t begin = 0;
  for (size_t i = 0; i < lengths_.size(); ++i) {
    const int64_t tokens = lengths_[i];
    is_sparse.push_back(sparse && tokens > (5 + 2 * random) * block);
    if (is_sparse.back()) {
      const int64_t last = (tokens - 1) / block * block;
      std::vector<patterns::TokenRange> seen = ranges_of(chosen_[i]);
      seen.insert(seen.end(), {{0, block - 1}, {last, tokens - 1}});
      parts.push_back(block_window(block, 1, 1) | global_keys(seen));
      std::vector<int64_t> rows(static_cast<size_t>(block + tokens - last));
      std::iota(rows.begin(), rows.begin() + block, 0);
      std::iota(rows.begin() + block, rows.end(), last);
      rows.insert(rows.end(), chosen_[i].begin(), chosen_[i].end());
      std::sort(rows.begin(), rows.end());
      rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
      add_global(rows, begin, tokens);
      if (bias.defined()) std::fill_n(bias.data() + begin, block, std::log1p(static_cast<float>(random)));
    } else {
      parts.push_back(full());
      add_global({}, begin, tokens);
    }
    begin += tokens;
  }
  if (bias.defined()) key_bias_ = Var(bias);
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (layer > 0 && !drawn) {
      layers_.push_back(layers_[0]);
      continue;
    }
    std::vector<Pattern> own = parts;
    for (size_t i = 0; i < own.size(); ++i)
      if (drawn && is_sparse[i]) own[i] = with_random_blocks(own[i], config, layer);
    layers_.push_back(packed(lengths_, std::move(own)));
  }
}

}  // namespace fovea::models
