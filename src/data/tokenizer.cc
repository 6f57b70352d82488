#include "data/tokenizer.h"

#include "base/error.h"
#include "data/marian_tokenizer.h"
#include "io/file.h"

namespace fovea::data {
namespace {

constexpr const char* kFileNames[] = {"tokenizer.model", "vocab.txt"};
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;

void write(const std::filesystem::path& path, const std::string& bytes) {
  write_atomically(path, bytes);
}

std::shared_ptr<const Tokenizer> read(const std::filesystem::path& path) {
  const std::string bytes = read_text(path, kMaxFileBytes);
  return path.extension() == ".model" ? parse_sentencepiece(bytes, path.string())
                                      : parse_words(bytes, path.string());
}

// The tokenizer of a folder whose file name begins with `prefix`, or null.
std::shared_ptr<const Tokenizer> find(const std::filesystem::path& folder, const std::string& prefix) {
  for (const char* name : kFileNames)
    if (const auto path = folder / (prefix + name); path_exists(path)) return read(path);
  return nullptr;
}

}  // namespace

void save_tokenizers(const std::filesystem::path& folder, const Tokenizers& tokenizers) {
  FOVEA_ASSERT(tokenizers.source != nullptr && tokenizers.target != nullptr);
  for (const auto& [name, bytes] : tokenizers.files) write(folder / name, bytes);
  if (!tokenizers.files.empty()) return;
  if (tokenizers.joint()) return write(folder / tokenizers.source->file_name(), tokenizers.source->bytes());
  write(folder / ("source_" + tokenizers.source->file_name()), tokenizers.source->bytes());
  write(folder / ("target_" + tokenizers.target->file_name()), tokenizers.target->bytes());
}

Tokenizers load_tokenizers(const std::filesystem::path& folder) {
  if (has_marian_tokenizers(folder)) return load_marian_tokenizers(folder);
  if (const auto joint = find(folder, "")) return {joint, joint};
  Tokenizers tokenizers{find(folder, "source_"), find(folder, "target_")};
  require(tokenizers.source != nullptr && tokenizers.target != nullptr, folder.string(),
          " has no tokenizer, wanted tokenizer.model or vocab.txt, or source_ and target_ of these");
  return tokenizers;
}

}  // namespace fovea::data
