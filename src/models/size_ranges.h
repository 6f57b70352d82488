// What the sizes in a model's settings may be: far above any model in use, and low enough that no product of
// them overflows.
#pragma once

#include "base/fields.h"

namespace fovea::models {

inline constexpr Range kVocabularies = between(0, 1 << 24);
inline constexpr Range kWidths = between(1, 1 << 16);
inline constexpr Range kLayers = between(1, 1024);

}  // namespace fovea::models
