// Any bytes as a config: refused with an Error or read, and what was read writes and reads back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "io/json.h"

namespace {

struct Options {
  int64_t steps = 1;
  float rate = 1;
  bool nesterov = false;
  std::string schedule;
  std::vector<int32_t> milestones;
  std::optional<double> clip;
  static constexpr auto fields() {
    using fovea::Field;
    return std::tuple{
        Field{"steps", &Options::steps, ""},           Field{"rate", &Options::rate, ""},
        Field{"nesterov", &Options::nesterov, ""},     Field{"schedule", &Options::schedule, ""},
        Field{"milestones", &Options::milestones, ""}, Field{"clip", &Options::clip, ""}};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const fovea::Json json = fovea::parse_json({reinterpret_cast<const char*>(data), size}, "input");
    Options options, again;
    fovea::fields_from_json(json, options, "input");
    const fovea::Json written = fovea::fields_to_json(options);
    fovea::fields_from_json(fovea::parse_json(written.dump(), "written"), again, "written");
    if (fovea::fields_to_json(again).dump() != written.dump()) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
