// The tokenizers of MarianMT and OPUS-MT folders: source.spm and target.spm cut text into pieces, and vocab.json
// (with target_vocab.json where the languages have one each) gives the pieces their ids. The same ids as Hugging
// Face's MarianTokenizer gives.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace fovea::data {

// Whether the folder has files of such a tokenizer.
bool has_marian_tokenizers(const std::filesystem::path& folder);

// Throws Error naming the file when one is missing, damaged or does not fit. A text may begin with a language to
// translate to, such as ">>fra<<", where the vocabulary has it. Tokenizers::files holds the files themselves.
Tokenizers load_marian_tokenizers(const std::filesystem::path& folder);

// The files of such a tokenizer that the folder lacks.
std::vector<std::string> missing_marian_files(const std::filesystem::path& folder);

// The language that a text begins with, ">>fra<<", whether or not a vocabulary has it; empty: it begins with none.
std::string_view language_of(std::string_view text);

// The languages of a multilingual vocabulary, ">>fra<<", in the order of the folder's vocab.json.
std::vector<std::string> target_languages(const std::filesystem::path& folder);

}  // namespace fovea::data
