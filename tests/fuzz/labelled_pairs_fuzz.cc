// Any bytes as a file of pairs, of several labels and of numbers: refused with an Error, or texts and targets that fit
// each other.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "data/labelled_text.h"
#include "data/text.h"

namespace {

using fovea::data::LabelForm;

void check(const fovea::data::LabelledText& text, LabelForm form, bool pairs, const std::string& path) {
  const size_t count = text.texts.size();
  if (count == 0 || text.labels.size() != count || text.lines.size() != count) std::abort();
  if (text.numbers.size() != (form == LabelForm::number ? count : 0)) std::abort();
  if (text.several.size() != (form == LabelForm::several ? count : 0)) std::abort();
  for (const float number : text.numbers)
    if (!std::isfinite(number)) std::abort();
  for (const std::string& one : text.texts) {
    const size_t tab = one.find('\t');
    if ((tab != std::string::npos) != pairs || !fovea::data::is_utf8(one)) std::abort();
    if (pairs && (tab == 0 || tab + 1 == one.size() || one.find('\t', tab + 1) != std::string::npos))
      std::abort();
  }
  for (const auto& labels : text.several)
    for (const std::string& label : labels)
      if (fovea::data::strip(label).empty()) std::abort();
  const auto set = fovea::data::label_set(text, path, form);
  if (fovea::data::targets_of(text, form, set, path).size() != static_cast<int64_t>(count)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  for (const char* ending : {".csv", ".tsv"}) {
    const std::string path = "/dev/shm/fovea-fuzz-pairs-" + std::to_string(getpid()) + ending;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    for (const LabelForm form : {LabelForm::one, LabelForm::several, LabelForm::number})
      for (const bool pairs : {false, true})
        for (const bool skip : {true, false}) try {
            check(fovea::data::read_labelled(path, {.skip_bad = skip,
                                                    .max_text_bytes = 200,
                                                    .form = form,
                                                    .separator = "|",
                                                    .pairs = pairs}),
                  form, pairs, path);
          } catch (const fovea::Error&) {
          }
    unlink(path.c_str());
  }
  return 0;
}
