// Byte-level BPE: splits text into words as GPT-2 does, applies the learnt merges, and reads vocab.json and merges.txt.
#include "data/byte_bpe.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <limits>
#include <queue>

#include "base/error.h"
#include "data/listed_tokenizer.h"
#include "data/text.h"

namespace fovea::data {
namespace {

// GPT-2 spells every byte as one character that can be seen: itself where it can, else one from U+0100 on.
char32_t spelling_of(unsigned byte) {
  const auto is_seen = [](unsigned b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  if (is_seen(byte)) return byte;
  char32_t next = 0x100;
  for (unsigned b = 0; b < byte; ++b) next += !is_seen(b);
  return next;
}

// All spellings are below U+0800: one or two bytes.
std::string utf8_of(char32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}

// The bytes that a token spells; false where it is no such spelling.
bool spelled_bytes(std::string_view token, std::string& bytes) {
  static const std::vector<int> kBytes = [] {
    std::vector<int> table(0x200, -1);
    for (unsigned byte = 0; byte < 256; ++byte) table[spelling_of(byte)] = static_cast<int>(byte);
    return table;
  }();
  bytes.clear();
  while (!token.empty()) {
    const char32_t c = next_character(token);
    if (c >= kBytes.size() || kBytes[c] < 0) return false;
    bytes.push_back(static_cast<char>(kBytes[c]));
  }
  return true;
}

enum class Kind { letter, number, white, other };

Kind kind_of(char32_t c) {
  if (c < 0x80) {
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return Kind::letter;
    if (c >= '0' && c <= '9') return Kind::number;
    return is_white(c) ? Kind::white : Kind::other;
  }
  if (is_white(c)) return Kind::white;
  const uint32_t mask = U_GET_GC_MASK(static_cast<UChar32>(c));
  return (mask & U_GC_L_MASK) != 0 ? Kind::letter : (mask & U_GC_N_MASK) != 0 ? Kind::number : Kind::other;
}

// Bytes of the longest run of `kind` at the front.
size_t run_of(std::string_view text, Kind kind) {
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view after = rest;
    if (kind_of(next_character(after)) != kind) break;
    rest = after;
  }
  return text.size() - rest.size();
}

// Bytes of the word at the front: an English ending ('s, 'll); a run of letters, of numbers or of other
// signs, with one space before it; white space, whose last character is left to the word that follows.
size_t word_at(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  const size_t space = text[0] == ' ';
  std::string_view inner = text.substr(space), after = inner;
  if (!inner.empty()) {
    const Kind kind = kind_of(next_character(after));
    if (kind != Kind::white) return space + run_of(inner, kind);
  }
  const size_t white = run_of(text, Kind::white);
  if (white == text.size()) return white;
  size_t last = white - 1;
  while ((text[last] & 0xC0) == 0x80) --last;
  return last > 0 ? last : white;
}

class ByteBpe final : public ListedTokenizer {
 public:
  struct Joined {
    int32_t rank, id;
  };
  using Joins = std::unordered_map<uint64_t, Joined>;

  ByteBpe(std::vector<std::string> tokens, TextIds ids, Joins joins, const ByteBpeOptions& options,
          const Marks& marks)
      : ListedTokenizer(std::move(tokens), marks), options_(options), joins_(std::move(joins)) {
    for (unsigned byte = 0; byte < 256; ++byte) bytes_[byte] = ids.find(utf8_of(spelling_of(byte)))->second;
    whole_.add_marks(marks, this->tokens(), options.strip_before_mask);
    for (const std::string& token : options.whole) whole_.add(token, ids.find(token)->second);
  }

  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  std::vector<int32_t> encode(std::string_view sentence) const override {
    return whole_.encode(sentence,
                         [&](std::string_view text, std::vector<int32_t>& ids) { encode_plain(text, ids); });
  }

