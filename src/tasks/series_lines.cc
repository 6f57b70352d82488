#include "tasks/series_lines.h"

#include "base/error_kinds.h"
#include "data/lines.h"
#include "data/text.h"

namespace fovea::tasks {
namespace {

// The last rows of a table are enough for a forecast; a longer table should be cut.
constexpr size_t kLargestTable = size_t{1} << 30;

// A name of a column as CSV has it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

bool is_forecaster(const FolderContents& contents) {
  return contents.kind == FolderKind::series && contents.settings.value("targets", int64_t{0}) > 0;
}

Input read_table(const std::string& path) {
  return errors_as<FileError>([&] {
    data::LineReader lines(path, size_t{4} << 20, data::kMaxStreamBytes);
    Input table{.content = {}, .name = lines.name()};
    for (std::string line; lines.next(line);) {
      require(lines.fault() == data::LineFault::none, lines.fault_text());
      table.content += line + "\n";
      require(table.content.size() <= kLargestTable, lines.name(), ": more than ", kLargestTable,
              " bytes; the last rows are enough for a forecast");
    }
    return table;
  });
}

std::string forecast_csv(const Json& forecast) {
  std::string text;
  const bool timed = forecast.contains("times");
  for (size_t i = 0; i < forecast["columns"].size(); ++i)
    text += (i > 0 || timed ? "," : "") + csv_field(forecast["columns"][i].get<std::string>());
  text = (timed ? csv_field(forecast["time_column"].get<std::string>()) : "") + text + "\n";
  for (size_t h = 0; h < forecast["steps"].size(); ++h) {
    if (timed) text += forecast["times"][h].get<std::string>();
    for (size_t i = 0; i < forecast["steps"][h].size(); ++i)
      text += (i > 0 || timed ? "," : "") + forecast["steps"][h][i].dump();
    text += "\n";
  }
  return text;
}

bool is_case_header(std::string_view line) {
  const std::string_view text = data::strip(line);
  return text.empty() || text[0] == '@' || text[0] == '#';
}

}  // namespace fovea::tasks
