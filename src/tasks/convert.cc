#include "tasks/convert.h"

#include "io/file.h"
#include "io/json.h"
#include "models/bert_folder.h"
#include "models/lengthen.h"
#include "tasks/encoder.h"
#include "tasks/encoder_files.h"
#include "tasks/translator.h"

namespace fovea::tasks {
namespace fs = std::filesystem;
namespace {

void require_new(const fs::path& out) {
  require(!out.empty() && !fs::exists(fs::symlink_status(out)), "convert: ", in_quotes(out.string()),
          " exists already; choose a new folder");
}

// A tokenizer's files know how many tokens a text may have.
std::string with_max_tokens(const std::string& tokenizer_config, int64_t max_tokens,
                            const std::string& where) {
  Json json = parse_json(tokenizer_config, where);
  require(json.is_object(), where, ": wanted an object of named options");
  json["model_max_length"] = max_tokens;
  return json.dump(2) + "\n";
}

}  // namespace

Conversion convert_translation(const fs::path& folder, const std::string& to, const fs::path& out) {
  compute_named(to);
  require_new(out);
  const TranslationParts parts = load_translation(folder, to);
  const Inference usable(*parts.network, parts.compute);  // refuses what could not be translated with
  DirectorySet set(out);
  save_translation(set.path(), parts);
  if (path_exists(folder / "README.md"))
    set.write("README.md", [&](FileWriter& file) {
      file.write(read_text(folder / "README.md"));
      file.write(message("\nWeights in ", to, ", made by `fovea convert` from ", folder.string(), ".\n"));
    });
  set.commit();
  return {static_cast<int64_t>(fs::file_size(folder / "model.safetensors")),
          static_cast<int64_t>(fs::file_size(out / "model.safetensors"))};
}

std::string convert_to_long(const fs::path& folder, const std::string& to, int64_t max_tokens,
                            const fs::path& out) {
  require_new(out);
  const EncoderParts parts = load_encoder(folder);  // refuses a tokenizer that does not fit
  const fs::path& model = parts.modules.model;
  const auto made = models::lengthened(*parts.network, to == "bigbird" ? "big_bird" : to, max_tokens);
  DirectorySet set(out);
  models::save_bert(set.path(), *made);
  for (const auto& [name, bytes] : read_tokenizer_files(model))
    set.write(name, [&, &file_name = name, &content = bytes](FileWriter& file) {
      file.write(file_name == "tokenizer_config.json"
                     ? with_max_tokens(content, max_tokens, (model / file_name).string())
                     : content);
    });
  set.commit();
  return parts.network->config().model_type;
}

}  // namespace fovea::tasks
