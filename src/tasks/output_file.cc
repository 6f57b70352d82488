#include "tasks/output_file.h"

#include "base/error_kinds.h"
#include "io/file.h"

namespace fovea::tasks {

void write_output(const std::filesystem::path& path, std::string_view bytes) {
  errors_as<FileError>([&] { write_atomically(path, bytes); });
}

}  // namespace fovea::tasks
