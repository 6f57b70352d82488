// What trainings on pictures have in common: telling data apart, and pictures to try a model on.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/labelled_pictures.h"

namespace fovea::tasks {

// Tells training pictures apart.
uint64_t fingerprint_of(const data::Pictures& pictures);

// Writes the first ten pictures as 0.png, 1.png, ...
void save_examples(const std::filesystem::path& folder, const data::Pictures& pictures);

}  // namespace fovea::tasks
