// Models by name: from a config to a network, as a model folder needs it. The models of a task are a family, listed in
// a header of models/registry/; the functions here take the family as their argument.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "io/json.h"

namespace fovea::models {

// A name and what belongs to it.
template <class ConfigType, class ModelType>
struct ModelEntry {
  using Config = ConfigType;
  using Model = ModelType;
  const char* name;
};

// A family has:
//   Base                   what its models have in common
//   for_each(visit)        calls visit(ModelEntry) for every model: the one list that names, configs and flags come from
//   kDataSettings          the settings that data decides, not a person
//   small_data_settings()  values of them that any model takes

// The names that make_model knows.
template <class Family>
std::vector<std::string_view> model_names();

// The settings that a person may choose.
template <class Family>
std::vector<std::string_view> model_settings(const std::string& model);

// All settings of a model: `settings` over the defaults, and over both those of `counted` (decided by the data) that the model has.
// Throws Error on unknown names, beginning with `where`.
template <class Family>
Json model_config(const std::string& model, const Json& settings, const Json& counted = Json::object(),
                  const std::string& where = "model settings");

// Throws Error, beginning with `where` where a name or a number alone is wrong, when no network can have
// these settings, whatever the data: to be called before anything is read. Draws no weights. `counted`: what is
// known of the data already.
template <class Family>
void check_settings(const std::string& model, const Json& settings,
                    const std::string& where = "model settings",
                    const Json& counted = Family::small_data_settings());

// Whether a model of these settings, as a folder has them, has attention that can be shown. Throws Error on an unknown
// model, or on an unknown setting, beginning with `where`.
template <class Family>
bool has_attention(const std::string& model, const Json& settings, const std::string& where);

// What the data decides for translators and for classifiers.
Json vocabularies(int64_t source, int64_t target);
Json vocabulary_and_classes(int64_t vocabulary, int64_t classes, bool pairs = false);
// The same for image classifiers.
Json classes_and_size(int64_t classes, int64_t channels, int64_t height, int64_t width);

// A network with fresh weights.
template <class Family>
std::unique_ptr<typename Family::Base> make_model(const std::string& model, const Json& config, Rng& rng);

}  // namespace fovea::models
