// What a text has in the places where a tokenizer gives the unknown token: for showing it to people.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/labelled_text.h"
#include "data/tokenizer.h"

namespace fovea::data {

// For each of `ids` that is the unknown token what the sentence has there, else "". ids: those of encode(sentence),
// perhaps between special tokens or cut at the end.
std::vector<std::string> texts_of_unknown(const Tokenizer& tokenizer, std::string_view sentence,
                                          std::span<const int32_t> ids);
// The same for encoded = encode_text_or_pair(text, tokenizer, encoding); in lower case where the encoding says so.
std::vector<std::string> texts_of_unknown(std::string_view text, const Tokenizer& tokenizer,
                                          const TextEncoding& encoding, const EncodedText& encoded);

}  // namespace fovea::data
