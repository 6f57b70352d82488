// Models by name: from a config to a network, as a model folder needs it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "models/bahdanau.h"
#include "models/luong.h"
#include "models/transformer.h"
#include "models/translation.h"

namespace fovea::models {

// A name and what belongs to it.
template <class ConfigType, class ModelType>
struct TranslationEntry {
  using Config = ConfigType;
  using Model = ModelType;
  const char* name;
};

// Calls visit(entry) for every translation model: the one list that names, configs and flags are read from.
template <class Visit>
void for_each_translation_model(Visit&& visit) {
  visit(TranslationEntry<TransformerConfig, Transformer>{"transformer"});
  visit(TranslationEntry<BahdanauConfig, Bahdanau>{"bahdanau"});
  visit(TranslationEntry<LuongConfig, Luong>{"luong"});
  visit(TranslationEntry<RnnConfig, Bahdanau>{"rnn"});
}

// The names that make_translation_model knows.
std::vector<std::string_view> translation_models();

// The settings that a person may choose: all of the model's but the vocabularies' sizes, which are counted.
std::vector<std::string_view> translation_settings(const std::string& model);

// All settings of a model with these vocabularies: `settings` over the defaults. Throws Error on unknown
// names, beginning with `where`.
Json translation_config(const std::string& model, const Json& settings, int64_t source_vocabulary,
                        int64_t target_vocabulary, const std::string& where = "model settings");

// A network with fresh weights.
std::unique_ptr<TranslationModel> make_translation_model(const std::string& model, const Json& config,
                                                         Rng& rng);

}  // namespace fovea::models