  std::vector<TokenSpan> spans(std::string_view text) const override {
    std::vector<TokenSpan> spans;
    std::vector<int32_t> ids;
    std::string bytes;
    whole_.split(
        text,
        [&](std::string_view plain) {
          ids.clear();
          encode_plain(plain, ids);
          auto at = static_cast<int64_t>(plain.data() - text.data());
          const int64_t begin = at;
          at -= begins_with_added_space(plain);
          for (const int32_t id : ids) {
            spelled_bytes(this->at(id), bytes);
            const int64_t end = at + static_cast<int64_t>(bytes.size());
            spans.push_back({id, std::max(at, begin), std::max(end, begin)});
            at = end;
          }
        },
        [&](int32_t id, size_t at) {
          spans.push_back({id, static_cast<int64_t>(at), static_cast<int64_t>(at + this->at(id).size())});
        });
    count_in_characters(text, spans);
    return spans;
  }

  // Bytes that are no UTF-8, such as half a character, become U+FFFD.
  std::string decode(std::span<const int32_t> ids) const override {
    std::string bytes, part;
    for (const int32_t id : ids) {
      if (whole_.contains(id) && id != marks_.unknown) continue;
      bytes += spelled_bytes(at(id), part) ? part : at(id);
    }
    std::string sentence;
    for (std::string_view rest = bytes; !rest.empty();) {
      const size_t good = valid_utf8_prefix(rest);
      sentence += rest.substr(0, good);
      if (good == rest.size()) break;
      sentence += "\xEF\xBF\xBD";
      rest.remove_prefix(good + 1);
    }
    return sentence;
  }

  // Readable, with "Ġ" for the space before a word; half a character or a line's end stays as it is spelled.
  std::string piece(int32_t id) const override {
    std::string bytes;
    if (whole_.contains(id) || !spelled_bytes(at(id), bytes) || !is_utf8(bytes)) return at(id);
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
    if (std::any_of(bytes.begin(), bytes.end(), is_control)) return at(id);
    return bytes.starts_with(' ') ? "Ġ" + bytes.substr(1) : bytes;
  }

  std::vector<int32_t> words(std::span<const int32_t> ids) const override {
    std::vector<int32_t> numbers;
    int32_t number = -1;
    bool joins = false;  // the token before may be continued
    for (const int32_t id : ids) {
      const bool special = whole_.contains(id), first = at(id).starts_with("Ġ");
      number += special || first || !joins;
      joins = !special;
      numbers.push_back(number);
    }
    return numbers;
  }

 private:
  bool begins_with_added_space(std::string_view text) const {
    return options_.prefix_space && !text.starts_with(' ');
  }

  void encode_plain(std::string_view text, std::vector<int32_t>& ids) const {
    std::string spaced;
    if (begins_with_added_space(text)) text = spaced = " " + std::string(text);
    for (const std::string_view word : byte_bpe_words(text)) encode_word(word, ids);
  }

  // Joins the pair whose merge was learnt first, the leftmost of equal ones, until none is left. A queue and
  // a linked list: a line without spaces is one long word.
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    struct Symbol {
      int32_t id;
      int32_t before, after;  // -1 at the ends
    };
    struct Candidate {
      int32_t rank, place, left, right, joined;
      bool operator<(const Candidate& other) const {
        return rank != other.rank ? rank > other.rank : place > other.place;
      }
    };
    const auto count = static_cast<int32_t>(word.size());
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    for (int32_t i = 0; i < count; ++i)
      symbols.push_back({bytes_[static_cast<unsigned char>(word[static_cast<size_t>(i)])], i - 1,
                         i + 1 < count ? i + 1 : -1});
    std::priority_queue<Candidate> queue;
    const auto consider = [&](int32_t place) {
      if (place < 0 || symbols[static_cast<size_t>(place)].after < 0) return;
      const Symbol& left = symbols[static_cast<size_t>(place)];
      const int32_t right = symbols[static_cast<size_t>(left.after)].id;
      const auto found = joins_.find(key(left.id, right));
      if (found != joins_.end()) queue.push({found->second.rank, place, left.id, right, found->second.id});
    };
    for (int32_t i = 0; i < count; ++i) consider(i);
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& left = symbols[static_cast<size_t>(best.place)];
      // What stood there may have been joined to something else meanwhile; -1 is a symbol that is gone.
      if (left.id != best.left || left.after < 0) continue;
      Symbol& right = symbols[static_cast<size_t>(left.after)];
      if (right.id != best.right) continue;
      left.id = best.joined;
      right.id = -1;
      left.after = right.after;
      if (left.after >= 0) symbols[static_cast<size_t>(left.after)].before = best.place;
      consider(left.before);
      consider(best.place);
    }
    for (const Symbol& symbol : symbols)
      if (symbol.id >= 0) ids.push_back(symbol.id);
  }

