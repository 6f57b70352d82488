// Any bytes as a table of numbers over time: refused with an Error, or finite numbers in whole rows, in the order
// of time.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "data/series_table.h"
#include "data/time_features.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace fovea::data;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  for (const Missing missing : {Missing::stop, Missing::last}) try {
      const SeriesTable table = parse_series_table(text, "fuzz.csv", {.missing = missing});
      if (table.rows() == 0 || table.values.size() % table.columns.size() != 0) std::abort();
      for (const float value : table.values)
        if (!std::isfinite(value)) std::abort();
      if (!table.times.empty() && static_cast<int64_t>(table.times.size()) != table.rows()) std::abort();
      for (size_t i = 1; i < table.times.size(); ++i)
        if (table.times[i] <= table.times[i - 1]) std::abort();
      for (const int64_t time : table.times)
        if (parse_time(time_text(time)) != time) std::abort();
    } catch (const fovea::Error&) {
    }
  return 0;
}
