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

std::vector<std::string> MarkedTokenizer::unknown_texts(std::string_view text) const {
  std::vector<size_t> begins;  // of each character, in bytes; one more for the end
  for (std::string_view rest = text; !rest.empty(); next_character(rest))
    begins.push_back(text.size() - rest.size());
  begins.push_back(text.size());
  std::vector<std::string> texts;
  for (const TokenSpan& span : spans(text)) {
    if (span.id != marks_.unknown) continue;
    const size_t begin = begins[static_cast<size_t>(span.begin)], end = begins[static_cast<size_t>(span.end)];
    texts.emplace_back(text.substr(begin, end - begin));
  }
  return texts;
}

std::vector<TokenSpan> MarkedTokenizer::spans(std::string_view text) const {
  constexpr std::string_view kWordMark = "▁";
  std::vector<TokenSpan> spans;
  size_t cursor = 0, open = 0;  // `open` spans at the end were not found yet; they begin at the cursor
  const auto close = [&](size_t end) {
    for (size_t i = spans.size() - open; i < spans.size(); ++i)
      spans[i] = {spans[i].id, static_cast<int64_t>(cursor), static_cast<int64_t>(end)};
    open = 0;
  };
  for (const int32_t id : encode(text)) {
    const std::string piece = this->piece(id);
    std::string_view written = piece;
    if (written.starts_with(kWordMark)) written.remove_prefix(kWordMark.size());
    const size_t at = written.empty() ? cursor : text.find(written, cursor);
    const bool found = at != std::string_view::npos &&
                       (open > 0 || without_white_end(text.substr(cursor, at - cursor)).empty());
    if (found && !written.empty()) {
      close(at);
      cursor = at + written.size();
    }
    open += !found || (open > 0 && written.empty());
    spans.push_back(
        {id, static_cast<int64_t>(cursor - (found ? written.size() : 0)), static_cast<int64_t>(cursor)});
  }
  close(text.size());
  count_in_characters(text, spans);
  return spans;
}

void count_in_characters(std::string_view text, std::vector<TokenSpan>& spans) {
  // The character that holds each byte; one more for the end.
  std::vector<int64_t> character(text.size() + 1);
  int64_t count = 0;
  for (std::string_view rest = text; !rest.empty(); ++count) {
    const size_t at = text.size() - rest.size();
    next_character(rest);
    std::fill(character.begin() + static_cast<std::ptrdiff_t>(at),
              character.end() - static_cast<std::ptrdiff_t>(rest.size()) - 1, count);
  }
  character[text.size()] = count;
  for (TokenSpan& span : spans) {
    auto begin = static_cast<size_t>(span.begin), end = static_cast<size_t>(span.end);
    FOVEA_ASSERT(begin <= end && end <= text.size());
    while (begin < end && text[begin] == ' ') ++begin;
    while (begin < end && text[end - 1] == ' ') --end;
    span.begin = character[begin];
    span.end = begin == end ? span.begin : character[end - 1] + 1;
  }
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

void WholeTokens::add_marks(const Marks& marks, std::span<const std::string> tokens, bool strip_before_mask) {
  for (const int32_t mark : {marks.begin, marks.end, marks.unknown, marks.mask, marks.pad})
    if (mark >= 0) add(tokens[static_cast<size_t>(mark)], mark, mark == marks.mask && strip_before_mask);
}

const WholeTokens::Entry* WholeTokens::find(std::string_view text) const {
  for (const Entry& entry : by_first_byte_[static_cast<unsigned char>(text[0])])
    if (text.starts_with(entry.text)) return &entry;
  return nullptr;
}

}  // namespace fovea::data
