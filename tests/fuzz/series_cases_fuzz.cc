// Any bytes as a .ts file: refused with an Error, or cases of whole steps with a label each.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "data/series_cases.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace fovea::data;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  for (const Missing missing : {Missing::stop, Missing::last}) try {
      const SeriesCases cases = parse_series_cases(text, "fuzz.ts", {.missing = missing});
      if (cases.size() == 0 || cases.features < 1) std::abort();
      if (static_cast<int64_t>(cases.values.size()) != cases.starts.back() * cases.features) std::abort();
      for (int64_t i = 0; i < cases.size(); ++i)
        if (cases.length(i) < 1) std::abort();
      for (const float value : cases.values)
        if (std::isinf(value) || (missing == Missing::stop && std::isnan(value))) std::abort();
      const auto count = static_cast<size_t>(cases.size());
      if (cases.target == CaseTarget::classes && cases.labels.size() != count) std::abort();
      if (cases.target == CaseTarget::number && cases.numbers.size() != count) std::abort();
      for (const int32_t label : cases.labels)
        if (label < 0 || static_cast<size_t>(label) >= cases.classes.size()) std::abort();
    } catch (const fovea::Error&) {
    }
  try {
    parse_case(text, 2, "fuzz");
  } catch (const fovea::Error&) {
  }
  return 0;
}
