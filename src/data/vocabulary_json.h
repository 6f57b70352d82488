// Vocabularies as Hugging Face writes them: {"token": id}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace fovea::data {

// The tokens by their ids. Throws Error, beginning with `name`, unless the ids are the numbers from 0, each
// once.
std::vector<std::string> tokens_by_id(const nlohmann::json& vocabulary, const std::string& name);
// The same from the content of a vocab.json.
std::vector<std::string> parse_vocabulary_json(std::string_view text, const std::string& name);

}  // namespace fovea::data
