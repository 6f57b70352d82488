#include "train/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/file.h"

namespace fovea::train {
namespace {

// Length of the lines that belong to steps up to `step`: the first one that is later or broken ends them.
size_t length_until(std::string_view text, int64_t step) {
  size_t kept = 0;
  while (kept < text.size()) {
    const size_t end = text.find('\n', kept);
    if (end == std::string_view::npos) break;
    const Json line = Json::parse(text.substr(kept, end - kept), nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) break;
    if (line["step"].get<int64_t>() > step) break;
    kept = end + 1;
  }
  return kept;
}

}  // namespace

Log::Log(const std::filesystem::path& run, int64_t step) : path_(run / "train.jsonl") {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  require(descriptor_ >= 0, "cannot write ", path_.string(), ": ", std::strerror(errno));
  const size_t kept = step == 0 ? 0 : length_until(read_text(path_), step);
  // Not within require(): its other arguments may be evaluated first, and errno with them.
  if (::ftruncate(descriptor_, static_cast<off_t>(kept)) != 0)
    fail("cannot write ", path_.string(), ": ", std::strerror(errno));
}

Log::~Log() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Log::write(const Json& line) {
  const std::string text = line.dump() + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    require(written > 0, "cannot write ", path_.string(), ": ", std::strerror(errno));
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace fovea::train
