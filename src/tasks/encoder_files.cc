#include "tasks/encoder_files.h"

#include <algorithm>

#include "io/file.h"
#include "io/json.h"

namespace fovea::tasks {
namespace {

constexpr const char* kTokenizerFiles[] = {
    "vocab.txt",  "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "vocab.json", "merges.txt",     "spiece.model",          "sentencepiece.bpe.model"};

}  // namespace

TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder) {
  TokenizerFiles files;
  for (const char* name : kTokenizerFiles)
    if (path_exists(folder / name)) files.emplace_back(name, read_text(folder / name));
  return files;
}

void set_longest_text(TokenizerFiles& files, int64_t max_tokens, const std::string& where,
                      const std::string& tokenizer_class) {
  constexpr const char* kConfig = "tokenizer_config.json";
  auto file =
      std::find_if(files.begin(), files.end(), [&](const auto& each) { return each.first == kConfig; });
  if (file == files.end()) file = files.insert(files.end(), {kConfig, "{}"});
  const std::string path = where + "/" + kConfig;
  Json json = parse_json(file->second, path);
  require(json.is_object(), path, ": wanted an object of named options");
  json["model_max_length"] = max_tokens;
  if (!tokenizer_class.empty() && !json.contains("tokenizer_class"))
    json["tokenizer_class"] = tokenizer_class;
  file->second = json.dump(2) + "\n";
}

}  // namespace fovea::tasks
