// Files for tests: small ones written for the moment, and the public data sets where they are present.
#pragma once

#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"

namespace fovea::data {

// A folder that goes with the test.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fovea-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }

  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::string write_gzip(const std::string& name, std::string_view bytes, const char* mode = "wb") const {
    gzFile file = gzopen(path(name).c_str(), mode);
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

// What a call complains about, with the test's folder taken out of it.
template <class Call>
std::string complaint(const TestFolder& folder, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    std::string text = error.what();
    const std::string prefix = folder.path("");
    for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
    return text;
  }
  return "no error";
}

// Where the public data sets lie: $FOVEA_DATA, or shared/data beside the project.
inline std::filesystem::path public_data() {
  const char* named = std::getenv("FOVEA_DATA");
  return named != nullptr ? std::filesystem::path(named)
                          : std::filesystem::path(FOVEA_SOURCE).parent_path() / "shared" / "data";
}

}  // namespace fovea::data

// Skips the test, saying so, when a file of the public data sets is absent.
#define FOVEA_NEEDS_DATA(variable, relative)                                         \
  const std::string variable = (::fovea::data::public_data() / (relative)).string(); \
  if (!std::filesystem::exists(variable)) GTEST_SKIP() << "needs the public data set at " << variable
