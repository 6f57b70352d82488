// The files of a Hugging Face tokenizer, which travel with a model as they are.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace fovea::tasks {

// Names and bytes.
using TokenizerFiles = std::vector<std::pair<std::string, std::string>>;

// Those that the folder has.
TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder);

}  // namespace fovea::tasks
