// What the tasks of pictures have in common: telling data apart, pictures to try a model on, and grey ones in colour.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/labelled_pictures.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

// Tells training pictures apart.
uint64_t fingerprint_of(const data::Pictures& pictures);

// Says how many files beside the pictures of a folder were left out, if any. paths: as data::read_pictures() has them.
void note_left_out(const std::vector<std::string>& paths, RunObserver& observer);

// Throws Error, beginning with `path`, unless the pictures have at least two of their classes.
void require_two_classes(const data::Pictures& pictures, const std::string& path);

// Writes the first ten pictures as 0.png, 1.png, ...
void save_examples(const std::filesystem::path& folder, const data::Pictures& pictures);

// [pixels, 1 or 3 channels] -> [pixels, 3], for drawing.
std::vector<uint8_t> in_colour(std::span<const uint8_t> pixels, int64_t channels);

}  // namespace fovea::tasks