  ByteBpeOptions options_;
  Joins joins_;
  std::array<int32_t, 256> bytes_{};
  WholeTokens whole_;
};

}  // namespace

std::vector<std::string_view> byte_bpe_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, word_at(text)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

std::vector<Merge> parse_merges(std::string_view bytes, const std::string& name) {
  std::vector<Merge> merges;
  for (size_t line = 1; !bytes.empty(); ++line) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view text = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    while (text.ends_with('\r')) text.remove_suffix(1);
    if (text.starts_with("#version") || text.empty()) continue;
    const size_t space = text.find(' ');
    require(space != std::string_view::npos && space > 0 && space + 1 < text.size() &&
                text.find(' ', space + 1) == std::string_view::npos && is_utf8(text),
            name, ", line ", line, ": wanted two parts with a space between them");
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

std::unique_ptr<MarkedTokenizer> make_byte_bpe(std::vector<std::string> tokens,
                                               const std::vector<Merge>& merges,
                                               const ByteBpeOptions& options, const std::string& name) {
  require(tokens.size() < std::numeric_limits<int32_t>::max() &&
              merges.size() < std::numeric_limits<int32_t>::max(),
          name, ": ", tokens.size(), " tokens and ", merges.size(), " merges, too many");
  constexpr size_t kMostWhole = 10'000;  // each is looked for in every text
  require(options.whole.size() <= kMostWhole, name, ": ", options.whole.size(),
          " tokens that are never cut, wanted at most ", kMostWhole);
  TextIds ids;
  for (size_t i = 0; i < tokens.size(); ++i) {
    require(!tokens[i].empty(), name, ": token ", i, " is empty");
    const auto [place, fresh] = ids.emplace(tokens[i], static_cast<int32_t>(i));
    require(fresh, name, ": tokens ", place->second, " and ", i, " are the same");
  }
  const auto find = [&](std::string_view token) {
    const auto place = ids.find(token);
    return place == ids.end() ? -1 : place->second;
  };
  const auto need = [&](const std::string& token) {
    const int32_t id = find(token);
    require(id >= 0, name, ": no '", token, "' among its ", tokens.size(),
            " tokens; is it the vocabulary of a RoBERTa model?");
    return id;
  };
  for (unsigned byte = 0; byte < 256; ++byte) need(utf8_of(spelling_of(byte)));
  ByteBpe::Joins joins;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const int32_t a = find(left), b = find(right), joined = find(left + right);
    require(a >= 0 && b >= 0 && joined >= 0, name, ": merge ", rank,
            " joins tokens that the vocabulary lacks");
    joins.emplace(ByteBpe::key(a, b), ByteBpe::Joined{static_cast<int32_t>(rank), joined});
  }
  for (const std::string& token : options.whole) need(token);
  const Marks marks{need(options.begin), need(options.end), need(options.unknown),
                    find(options.mask),  find(options.pad), true};
  return std::make_unique<ByteBpe>(std::move(tokens), std::move(ids), std::move(joins), options, marks);
}

}  // namespace fovea::data
