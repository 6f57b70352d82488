// The formats of picture files.
#pragma once

#include <filesystem>

namespace fovea {

enum class PictureFormat { png, svg, pdf };

// From the extension of the file name; throws Error naming the supported ones.
PictureFormat picture_format(const std::filesystem::path& path);

}  // namespace fovea
