#include "data/vocabulary_json.h"

#include <limits>

#include "base/error.h"

namespace fovea::data {

std::vector<std::string> tokens_by_id(const nlohmann::json& vocabulary, const std::string& name) {
  require(vocabulary.is_object(), name, ": the vocabulary is no object of tokens and ids");
  std::vector<std::string> tokens(vocabulary.size());
  for (const auto& item : vocabulary.items()) {
    const bool number = item.value().is_number_unsigned();
    const uint64_t id = number ? item.value().get<uint64_t>() : std::numeric_limits<uint64_t>::max();
    require(id < tokens.size(), name, ": ids of the vocabulary are not the numbers from 0 to ",
            tokens.size() - 1);
    require(tokens[id].empty() && !item.key().empty(), name, ": two tokens of the vocabulary have the id ",
            id, ", or one is empty");
    tokens[id] = item.key();
  }
  return tokens;
}

std::vector<std::string> parse_vocabulary_json(std::string_view text, const std::string& name) {
  return tokens_by_id(parse_large_json(text, name), name);
}

}  // namespace fovea::data
