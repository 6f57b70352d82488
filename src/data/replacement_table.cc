#include "data/replacement_table.h"

#include <unicode/brkiter.h>
#include <unicode/unistr.h>

#include <cstring>
#include <memory>

#include "base/error.h"
#include "data/text.h"

namespace fovea::data {
namespace {

// A unit of the trie (Yata's Darts-clone): the byte that leads to it, whether a value follows, and where its
// children stand.
uint32_t label_of(uint32_t unit) {
  return unit & (0x80000000u | 0xFFu);
}
bool has_value(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7FFFFFFFu;
}
uint32_t offset_of(uint32_t unit) {
  return unit >> 10 << ((unit & 0x200u) >> 6);
}

}  // namespace

ReplacementTable::ReplacementTable(std::string_view bytes, const std::string& name) {
  uint32_t size = 0;
  require(bytes.size() > sizeof size, name, ": a table of character replacements of ", bytes.size(),
          " bytes, which is cut short");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  require(size > 0 && size % sizeof(uint32_t) == 0 && size < bytes.size(), name,
          ": the table of character replacements says that ", size, " of its ", bytes.size(),
          " bytes are a trie");
  units_.resize(size / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes.data(), size);
  texts_ = bytes.substr(size);
  require(texts_.back() == '\0', name, ": the last character replacement has no end");
  check(name);
}

void ReplacementTable::check(const std::string& name) const {
  const auto size = static_cast<uint32_t>(units_.size());
  const auto damaged = [&] {
    fail(name, ": the table of character replacements leads out of itself; the file is damaged");
  };
  std::vector<bool> seen(units_.size());
  std::vector<uint32_t> open{offset_of(units_[0])};  // where children stand
  while (!open.empty()) {
    const uint32_t base = open.back();
    open.pop_back();
    if ((base | 0xFFu) >= size) damaged();
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t place = base ^ byte, unit = units_[place];
      if (label_of(unit) != byte || seen[place]) continue;
      seen[place] = true;
      const uint32_t children = place ^ offset_of(unit);
      if (children >= size || (has_value(unit) && value_of(units_[children]) >= texts_.size())) damaged();
      open.push_back(children);
    }
  }
}

std::optional<std::string_view> ReplacementTable::replacement(std::string_view text) const {
  uint32_t base = offset_of(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    const uint32_t place = base ^ byte, unit = units_[place];
    if (label_of(unit) != byte) break;
    base = place ^ offset_of(unit);
    if (has_value(unit)) return std::string_view(texts_.data() + value_of(units_[base]));
  }
  return {};
}

std::string ReplacementTable::replace_clusters(std::string_view text,
                                               std::vector<std::pair<size_t, size_t>>* sources) const {
  constexpr size_t kLongestCluster = 5;
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> clusters(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  require(U_SUCCESS(status), "ICU cannot find characters: ", u_errorName(status));
  const auto wide =
      icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  clusters->setText(wide);
  std::string result;
  std::string cluster;
  size_t done = 0;  // bytes of text
  const auto add = [&](std::string_view from, std::string_view to) {
    result += to;
    for (size_t i = 0; sources != nullptr && i < to.size(); ++i) {
      if (from == to)
        sources->emplace_back(done + i, done + i + 1);
      else
        sources->emplace_back(done, done + from.size());
    }
    done += from.size();
  };
  int32_t begin = clusters->first();
  for (int32_t end = clusters->next(); end != icu::BreakIterator::DONE; begin = end, end = clusters->next()) {
    cluster.clear();
    wide.tempSubStringBetween(begin, end).toUTF8String(cluster);
    if (cluster.size() <= kLongestCluster)
      if (const auto found = replacement(cluster)) {
        add(cluster, *found);
        continue;
      }
    for (std::string_view rest = cluster; !rest.empty();) {
      const std::string_view from = rest;
      next_character(rest);
      const std::string_view one = from.substr(0, from.size() - rest.size());
      add(one, replacement(one).value_or(one));
    }
  }
  return result;
}

}  // namespace fovea::data
