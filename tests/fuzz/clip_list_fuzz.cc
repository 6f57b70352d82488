// Any bytes as a list of bags: refused with an Error, or rows that are filled, UTF-8, and agree on each bag's label.
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "data/clips.h"
#include "data/text.h"
#include "folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const fovea::data::ClipList list = fovea::data::parse_clip_list(as_text(bytes, size), "list");
    if (list.rows.empty()) std::abort();
    std::map<std::string, std::string> labels;
    for (const fovea::data::ClipListRow& row : list.rows) {
      for (const std::string* field : {&row.clip, &row.label, &row.path})
        if (!fovea::data::is_utf8(*field) || fovea::data::strip(*field).empty() ||
            field->find_first_of("\t\n") != std::string::npos)
          std::abort();
      if (row.key && !list.has_keys) std::abort();
      if (labels.emplace(row.clip, row.label).first->second != row.label) std::abort();
    }
  } catch (const fovea::Error&) {
  }
  return 0;
}
