#include "models/registry.h"

#include "models/transformer.h"

namespace fovea::models {
namespace {

template <class Config>
Json complete(const Json& settings, int64_t source_vocabulary, int64_t target_vocabulary,
              const std::string& where) {
  Config config;
  fields_from_json(settings, config, where);
  config.source_vocabulary = source_vocabulary;
  config.target_vocabulary = target_vocabulary;
  return fields_to_json(config);
}

[[noreturn]] void fail_unknown(const std::string& model) {
  fail("unknown model ", in_quotes(model), name_hint(model, translation_models()));
}

}  // namespace

std::vector<std::string_view> translation_models() {
  return {"transformer"};
}

Json translation_config(const std::string& model, const Json& settings, int64_t source_vocabulary,
                        int64_t target_vocabulary) {
  if (model == "transformer")
    return complete<TransformerConfig>(settings, source_vocabulary, target_vocabulary, "model settings");
  fail_unknown(model);
}

std::unique_ptr<TranslationModel> make_translation_model(const std::string& model, const Json& config,
                                                         Rng& rng) {
  if (model == "transformer") {
    TransformerConfig settings;
    fields_from_json(config, settings, "config.json");
    return std::make_unique<Transformer>(settings, rng);
  }
  fail_unknown(model);
}

}  // namespace fovea::models
