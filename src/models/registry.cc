#include "models/registry.h"

namespace fovea::models {
namespace {

// Calls visit(entry) for the model of this name; throws Error when there is none.
template <class Visit>
void visit_model(const std::string& model, Visit&& visit) {
  bool known = false;
  for_each_translation_model([&](const auto& entry) {
    if (model != entry.name) return;
    known = true;
    visit(entry);
  });
  if (!known) fail("unknown model ", in_quotes(model), name_hint(model, translation_models()));
}

}  // namespace

std::vector<std::string_view> translation_models() {
  std::vector<std::string_view> names;
  for_each_translation_model([&](const auto& entry) { names.emplace_back(entry.name); });
  return names;
}

std::vector<std::string_view> translation_settings(const std::string& model) {
  std::vector<std::string_view> names;
  visit_model(model, [&]<class Entry>(const Entry&) {
    for (const std::string_view name : field_names<typename Entry::Config>())
      if (name != "source_vocabulary" && name != "target_vocabulary") names.push_back(name);
  });
  return names;
}

Json translation_config(const std::string& model, const Json& settings, int64_t source_vocabulary,
                        int64_t target_vocabulary, const std::string& where) {
  Json complete;
  visit_model(model, [&]<class Entry>(const Entry&) {
    typename Entry::Config config;
    fields_from_json(settings, config, where);
    config.source_vocabulary = source_vocabulary;
    config.target_vocabulary = target_vocabulary;
    complete = fields_to_json(config);
  });
  return complete;
}

std::unique_ptr<TranslationModel> make_translation_model(const std::string& model, const Json& config,
                                                         Rng& rng) {
  std::unique_ptr<TranslationModel> network;
  visit_model(model, [&]<class Entry>(const Entry&) {
    typename Entry::Config settings;
    fields_from_json(config, settings, "config.json");
    network = std::make_unique<typename Entry::Model>(settings, rng);
  });
  return network;
}

}  // namespace fovea::models
