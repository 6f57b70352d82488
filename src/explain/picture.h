// The kinds of picture files.
#pragma once

#include <filesystem>

namespace fovea {

enum class PictureFormat { png, svg, pdf };

// By the file name's ending; throws Error naming the endings that work.
PictureFormat picture_format(const std::filesystem::path& path);

}  // namespace fovea
