// Reads Hugging Face folders of the BERT family into a network, whatever the spelling of their tensors, and writes
// them.
#include "models/bert_folder.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "io/file.h"
#include "models/bert_names.h"
#include "models/published_weights.h"
#include "nn/weights.h"

namespace fovea::models {
namespace fs = std::filesystem;
namespace {

// The names outside the layers: of those a config may claim any number.
std::vector<BertName> names_around_layers(BertConfig config, const BertHeads& heads) {
  config.num_hidden_layers = 0;
  return bert_names(config, heads);
}

// Finds a file's tensors, whatever its habits: with the encoder's prefix or without, in old spellings.
class Names {
 public:
  Names(const WeightFolder& weights, const BertConfig& config) : weights_(weights) {
    const std::string prefix = bert_prefix(config);
    const BertName words = names_around_layers(config, {}).front();
    if (!weights.contains(words.theirs[0])) prefix_ = prefix;
    require(weights.contains(prefix_ + words.theirs[0]), weights.where(), ": no tensor ",
            in_quotes(prefix + words.theirs[0]), "; are these the weights of a ", config.model_type,
            " model?");
  }

  // The name in the file, or an empty one.
  std::string find(const std::string& theirs, bool of_head) const {
    for (const std::string& spelling : bert_spellings(of_head ? theirs : prefix_ + theirs))
      if (weights_.contains(spelling)) return spelling;
    return {};
  }
  bool has(const BertName& name) const {
    return std::all_of(name.theirs.begin(), name.theirs.end(),
                       [&](const std::string& theirs) { return !find(theirs, name.of_head).empty(); });
  }
  const std::string& prefix() const { return prefix_; }

 private:
  const WeightFolder& weights_;
  std::string prefix_;
};

bool has_all(const Names& names, std::span<const BertName> wanted, std::string_view part) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const BertName& name) { return !name.ours.starts_with(part) || names.has(name); });
}

// The encoder alone; in floating point, where nothing overflows.
double element_count(const BertConfig& c) {
  const auto e = static_cast<double>(c.hidden_size), hidden = static_cast<double>(c.intermediate_size);
  const double rows = static_cast<double>(c.vocab_size) + static_cast<double>(c.max_position_embeddings) +
                      static_cast<double>(c.type_vocab_size) + static_cast<double>(c.added_global_tokens) + 2;
  const double projections = c.model_type == "longformer" ? 7 : 4, biases = c.use_bias ? projections : 1;
  return rows * e + static_cast<double>(c.num_hidden_layers) *
                        (projections * e * e + biases * e + 2 * e * hidden + hidden + 5 * e);
}

// Before memory is taken by what a config claims, it must agree with what the file holds.
void check_size(const WeightFolder& weights, const BertConfig& config, const Names& names) {
  const std::string words = names.find(names_around_layers(config, {}).front().theirs[0], false);
  const Shape wanted{config.vocab_size, config.hidden_size}, got = weights.entry(words).shape;
  require(got == wanted, weights.where(), ": ", in_quotes(words), " has shape ", got,
          ", but config.json says ", wanted);
  require(element_count(config) <= static_cast<double>(weights.element_count()), weights.where(),
          ": contains ", weights.element_count(), " numbers, but config.json describes an encoder of ",
          element_count(config));
}

// An encoder with more layers than the config has would compute something else without them.
void refuse_leftovers(const WeightFolder& weights, const BertConfig& config, const Names& names) {
  std::set<std::string> used;
  std::set<std::string> roots;  // "embeddings.", "encoder."
  for (const BertName& name : bert_names(config, {})) {
    for (const std::string& theirs : name.theirs) {
      used.insert(names.find(theirs, false));
      roots.insert(names.prefix() + theirs.substr(0, theirs.find('.') + 1));
    }
  }
  for (const std::string& name : weights.names()) {
    const bool inside = std::any_of(roots.begin(), roots.end(),
                                    [&](const std::string& root) { return name.starts_with(root); });
    const bool counter =
        name.ends_with("embeddings.position_ids") || name.ends_with("embeddings.token_type_ids");
    require(!inside || counter || used.contains(name), weights.where(), ": contains ", in_quotes(name),
            ", which has no place in the model that config.json describes");
  }
}

// The file's names of one parameter's parts.
std::vector<std::string> parts_of(const WeightFolder& weights, const Names& names, const BertName& name) {
  std::vector<std::string> found;
  for (const std::string& theirs : name.theirs) {
    found.push_back(names.find(theirs, name.of_head));
    require(!found.back().empty(), weights.where(), ": no tensor ",
            in_quotes(name.of_head ? theirs : names.prefix() + theirs));
  }
  return found;
}

// The layer that a parameter belongs to; -1: none.
int64_t layer_of(const BertName& name) {
  constexpr std::string_view kLayers = "encoder.layers.";
  return name.ours.starts_with(kLayers) ? std::stoll(name.ours.substr(kLayers.size())) : -1;
}

// What a wanted model can take from the folder: the encoder, and of the heads what is there. A classifier of
// other labels keeps its pooler.
std::vector<BertName> names_to_read(const BertConfig& config, const BertHeads& wanted, const BertHeads& there,
                                    const Names& names) {
  std::vector<BertName> all = bert_names(config, wanted);
  const bool pooler = has_all(names, all, "pooler.");
  std::erase_if(all, [&](const BertName& name) {
    return (!pooler && name.ours.starts_with("pooler.")) ||
           (!there.masked_lm && name.ours.starts_with("masked_lm.")) ||
           (!there.next_sentence && name.ours.starts_with("next_sentence.")) ||
           (wanted.labels != there.labels && name.ours.starts_with("classifier."));
  });
  return all;
}

}  // namespace

