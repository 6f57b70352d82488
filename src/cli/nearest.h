// The nearest name to one that does not exist, for messages.
#pragma once

#include <string>
#include <vector>

namespace fovea::cli {

// The name with the fewest edits from `word`, or "" when none is near enough to be what was meant.
std::string nearest(const std::string& word, const std::vector<std::string>& names);

}  // namespace fovea::cli
