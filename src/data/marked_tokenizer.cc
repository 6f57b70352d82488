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

MarkedText MarkedTokenizer::mark(std::span<const int32_t> text, int64_t limit) const {
  MarkedText marked;
  append(marked, marks_.begin, text.first(std::min(text.size(), room_within(limit, marks_around(false)))), 0);
  return marked;
}

MarkedText MarkedTokenizer::mark(std::span<const int32_t> first, std::span<const int32_t> second,
                                 int64_t limit) const {
  const PairLengths kept = cut_pair(first.size(), second.size(), room_within(limit, marks_around(true)));
  MarkedText marked;
  append(marked, marks_.begin, first.first(kept.first), 0);
  append(marked, marks_.doubled ? marks_.end : -1, second.first(kept.second), marks_.doubled ? 0 : 1);
  return marked;
}

// before: the mark that opens the text, or -1.
void MarkedTokenizer::append(MarkedText& marked, int32_t before, std::span<const int32_t> text,
                             int32_t type) const {
  if (before >= 0) marked.ids.push_back(before);
  marked.ids.insert(marked.ids.end(), text.begin(), text.end());
  marked.ids.push_back(marks_.end);
  marked.types.resize(marked.ids.size(), type);
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
