// BERT's tokenizer: cleans and splits text, then matches the longest pieces of the vocabulary.
#include "data/wordpiece.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "data/listed_tokenizer.h"
#include "data/text.h"

namespace fovea::data {
namespace {

// The field's tokenizers know the general categories of Unicode 8 and take later characters for letters; a
// vocabulary's pieces were cut with those. What has changed its category since is listed where it is asked
// for.
uint32_t category_mask(char32_t c) {
  constexpr uint8_t kKnownVersion = 8;
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  const bool known = age[0] < kKnownVersion || (age[0] == kKnownVersion && age[1] == 0);
  return known ? U_GET_GC_MASK(static_cast<UChar32>(c)) : U_GC_LO_MASK;
}

// Control, format and private characters. Those that are not assigned stay.
bool is_control(char32_t c) {
  if (c < 0x80) return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
  return (category_mask(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
}

bool is_accent(char32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1734) return true;
  return (category_mask(c) & U_GC_MN_MASK) != 0 && c != 0x1885 && c != 0x1886 && c != 0xA9BD && c != 0x111C9;
}

// The blocks that BERT sets apart: no kana, no Hangul.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_ascii(std::u32string_view text) {
  return std::all_of(text.begin(), text.end(), [](char32_t c) { return c < 0x80; });
}

// Characters taken apart into letters and marks: Unicode's form NFD.
std::u32string decomposed(std::u32string_view text) {
  std::u16string narrow;
  narrow.reserve(text.size());
  for (const char32_t c : text) {
    if (c < 0x10000) {
      narrow.push_back(static_cast<char16_t>(c));
    } else {
      narrow.push_back(static_cast<char16_t>(U16_LEAD(c)));
      narrow.push_back(static_cast<char16_t>(U16_TRAIL(c)));
    }
  }
  require(narrow.size() < std::numeric_limits<int32_t>::max() / 4, "text of ", text.size(),
          " characters is too long to tokenise");
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* nfd = unorm2_getNFDInstance(&status);
  std::u16string apart(narrow.size() + 16, u'\0');
  for (;;) {
    require(U_SUCCESS(status), "cannot take the characters of a text apart: ", u_errorName(status));
    const int32_t length = unorm2_normalize(nfd, narrow.data(), static_cast<int32_t>(narrow.size()),
                                            apart.data(), static_cast<int32_t>(apart.size()), &status);
    const bool fits = status != U_BUFFER_OVERFLOW_ERROR;
    apart.resize(static_cast<size_t>(length));
    if (fits) break;
    status = U_ZERO_ERROR;
  }
  require(U_SUCCESS(status), "cannot take the characters of a text apart: ", u_errorName(status));
  std::u32string wide;
  wide.reserve(apart.size());
  for (int32_t at = 0; at < static_cast<int32_t>(apart.size());) {
    UChar32 c;
    U16_NEXT(apart.data(), at, static_cast<int32_t>(apart.size()), c);
    wide.push_back(static_cast<char32_t>(c));
  }
  return wide;
}

void append_lower(std::u32string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {  // İ, the one letter whose lower case is two characters
    out += U"i\u0307";
  } else {
    out.push_back(static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
  }
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | c >> 6));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | c >> 12));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | c >> 18));
    out.push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

// Each character apart becomes as many as it does among its neighbours; marks may change places within theirs.
std::vector<int64_t> decomposed_origins(std::u32string_view text, const std::vector<int64_t>& origins) {
  std::vector<int64_t> apart;
  for (size_t i = 0; i < text.size(); ++i)
    apart.insert(apart.end(), text[i] < 0x80 ? 1 : decomposed(text.substr(i, 1)).size(), origins[i]);
  return apart;
}

void erase_accents(std::u32string& text, std::vector<int64_t>* origins) {
  size_t kept = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_accent(text[i])) continue;
    text[kept] = text[i];
    if (origins != nullptr) (*origins)[kept] = (*origins)[i];
    ++kept;
  }
  text.resize(kept);
  if (origins != nullptr) origins->resize(kept);
}

// origins, where requested: of each character of the normal form the number of the character it comes from.
std::u32string normal_form(std::string_view text, const WordPieceOptions& options,
                           std::vector<int64_t>* origins) {
  std::u32string normal;
  normal.reserve(text.size());
  const auto append = [&](char32_t c, int64_t origin) {
    normal.push_back(c);
    if (origins != nullptr) origins->push_back(origin);
  };
  for (int64_t place = 0; !text.empty(); ++place) {
    char32_t c = next_character(text);
    if (options.clean) {
      if (c == 0 || c == 0xFFFD || is_control(c)) continue;
      if (is_white(c)) c = U' ';
    }
    const bool apart = options.split_chinese && is_chinese(c);
    if (apart) append(U' ', place);
    append(c, place);
    if (apart) append(U' ', place);
  }
  if (options.strip_accents.value_or(options.lowercase) && !is_ascii(normal)) {
    if (origins != nullptr) *origins = decomposed_origins(normal, *origins);
    normal = decomposed(normal);
    erase_accents(normal, origins);
  }
  if (!options.lowercase) return normal;
  std::u32string lower;
  std::vector<int64_t> lower_origins;
  lower.reserve(normal.size());
  for (size_t i = 0; i < normal.size(); ++i) {
    append_lower(lower, normal[i]);
    if (origins != nullptr) lower_origins.resize(lower.size(), (*origins)[i]);
  }
  if (origins != nullptr) *origins = std::move(lower_origins);
  return lower;
}

