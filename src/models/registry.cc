#include "models/registry.h"

#include <algorithm>
#include <limits>

#include "models/registry/captioners.h"
#include "models/registry/classifiers.h"
#include "models/registry/clip_classifiers.h"
#include "models/registry/encoders.h"
#include "models/registry/glimpse_classifiers.h"
#include "models/registry/image_classifiers.h"
#include "models/registry/partitioners.h"
#include "models/registry/series_models.h"
#include "models/registry/translators.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

// Calls visit(entry) for the family's model of this name; throws Error when there is none.
template <class Family, class Visit>
void visit_model(const std::string& model, Visit&& visit) {
  bool known = false;
  Family::for_each([&](const auto& entry) {
    if (model != entry.name) return;
    known = true;
    visit(entry);
  });
  if (!known) fail("unknown model ", in_quotes(model), name_hint(model, model_names<Family>()));
}

}  // namespace

template <class Family>
std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  Family::for_each([&](const auto& entry) { names.emplace_back(entry.name); });
  return names;
}

template <class Family>
std::vector<std::string_view> model_settings(const std::string& model) {
  std::vector<std::string_view> names;
  visit_model<Family>(model, [&]<class Entry>(const Entry&) {
    for (const std::string_view name : field_names<typename Entry::Config>())
      if (std::find(Family::kDataSettings.begin(), Family::kDataSettings.end(), name) ==
          Family::kDataSettings.end())
        names.push_back(name);
  });
  return names;
}

template <class Family>
Json model_config(const std::string& model, const Json& settings, const Json& counted,
                  const std::string& where) {
  Json complete;
  visit_model<Family>(model, [&]<class Entry>(const Entry&) {
    typename Entry::Config config;
    fields_from_json(settings, config, where);
    Json own = Json::object();
    for (const std::string_view name : field_names<typename Entry::Config>())
      if (const std::string key(name); counted.contains(key)) own[key] = counted[key];
    fields_from_json(own, config, where);
    check_ranges(config, where);
    complete = fields_to_json(config);
  });
  return complete;
}

template <class Family>
std::unique_ptr<typename Family::Base> make_model(const std::string& model, const Json& config, Rng& rng) {
  std::unique_ptr<typename Family::Base> network;
  visit_model<Family>(model, [&]<class Entry>(const Entry&) {
    typename Entry::Config settings;
    fields_from_json(config, settings, "config.json");
    network = std::make_unique<typename Entry::Model>(settings, rng);
  });
  return network;
}

template <class Family>
void check_settings(const std::string& model, const Json& settings, const std::string& where,
                    const Json& counted) {
  const Json config = model_config<Family>(model, settings, counted, where);
  const nn::ParametersFromFile not_drawn(std::numeric_limits<int64_t>::max(), where);
  Rng rng(0);
  make_model<Family>(model, config, rng);
}

template <class Family>
bool has_attention(const std::string& model, const Json& settings, const std::string& where) {
  bool attends = false;
  visit_model<Family>(model, [&]<class Entry>(const Entry&) {
    typename Entry::Config config;
    fields_from_json(settings, config, where);
    attends = config.has_attention();
  });
  return attends;
}

Json vocabularies(int64_t source, int64_t target) {
  return {{"source_vocabulary", source}, {"target_vocabulary", target}};
}

Json vocabulary_and_classes(int64_t vocabulary, int64_t classes, bool pairs) {
  return {{"vocabulary", vocabulary}, {"classes", classes}, {"pairs", pairs}};
}

Json classes_and_size(int64_t classes, int64_t channels, int64_t height, int64_t width) {
  return {{"classes", classes}, {"channels", channels}, {"picture_height", height}, {"picture_width", width}};
}

#define FOVEA_FAMILY(Family)                                                                              \
  template std::vector<std::string_view> model_names<Family>();                                           \
  template std::vector<std::string_view> model_settings<Family>(const std::string&);                      \
  template Json model_config<Family>(const std::string&, const Json&, const Json&, const std::string&);   \
  template void check_settings<Family>(const std::string&, const Json&, const std::string&, const Json&); \
  template bool has_attention<Family>(const std::string&, const Json&, const std::string&);               \
  template std::unique_ptr<Family::Base> make_model<Family>(const std::string&, const Json&, Rng&)
FOVEA_FAMILY(Translators);
FOVEA_FAMILY(Classifiers);
FOVEA_FAMILY(ImageClassifiers);
FOVEA_FAMILY(SeriesModels);
FOVEA_FAMILY(Encoders);
FOVEA_FAMILY(Partitioners);
FOVEA_FAMILY(GlimpseClassifiers);
FOVEA_FAMILY(ClipClassifiers);
FOVEA_FAMILY(Captioners);
#undef FOVEA_FAMILY

}  // namespace fovea::models
