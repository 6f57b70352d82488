// Reads and checks Marian configs and weights, maps their names to models::Transformer, and writes such folders.
#include "models/marian.h"

#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <vector>

#include "autograd/tape.h"
#include "io/file.h"
#include "io/weight_folder.h"
#include "models/published_weights.h"
#include "nn/init.h"
#include "nn/positions.h"
#include "nn/weights.h"

namespace fovea::models {
namespace fs = std::filesystem;
namespace {

constexpr const char* kBias = "final_logits_bias";

struct Name {
  std::string ours;
  std::vector<std::string> theirs;
};
struct LayerNames {
  bool decoder = false;
  size_t index = 0;
  std::vector<Name> names = {};
};

void add_layers(std::vector<LayerNames>& all, const std::string& stack, int64_t layers, bool cross) {
  for (int64_t i = 0; i < layers; ++i) {
    all.push_back({.decoder = cross, .index = static_cast<size_t>(i)});
    std::vector<Name>& names = all.back().names;
    const std::string ours = stack + ".layers." + std::to_string(i) + ".", theirs = "model." + ours;
    const auto add = [&](const std::string& own, std::vector<std::string> parts) {
      for (const char* end : {"weight", "bias"}) {
        Name name{ours + own + (own.ends_with('_') ? "" : ".") + end, {}};
        for (const std::string& part : parts) name.theirs.push_back(theirs + part + "." + end);
        names.push_back(std::move(name));
      }
    };
    const auto add_attention = [&](const std::string& own, const std::string& part) {
      add(own + ".in_proj_", {part + ".q_proj", part + ".k_proj", part + ".v_proj"});
      add(own + ".out_proj", {part + ".out_proj"});
    };
    add_attention("self_attn", "self_attn");
    add("norm1", {"self_attn_layer_norm"});
    if (cross) {
      add_attention("multihead_attn", "encoder_attn");
      add("norm2", {"encoder_attn_layer_norm"});
    }
    add("linear1", {"fc1"});
    add("linear2", {"fc2"});
    add(cross ? "norm3" : "norm2", {"final_layer_norm"});
  }
}

// The parameters of the layers.
std::vector<LayerNames> layer_names(const TransformerConfig& config) {
  std::vector<LayerNames> names;
  add_layers(names, "encoder", config.encoder_layers, false);
  add_layers(names, "decoder", config.decoder_layers, true);
  return names;
}

// The embedding tables, each with what files call it, best first.
std::vector<Name> table_names(const TransformerConfig& config) {
  const std::string shared = "model.shared.weight", source = "model.encoder.embed_tokens.weight",
                    target = "model.decoder.embed_tokens.weight", output = "lm_head.weight";
  if (config.tie == "all") return {{"target_embedding", {shared, source, target, output}}};
  if (config.tie == "output") return {{"source_embedding", {source}}, {"target_embedding", {target, output}}};
  return {{"source_embedding", {source}}, {"target_embedding", {target}}, {"output", {output}}};
}

std::string found_in(const WeightFolder& weights, const Name& table) {
  for (const std::string& name : table.theirs)
    if (weights.contains(name)) return name;
  fail(weights.where(), ": no tensor ", in_quotes(table.theirs[0]),
       "; are these the weights of a Marian model?");
}

// Stored sinusoids are computed instead of being read, so others than the usual ones would be lost.
void check_positions(const WeightFolder& weights, const std::string& name, int64_t width) {
  const Shape& shape = weights.entry(name).shape;
  require(shape.rank() == 2 && shape[1] == width, weights.where(), ": ", in_quotes(name), " has shape ",
          shape, ", wanted [positions, ", width, "]");
  std::vector<int32_t> places;
  for (int64_t i = 0; i < shape[0]; ++i) places.push_back(static_cast<int32_t>(i));
  const Tensor stored = weights.tensor(name);
  const Tensor made = nn::sinusoid(places, width, nn::SinusoidOrder::halves);
  for (int64_t i = 0; i < made.count(); ++i)
    require(std::fabs(stored.data()[i] - made.data()[i]) < 1e-3f, weights.where(), ": ", in_quotes(name),
            " contains other numbers than sines and cosines, which is not supported");
}

// A file with more layers than the config has would compute something else without them.
void refuse_leftovers(const WeightFolder& weights, const TransformerConfig& config,
                      const std::vector<LayerNames>& layers) {
  std::set<std::string> known{kBias};
  for (const LayerNames& layer : layers)
    for (const Name& name : layer.names) known.insert(name.theirs.begin(), name.theirs.end());
  for (const Name& name : table_names(config)) known.insert(name.theirs.begin(), name.theirs.end());
  for (const std::string& name : weights.names()) {
    if (name == "model.encoder.embed_positions.weight" || name == "model.decoder.embed_positions.weight")
      check_positions(weights, name, config.width);
    else
      require(known.contains(name), weights.where(), ": contains ", in_quotes(name),
              ", which has no place in the model that config.json describes");
  }
}

template <class T>
void read_into(const Json& json, const char* name, T& value, const std::string& where) {
  if (json.contains(name) && !json[name].is_null()) value_from_json(json[name], value, where + ": " + name);
}

// A network of one width and one number of heads for both stacks.
int64_t read_same(const Json& json, const char* encoder, const char* decoder, int64_t otherwise,
                  const std::string& where) {
  int64_t first = otherwise, second = otherwise;
  read_into(json, encoder, first, where);
  read_into(json, decoder, second, where);
  require(first == second, where, ": ", encoder, " is ", first, " and ", decoder, " ", second,
          ", wanted the same number");
  return first;
}

int32_t read_token(const Json& json, const char* name, int64_t otherwise, int64_t vocabulary,
                   const std::string& where) {
  int64_t id = otherwise;
  read_into(json, name, id, where);
  require(id >= 0 && id < vocabulary, where, ": ", name, " is ", id, ", wanted 0 to ", vocabulary - 1);
  return static_cast<int32_t>(id);
}

// What Marian's decoder never writes is the padding, and nothing else can be forbidden.
void check_forbidden(const Json& json, int32_t pad, const std::string& where) {
  if (!json.contains("bad_words_ids") || json["bad_words_ids"].is_null()) return;
  require(json["bad_words_ids"] == Json::array({Json::array({pad})}), where,
          ": bad_words_ids names other tokens than the padding ", pad, ", which is not supported");
}

}  // namespace

MarianConfig marian_config(const Json& json, const std::string& where) {
  require(json.is_object() && json.contains("model_type") && json["model_type"] == "marian", where,
          ": not the config of a Marian model; wanted model_type marian");
  MarianConfig config;
  TransformerConfig& c = config.network;
  // Where a file is silent, Hugging Face's own defaults hold.
  c.source_vocabulary = 58101;
  c.width = 1024;
  c.encoder_layers = c.decoder_layers = 12;
  c.activation = "gelu";
  c.activation_dropout = 0.0f;
  c.scale_embedding = false;
  c.positions = "sinusoid_halves";
  c.output_bias = true;
  read_into(json, "vocab_size", c.source_vocabulary, where);
  c.target_vocabulary = c.source_vocabulary;
  read_into(json, "decoder_vocab_size", c.target_vocabulary, where);
  read_into(json, "d_model", c.width, where);
  read_into(json, "encoder_layers", c.encoder_layers, where);
  read_into(json, "decoder_layers", c.decoder_layers, where);
  c.heads = read_same(json, "encoder_attention_heads", "decoder_attention_heads", 16, where);
  c.hidden = read_same(json, "encoder_ffn_dim", "decoder_ffn_dim", 4096, where);
  read_into(json, "activation_function", c.activation, where);
  read_into(json, "dropout", c.dropout, where);
  read_into(json, "attention_dropout", c.attention_dropout, where);
  read_into(json, "activation_dropout", *c.activation_dropout, where);
  read_into(json, "scale_embedding", c.scale_embedding, where);
  bool shared = true, tied = true;
  read_into(json, "share_encoder_decoder_embeddings", shared, where);
  read_into(json, "tie_word_embeddings", tied, where);
  require(!shared || tied, where,
          ": tie_word_embeddings is false while all tables are shared, which is not supported");
  require(!shared || c.source_vocabulary == c.target_vocabulary, where, ": vocab_size is ",
          c.source_vocabulary, " and decoder_vocab_size ", c.target_vocabulary, ", but one table is shared");
  c.tie = shared ? "all" : tied ? "output" : "none";
  config.max_positions = 1024;
  read_into(json, "max_position_embeddings", config.max_positions, where);
  check_ranges(c, where);
  require(c.width % c.heads == 0, where, ": ", c.heads, " heads do not divide d_model ", c.width);
  require(config.max_positions >= 1, where, ": max_position_embeddings is ", config.max_positions,
          ", wanted 1 or more");
  nn::activation_named(c.activation);
  config.pad = read_token(json, "pad_token_id", 58100, c.target_vocabulary, where);
  config.begin = read_token(json, "decoder_start_token_id", 58100, c.target_vocabulary, where);
  config.end = read_token(json, "eos_token_id", 0, c.target_vocabulary, where);
  check_forbidden(json, config.pad, where);
  return config;
}

std::unique_ptr<Transformer> load_marian(const fs::path& folder, const MarianConfig& config,
                                         std::optional<Compute> use) {
  const WeightFolder weights(folder);
  const std::vector<Name> tables = table_names(config.network);
  for (const Name& table : tables) {
    const std::string name = found_in(weights, table);
    const Shape wanted{table.ours == "source_embedding" ? config.network.source_vocabulary
                                                        : config.network.target_vocabulary,
                       config.network.width};
    require(weights.entry(name).shape == wanted, weights.where(), ": ", in_quotes(name), " has shape ",
            weights.entry(name).shape, ", but config.json says ", wanted);
  }
  const std::vector<LayerNames> layers = layer_names(config.network);
  refuse_leftovers(weights, config.network, layers);
  std::unique_ptr<Transformer> network;
  {
    // The bias of the logits may be missing: it is 0 then.
    const nn::ParametersFromFile from_file(weights.element_count() + config.network.target_vocabulary,
                                           weights.where());
    Rng rng(0);
    network = std::make_unique<Transformer>(config.network, rng);
    network->hold_constant(config.pad);
  }
  std::unordered_map<std::string, Var> places;
  for (const auto& [name, parameter] : network->parameters()) places.emplace(name, parameter);
  const WeightReader reader(weights, use);
  for (const auto& [decoder, index, names] : layers) {
    for (const Name& name : names) {
      for (const std::string& theirs : name.theirs)
        require(weights.contains(theirs), weights.where(), ": no tensor ", in_quotes(theirs));
      reader.take(places.at(name.ours), name.theirs);
    }
    auto prepared = decoder ? reader.finish(*network->decoder.layers.at(index))
                            : reader.finish(*network->encoder.layers.at(index));
    if (prepared) network->keep_prepared(std::move(*prepared));
  }
  for (const Name& table : tables)
    take_value(places.at(table.ours), weights.tensor(found_in(weights, table)));
  if (weights.contains(kBias)) {
    const Shape& got = weights.entry(kBias).shape;
    require(got == (Shape{1, config.network.target_vocabulary}), weights.where(), ": ", in_quotes(kBias),
            " has shape ", got, ", wanted [1, ", config.network.target_vocabulary, "]");
    take_value(network->output_bias, weights.tensor(kBias).reshape({config.network.target_vocabulary}));
  } else {
    take_value(network->output_bias, Tensor::zeros({config.network.target_vocabulary}));
  }
  return network;
}

void save_marian(const fs::path& folder, const Transformer& network, const Json& published) {
  make_directories(folder);
  std::unordered_map<std::string, Tensor> values;
  for (const auto& [name, parameter] : network.parameters()) values.emplace(name, parameter.value());
  std::vector<TensorToWrite> tensors;
  for (const LayerNames& layer : layer_names(network.config()))
    for (const Name& name : layer.names) append_shares(tensors, name.theirs, values.at(name.ours));
  for (const Name& table : table_names(network.config()))
    tensors.push_back(TensorToWrite::floats(table.theirs[0], values.at(table.ours)));
  tensors.push_back(TensorToWrite::floats(kBias, network.output_bias.value().reshape({1, -1})));
  save_safetensors(folder / "model.safetensors", tensors, nn::weights_metadata());
  Json json = published;
  json["architectures"] = {"MarianMTModel"};
  save_json(folder / "config.json", json);
}

}  // namespace fovea::models
