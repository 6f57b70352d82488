// What the command line needs of number sequences beside tasks::open().
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tasks/open.h"

namespace fovea::tasks {

// Whether the folder's model forecasts the next steps of a table; otherwise it labels cases.
bool is_forecaster(const FolderContents& contents);

// A table as an input; path: a file, plain or gzip, or "-" for standard input. Throws FileError.
Input read_table(const std::string& path);
// What OpenFolder::to_json() gives of a forecast, as CSV with a header.
std::string forecast_csv(const Json& forecast);

// Whether a line of a .ts file is no case: a header line, a comment or blank.
bool is_case_header(std::string_view line);

// See tasks/series.h.
std::string series_test(const std::filesystem::path& folder, const std::string& file,
                        const std::string& split, bool json);

}  // namespace fovea::tasks
