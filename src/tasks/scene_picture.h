// Pictures of the harbours that the program draws, with what a network learns from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace fovea::tasks {

struct ScenePicture {
  std::string title;    // "5 ships"
  std::string content;  // a file's bytes
};

// Scene `number` of the test series. labels: the label maps and true boxes beside it. path: its ending says the form,
// .png, .svg or .pdf. Throws Error on a number below 0, a size out of range or another ending.
ScenePicture scene_picture(int64_t number, int64_t size, bool labels, const std::filesystem::path& path);

}  // namespace fovea::tasks