// Calls visit(word, its length in characters, its first character's place in `normal`) for every word: white space
// separates words, and a punctuation mark is a word of its own.
template <class Visit>
void for_each_word(std::u32string_view normal, Visit&& visit) {
  std::string word;
  int64_t length = 0, at = 0;  // of the word, in characters; and the next character
  const auto end_word = [&] {
    if (length > 0) visit(word, length, at - length);
    word.clear();
    length = 0;
  };
  for (const char32_t c : normal) {
    const bool white = is_white(c), alone = !white && is_punctuation(c);
    if (white || alone) end_word();
    if (!white) {
      append_utf8(word, c);
      ++length;
    }
    ++at;
    if (alone) end_word();
  }
  end_word();
}

// What English decoding glues to the word before it.
bool is_glued(std::string_view token) {
  constexpr std::string_view kGlued[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
  return std::any_of(std::begin(kGlued), std::end(kGlued),
                     [&](std::string_view glued) { return token.starts_with(glued); });
}

class WordPiece final : public ListedTokenizer {
 public:
  // `tokens` hold no token twice; the marks are among them.
  WordPiece(std::vector<std::string> tokens, const WordPieceOptions& options, const Marks& marks)
      : ListedTokenizer(std::move(tokens), marks), options_(options) {
    for (size_t i = 0; i < this->tokens().size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      const std::string& token = this->tokens()[i];
      ids_.emplace(token, id);
      if (is_inner(token)) inner_.emplace(token.substr(options.prefix.size()), id);
      longest_piece_ = std::max(longest_piece_, token.size());
    }
    whole_.add_marks(marks, this->tokens(), options.strip_before_mask);
    for (const std::string& token : options.whole) whole_.add(token, ids_.find(token)->second);
  }

  std::vector<int32_t> encode(std::string_view sentence) const override {
    return whole_.encode(sentence,
                         [&](std::string_view text, std::vector<int32_t>& ids) { encode_plain(text, ids); });
  }

  std::vector<TokenSpan> spans(std::string_view text) const override {
    std::vector<TokenSpan> spans;
    std::vector<int32_t> ids;
    // Characters before a place of the text.
    int64_t characters_before = 0;
    size_t counted = 0;
    const auto count_to = [&](size_t place) {
      for (std::string_view rest = text.substr(counted, place - counted); !rest.empty(); ++characters_before)
        next_character(rest);
      counted = place;
      return characters_before;
    };
    whole_.split(
        text,
        [&](std::string_view plain) {
          const int64_t begin = count_to(static_cast<size_t>(plain.data() - text.data()));
          const size_t first = spans.size();
          ids.clear();
          encode_plain(plain, ids, &spans);
          for (size_t i = first; i < spans.size(); ++i) {
            spans[i].begin += begin;
            spans[i].end += begin;
          }
        },
        [&](int32_t id, size_t at) {
          const int64_t begin = count_to(at);
          spans.push_back({id, begin, count_to(at + this->at(id).size())});
        });
    return spans;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string sentence;
    for (const int32_t id : ids) {
      std::string_view token = at(id);
      if (whole_.contains(id) && id != marks_.unknown) continue;
      const bool inner = is_inner(token);
      if (inner && !sentence.empty()) token.remove_prefix(options_.prefix.size());
      if (!inner && !sentence.empty() && !is_glued(token)) sentence += ' ';
      sentence += token;
    }
    return sentence;
  }

  std::string piece(int32_t id) const override { return at(id); }

  std::vector<int32_t> words(std::span<const int32_t> ids) const override {
    std::vector<int32_t> numbers;
    int32_t number = -1;
    bool joins = false;  // the token before may be continued
    for (const int32_t id : ids) {
      number += !(joins && is_inner(at(id)));
      joins = !whole_.contains(id);
      numbers.push_back(number);
    }
    return numbers;
  }

 private:
  bool is_inner(std::string_view token) const {
    return token.size() > options_.prefix.size() && token.starts_with(options_.prefix);
  }

  // spans: where the tokens come from, in characters of `text`; null: not requested.
  void encode_plain(std::string_view text, std::vector<int32_t>& ids,
                    std::vector<TokenSpan>* spans = nullptr) const {
    std::vector<int64_t> origins;
    const std::u32string normal = normal_form(text, options_, spans != nullptr ? &origins : nullptr);
    for_each_word(normal, [&](const std::string& word, int64_t length, int64_t first) {
      const size_t before = ids.size();
      encode_word(word, length, ids);
      if (spans != nullptr)
        add_spans(std::span(ids).subspan(before),
                  std::span(origins).subspan(static_cast<size_t>(first), static_cast<size_t>(length)),
                  *spans);
    });
  }

  // The tokens of one word. origins: of each character of its normal form the character of the text.
  void add_spans(std::span<const int32_t> tokens, std::span<const int64_t> origins,
                 std::vector<TokenSpan>& spans) const {
    size_t place = 0;
    for (const int32_t id : tokens) {
      std::string_view piece = at(id);
      if (place > 0) piece.remove_prefix(options_.prefix.size());
      const bool unknown = id == marks_.unknown && tokens.size() == 1;
      const size_t length = unknown ? origins.size() : characters(piece).size();
      FOVEA_ASSERT(length > 0 && place + length <= origins.size());
      spans.push_back({id, origins[place], origins[place + length - 1] + 1});
      place += length;
    }
  }

  // From left to right the longest piece there is; unknown as a whole where one cannot be found.
  void encode_word(std::string_view word, int64_t length, std::vector<int32_t>& ids) const {
    const size_t before = ids.size();
    bool found = length <= options_.longest_word;
    for (size_t begin = 0; found && begin < word.size();) {
      const TextIds& pieces = begin == 0 ? ids_ : inner_;
      size_t end = std::min(word.size(), begin + longest_piece_);
      found = false;
      for (; end > begin; --end) {
        if (end < word.size() && (word[end] & 0xC0) == 0x80) continue;  // inside a character
        const auto place = pieces.find(word.substr(begin, end - begin));
        if (place == pieces.end()) continue;
        ids.push_back(place->second);
        found = true;
        break;
      }
      begin = end;
    }
    if (found) return;
    ids.resize(before);
    ids.push_back(marks_.unknown);
  }

  WordPieceOptions options_;
  TextIds ids_, inner_;  // inner_: without the prefix
  WholeTokens whole_;
  size_t longest_piece_ = 0;
};

}  // namespace

