#include "tasks/line_source.h"

#include "base/error_kinds.h"

namespace fovea::tasks {

LineSource::LineSource(const std::string& path, size_t max_line_bytes)
    : reader_(errors_as<FileError>([&] { return data::LineReader(path, max_line_bytes); })) {}

bool LineSource::next(SourceLine& line) {
  const bool more = errors_as<FileError>([&] { return reader_.next(line.text); });
  if (!more) return false;
  line.number = reader_.line_number() - 1;
  line.place = reader_.place();
  line.fault = reader_.fault() == data::LineFault::none ? "" : reader_.fault_text();
  if (!line.fault.empty()) line.text.clear();
  return true;
}

}  // namespace fovea::tasks
