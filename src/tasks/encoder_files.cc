#include "tasks/encoder_files.h"

#include "io/file.h"

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

}  // namespace fovea::tasks
