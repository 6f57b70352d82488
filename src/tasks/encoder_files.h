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

// Says in tokenizer_config.json, which is added where it is missing, how many tokens of a text are read
// (model_max_length, by which `transformers` goes too). tokenizer_class: what to name where the file names none; empty:
// nothing. `where` begins messages: the folder. Throws Error when the file is damaged.
void set_longest_text(TokenizerFiles& files, int64_t max_tokens, const std::string& where,
                      const std::string& tokenizer_class = "");

}  // namespace fovea::tasks
