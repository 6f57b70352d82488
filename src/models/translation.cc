#include "models/translation.h"

#include <algorithm>

namespace fovea::models {

int64_t Sentences::longest() const {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

}  // namespace fovea::models
