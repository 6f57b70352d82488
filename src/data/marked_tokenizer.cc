#include "data/marked_tokenizer.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "data/text.h"

namespace fovea::data {

// Half of the room each, but what the shorter text leaves is the longer one's.
PairLengths cut_pair(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  const size_t half = room / 2, shorter = std::min({first, second, half});
  // Of an odd room the longer text gets one more.
  return first > second ? PairLengths{room - shorter, shorter} : PairLengths{shorter, room - shorter};
}

size_t room_within(int64_t limit, int64_t around) {
  if (limit <= 0) return std::numeric_limits<size_t>::max();
  require(limit >= around, "a limit of ", limit, " tokens leaves no room for the ", around, " marks");
  return static_cast<size_t>(limit - around);
}

bool is_white(char32_t c) {
  return is_space(c) && !(c >= 0x1C && c <= 0x1F);
}

std::string_view without_white_end(std::string_view text) {
  size_t end = 0;
  for (std::string_view rest = text; !rest.empty();)
    if (!is_white(next_character(rest))) end = text.size() - rest.size();
  return text.substr(0, end);
}

void WholeTokens::add(const std::string& text, int32_t id, bool strip_left) {
  FOVEA_ASSERT(!text.empty());
  std::vector<Entry>& entries = by_first_byte_[static_cast<unsigned char>(text[0])];
  const auto same = [&](const Entry& entry) { return entry.text == text; };
  if (std::any_of(entries.begin(), entries.end(), same)) return;
  const auto place = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.text.size() < text.size(); });
  entries.insert(place, {text, id, strip_left});
  ids_.emplace(id, true);
}

const WholeTokens::Entry* WholeTokens::find(std::string_view text) const {
  for (const Entry& entry : by_first_byte_[static_cast<unsigned char>(text[0])])
    if (text.starts_with(entry.text)) return &entry;
  return nullptr;
}

}  // namespace fovea::data
