#include "tasks/convert.h"

#include "io/file.h"
#include "tasks/translator.h"

namespace fovea::tasks {
namespace fs = std::filesystem;

Conversion convert_translation(const fs::path& folder, const std::string& to, const fs::path& out) {
  compute_named(to);
  require(!out.empty() && !fs::exists(fs::symlink_status(out)), "convert: ", in_quotes(out.string()),
          " exists already; choose a new folder");
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

}  // namespace fovea::tasks
