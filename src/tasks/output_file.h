// Files that verbs write.
#pragma once

#include <filesystem>
#include <string_view>

namespace fovea::tasks {

// Replaces the file as a whole or leaves it as it was. Throws FileError naming it.
void write_output(const std::filesystem::path& path, std::string_view bytes);

}  // namespace fovea::tasks