BertConfig read_bert_config(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  require(is_folder(folder), "model folder ", in_quotes(folder.string()), " does not exist");
  require(path_exists(path), folder.string(), " is no model folder: it has no config.json");
  return bert_config(load_json(path), path.string());
}

BertHeads heads_in(const WeightFolder& weights, const BertConfig& config) {
  const Names names(weights, config);
  const std::vector<BertName> all =
      names_around_layers(config, {.pooler = true, .masked_lm = true, .next_sentence = true, .labels = 1});
  BertHeads heads;
  // A classifier may have a pooler of its own beside the encoder's.
  heads.pooler = has_all(names, names_around_layers(config, {.pooler = true}), "pooler.");
  heads.masked_lm = has_all(names, all, "masked_lm.");
  heads.next_sentence = config.model_type == "bert" && heads.pooler && has_all(names, all, "next_sentence.");
  if (!has_all(names, all, "pooler.") || !has_all(names, all, "classifier.")) return heads;
  heads.pooler = true;
  for (const BertName& name : all)
    if (name.ours == "classifier.weight") {
      const Shape& shape = weights.entry(names.find(name.theirs[0], true)).shape;
      require(shape.rank() == 2 && shape[0] > 0, weights.where(), ": ", in_quotes(name.theirs[0]),
              " has shape ", shape, ", wanted [labels, ", config.hidden_size, "]");
      heads.labels = shape[0];
    }
  return heads;
}

LoadedBert load_bert(const fs::path& folder, Rng& rng, const std::optional<BertHeads>& heads,
                     std::optional<Compute> use) {
  const BertConfig config = read_bert_config(folder);
  const WeightFolder weights(folder);
  const Names names(weights, config);
  check_size(weights, config, names);
  refuse_leftovers(weights, config, names);
  const BertHeads there = heads_in(weights, config);
  const auto named = static_cast<int64_t>(config.labels.size());
  require(heads || there.labels == 0 || there.labels == named, weights.where(), ": a classifier of ",
          there.labels, " labels, but config.json has ", named);
  LoadedBert loaded;
  {
    // check_size() has checked the encoder; heads that the file lacks are newly made.
    const nn::ParametersFromFile from_file(std::numeric_limits<int64_t>::max(), weights.where());
    loaded.network = std::make_unique<Bert>(config, heads.value_or(there), rng);
  }
  std::unordered_map<std::string, Var> fresh;
  for (const auto& [name, parameter] : loaded.network->parameters()) fresh.emplace(name, parameter);
  const std::vector<BertName> wanted = names_to_read(config, loaded.network->heads(), there, names);
  const WeightReader reader(weights, use);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto place = fresh.find(wanted[i].ours);
    FOVEA_ASSERT(place != fresh.end());
    const Var parameter = place->second;
    fresh.erase(place);
    const std::vector<std::string> parts = parts_of(weights, names, wanted[i]);
    reader.take(parameter, parts);
    const int64_t layer = layer_of(wanted[i]);
    if (layer < 0 || (i + 1 < wanted.size() && layer_of(wanted[i + 1]) == layer)) continue;
    auto prepared = reader.finish(*loaded.network->encoder.layers.at(static_cast<size_t>(layer)));
    if (prepared) loaded.network->keep_prepared(std::move(*prepared));
  }
  std::vector<nn::NamedParameter> drawn;
  for (const nn::NamedParameter& parameter : loaded.network->parameters()) {
    if (!fresh.contains(parameter.name)) continue;
    drawn.push_back(parameter);
    loaded.fresh.push_back(parameter.name);
  }
  loaded.network->draw(drawn, rng);
  return loaded;
}

std::vector<TensorToWrite> bert_weights(const Bert& network) {
  std::unordered_map<std::string, Tensor> values;
  for (const auto& [name, parameter] : network.parameters()) values.emplace(name, parameter.value());
  const std::string prefix = bert_prefix(network.config());
  std::vector<TensorToWrite> all;
  for (const BertName& name : bert_names(network.config(), network.heads())) {
    std::vector<std::string> theirs;
    for (const std::string& part : name.theirs) theirs.push_back(name.of_head ? part : prefix + part);
    append_shares(all, theirs, values.at(name.ours));
  }
  return all;
}

void save_bert(const fs::path& folder, const Bert& network) {
  make_directories(folder);
  save_safetensors(folder / "model.safetensors", bert_weights(network), nn::weights_metadata());
  const std::string& type = network.config().model_type;
  const std::string family = type == "bert"          ? "Bert"
                             : type == "roberta"     ? "Roberta"
                             : type == "xlm-roberta" ? "XLMRoberta"
                             : type == "mpnet"       ? "MPNet"
                             : type == "longformer"  ? "Longformer"
                             : type == "big_bird"    ? "BigBird"
                                                     : "DistilBert";
  const BertHeads& heads = network.heads();
  const char* kind = heads.labels > 0                         ? "ForSequenceClassification"
                     : heads.masked_lm && heads.next_sentence ? "ForPreTraining"
                     : heads.masked_lm                        ? "ForMaskedLM"
                                                              : "Model";
  Json json = bert_config_json(network.config());
  json["architectures"] = {family + kind};
  save_json(folder / "config.json", json);
}

}  // namespace fovea::models
