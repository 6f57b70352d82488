#include "models/lengthen.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "autograd/tape.h"
#include "base/error.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

BertConfig long_config(const Bert& from, const std::string& to, int64_t max_tokens) {
  const BertConfig& old = from.config();
  const bool longformer = to == "longformer";
  require(longformer || to == "big_bird", "got the type ", in_quotes(to), ", wanted longformer or big_bird");
  require(old.model_type == "bert" || old.model_type == "roberta", "a model of type ", old.model_type,
          " cannot be made into one of long texts; wanted a BERT or RoBERTa folder");
  constexpr int64_t kMostTokens = 1 << 20;
  require(max_tokens > old.longest() && max_tokens <= kMostTokens, "max_tokens: got ", max_tokens,
          ", wanted ", old.longest() + 1, " to ", kMostTokens, ": the model reads ", old.longest(),
          " tokens already");
  // Longformer's head for masked tokens is gelu, whatever the layers are; BigBird's heads are as its layers are.
  const bool gelu = bert_activation(old.hidden_act) == Activation::gelu;
  require(gelu || from.masked_lm == nullptr || longformer == (old.model_type == "roberta"), "hidden_act is ",
          old.hidden_act, ": the head for masked tokens would compute something else in a ", to, " model");
  require(longformer || from.classifier == nullptr,
          "BigBird's head for labels computes something else; convert the encoder and train it: fovea train "
          "classify --from");
  BertConfig config = old;
  config.model_type = to;
  config.max_position_embeddings = config.first_position() + max_tokens;
  if (longformer)
    config.attention_window.assign(static_cast<size_t>(config.num_hidden_layers), kLongformerWindow);
  config.block_size = kBigBirdBlock;
  config.num_random_blocks = kBigBirdRandomBlocks;
  return config;
}

// The rows of places, one copy of the old ones after the other. Those before the first place stay.
Tensor repeated_positions(const BertConfig& old, const BertConfig& config, const Tensor& before) {
  const int64_t width = old.hidden_size, first = config.first_position(), old_first = old.first_position();
  const Tensor positions = Tensor::zeros({config.max_position_embeddings, width}), rows = before.contiguous();
  const auto copy = [&](int64_t from, int64_t to, int64_t count) {
    std::copy_n(rows.data() + from * width, count * width, positions.data() + to * width);
  };
  copy(0, 0, std::min(first, old_first));
  for (int64_t row = first; row < config.max_position_embeddings; row += old.longest())
    copy(old_first, row, std::min(old.longest(), config.max_position_embeddings - row));
  return positions;
}

}  // namespace

std::unique_ptr<Bert> lengthened(const Bert& from, const std::string& to, int64_t max_tokens) {
  const BertConfig config = long_config(from, to, max_tokens);
  BertHeads heads = from.heads();
  heads.next_sentence = false;  // no long model has that head
  std::unique_ptr<Bert> made;
  {
    const nn::ParametersFromFile nothing_drawn(std::numeric_limits<int64_t>::max(), to);
    Rng rng(0);
    made = std::make_unique<Bert>(config, heads, rng);
  }
  std::unordered_map<std::string, Tensor> values;
  for (const auto& [name, parameter] : from.parameters()) values.emplace(name, parameter.value());
  for (const auto& [name, parameter] : made->parameters()) {
    std::string source = name;
    if (const size_t at = name.find("global_in_proj"); at != std::string::npos)
      source.erase(at, std::string("global_").size());
    const auto found = values.find(source);
    FOVEA_ASSERT(found != values.end());
    take_value(parameter, name == "embeddings.position"
                              ? repeated_positions(from.config(), config, found->second)
                              : found->second);
  }
  return made;
}

}  // namespace fovea::models