void for_each_wordpiece_word(std::string_view text, const WordPieceOptions& options,
                             const std::function<void(const std::string& word, int64_t length)>& visit) {
  for_each_word(wordpiece_normal_form(text, options),
                [&](const std::string& word, int64_t length, int64_t) { visit(word, length); });
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return c > 0x20 && c < 0x7F && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9');
  return (category_mask(c) & U_GC_P_MASK) != 0 || c == 0x166D || c == 0x111C9;
}

std::u32string wordpiece_normal_form(std::string_view text, const WordPieceOptions& options) {
  return normal_form(text, options, nullptr);
}

std::vector<std::string> parse_wordpiece_tokens(std::string_view bytes, const std::string& name) {
  std::vector<std::string> tokens;
  for (size_t line = 1; !bytes.empty(); ++line) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view token = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    while (token.ends_with('\r')) token.remove_suffix(1);
    require(is_utf8(token), name, ", line ", line, ": not UTF-8");
    tokens.emplace_back(token);
  }
  return tokens;
}

std::unique_ptr<MarkedTokenizer> make_wordpiece(std::vector<std::string> tokens,
                                                const WordPieceOptions& options, const std::string& name) {
  require(tokens.size() < std::numeric_limits<int32_t>::max(), name, ": ", tokens.size(),
          " tokens, too many");
  require(options.longest_word > 0, name, ": words of at most ", options.longest_word,
          " characters, wanted at least 1");
  constexpr size_t kMostWhole = 10'000;  // each is looked for in every text
  require(options.whole.size() <= kMostWhole, name, ": ", options.whole.size(),
          " tokens that are never cut, wanted at most ", kMostWhole);
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t i = 0; i < tokens.size(); ++i) {
    require(!tokens[i].empty(), name, ": token ", i, " is empty");
    const auto [place, fresh] = ids.emplace(tokens[i], static_cast<int32_t>(i));
    require(fresh, name, ": tokens ", place->second, " and ", i, " are the same");
  }
  const auto find = [&](const std::string& token) {
    const auto place = ids.find(token);
    return place == ids.end() ? -1 : place->second;
  };
  const auto need = [&](const std::string& token) {
    const int32_t id = find(token);
    require(id >= 0, name, ": no '", token, "' among its ", tokens.size(),
            " tokens; is it the vocabulary of a BERT model?");
    return id;
  };
  for (const std::string& token : options.whole) need(token);
  const Marks marks{need(options.begin), need(options.end), need(options.unknown),
                    find(options.mask),  find(options.pad), options.doubled};
  return std::make_unique<WordPiece>(std::move(tokens), options, marks);
}

}  // namespace fovea::data
