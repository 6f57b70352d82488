// Texts made ready for a classifier, and whether something was left out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/labelled_text.h"

namespace fovea::tasks {

// A text's or a pair's tokens as the classifier reads them; cut: set to whether it has more than
// encoding.max_tokens. Throws Error where a pair is wanted and the text is none.
data::EncodedText encode_input(std::string_view text, const data::Tokenizer& tokenizer,
                               const data::TextEncoding& encoding, bool& cut);
// On all threads. cut: gets a truth value for each text.
data::EncodedTexts encode_inputs(std::span<const std::string> texts, const data::Tokenizer& tokenizer,
                                 const data::TextEncoding& encoding, std::vector<uint8_t>& cut);

}  // namespace fovea::tasks
