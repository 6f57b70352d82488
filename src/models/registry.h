// Models by name: from a config to a network, as a model folder needs it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "models/translation.h"

namespace fovea::models {

// The names that make_translation_model knows.
std::vector<std::string_view> translation_models();

// All settings of a model with these vocabularies: `settings` over the defaults. Throws Error on unknown
// names.
Json translation_config(const std::string& model, const Json& settings, int64_t source_vocabulary,
                        int64_t target_vocabulary);

// A network with fresh weights.
std::unique_ptr<TranslationModel> make_translation_model(const std::string& model, const Json& config,
                                                         Rng& rng);

}  // namespace fovea::models
