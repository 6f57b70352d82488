#include "tasks/convert.h"

#include "io/file.h"
#include "io/json.h"
#include "models/bert_folder.h"
#include "models/lengthen.h"
#include "tasks/encoder.h"
#include "tasks/encoder_files.h"
#include "tasks/folder_contents.h"
#include "tasks/translator.h"

namespace fovea::tasks {
namespace fs = std::filesystem;
namespace {

void require_new(const fs::path& out) {
  require(!out.empty() && !fs::exists(fs::symlink_status(out)), "convert: ", in_quotes(out.string()),
          " exists already; choose a new folder");
}

}  // namespace

Conversion convert_translation(const fs::path& folder, const std::string& to, const fs::path& out) {
  compute_named(to);
  require_new(out);
  const FolderContents contents = look_into(folder);
  require(contents.can(Ability::translate), "--to ", to, " needs a translator; ", contents.description());
  const LoadedTranslator loaded = read_translation(folder, to);
  const Inference usable(*loaded.network, loaded.compute);  // refuses what could not be translated with
  DirectorySet set(out);
  save_translation(set.path(), loaded);
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
  const LoadedEncoder loaded = load_encoder(folder);  // refuses a tokenizer that does not fit
  const fs::path& model = loaded.modules.model;
  const auto made = models::lengthened(*loaded.network, to == "bigbird" ? "big_bird" : to, max_tokens);
  DirectorySet set(out);
  models::save_bert(set.path(), *made);
  // The tokenizer's kind must be named too: `transformers` goes by the type of the model otherwise, which is no longer the
  // one it was made for.
  TokenizerFiles files = read_tokenizer_files(model);
  set_longest_text(files, max_tokens, model.string(),
                   loaded.network->config().model_type == "bert" ? "BertTokenizer" : "RobertaTokenizer");
  for (const auto& [name, bytes] : files)
    set.write(name, [&, &content = bytes](FileWriter& file) { file.write(content); });
  set.commit();
  return loaded.network->config().model_type;
}

}  // namespace fovea::tasks
