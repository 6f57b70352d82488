// Words of ready-tokenised text, kept as vocab.txt: one a line, its id the line's number from 0.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "data/text.h"
#include "data/tokenizer.h"

namespace fovea::data {
namespace {

constexpr std::string_view kSpellings[kSpecials] = {"<pad>", "<s>", "</s>", "<unk>"};
constexpr std::string_view kJoint = "@@";  // ends a sub-word that the next one continues

class WordVocabulary final : public Tokenizer {
 public:
  // `words` begins with the specials and holds no word twice.
  explicit WordVocabulary(std::vector<std::string> words) : words_(std::move(words)) {
    for (size_t id = kSpecials; id < words_.size(); ++id) {
      ids_.emplace(words_[id], static_cast<int32_t>(id));
      joins_ = joins_ || is_joint(words_[id]);
    }
    FOVEA_ASSERT(ids_.size() + kSpecials == words_.size());
  }

  int32_t size() const override { return static_cast<int32_t>(words_.size()); }

  std::vector<int32_t> encode(std::string_view sentence) const override {
    std::vector<int32_t> ids;
    for (const std::string_view word : split_words(sentence)) {
      const auto found = ids_.find(word);
      ids.push_back(found == ids_.end() ? kUnknown : found->second);
    }
    return ids;
  }

  int32_t unknown_id() const override { return kUnknown; }
  std::vector<std::string> unknown_texts(std::string_view sentence) const override {
    std::vector<std::string> texts;
    for (const std::string_view word : split_words(sentence))
      if (!ids_.contains(word)) texts.emplace_back(word);
    return texts;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string sentence;
    bool joined = true;  // nothing is between the last word and the next
    for (const int32_t id : ids) {
      std::string_view word = at(id);
      if (id < kSpecials && id != kUnknown) continue;
      if (!joined) sentence += ' ';
      joined = joins_ && is_joint(word);
      if (joined) word.remove_suffix(kJoint.size());
      sentence += word;
    }
    return sentence;
  }

  std::string piece(int32_t id) const override { return at(id); }

  std::vector<int32_t> words(std::span<const int32_t> ids) const override {
    std::vector<int32_t> numbers;
    int32_t number = -1;
    bool joined = false;
    for (const int32_t id : ids) {
      const std::string& word = at(id);
      number += !joined || id < kSpecials;
      joined = joins_ && id >= kSpecials && is_joint(word);
      numbers.push_back(number);
    }
    return numbers;
  }

  std::string file_name() const override { return "vocab.txt"; }
  std::string bytes() const override {
    std::string text;
    for (const std::string& word : words_) text.append(word).append(1, '\n');
    return text;
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };

  static bool is_joint(std::string_view word) {
    return word.size() > kJoint.size() && word.ends_with(kJoint);
  }

  const std::string& at(int32_t id) const {
    require(id >= 0 && id < size(), "token id ", id, " is outside the vocabulary of ", size());
    return words_[id];
  }

  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  bool joins_ = false;  // the text is BPE with "@@"
};

std::vector<std::string> specials() {
  return {std::begin(kSpellings), std::end(kSpellings)};
}

bool is_special(std::string_view word) {
  return std::find(std::begin(kSpellings), std::end(kSpellings), word) != std::end(kSpellings);
}

}  // namespace

std::unique_ptr<Tokenizer> count_words(std::span<const std::span<const std::string>> texts,
                                       const WordOptions& options) {
  require(options.max_size == 0 || options.max_size > kSpecials, "a vocabulary of ", options.max_size,
          " words, wanted more than the ", kSpecials, " special ones, or 0 for all");
  std::unordered_map<std::string, int64_t> counts;
  for (const auto& text : texts)
    for (const std::string& sentence : text)
      for (const std::string_view word : split_words(sentence)) ++counts[std::string(word)];
  std::vector<std::pair<std::string, int64_t>> sorted;
  for (auto& [word, count] : counts)
    if (count >= options.min_count && !is_special(word)) sorted.emplace_back(word, count);
  // The most frequent first; equally frequent ones by their bytes, so that the file is always the same.
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  const size_t room = options.max_size == 0 ? std::numeric_limits<int32_t>::max() : options.max_size;
  std::vector<std::string> words = specials();
  for (auto& [word, count] : sorted) {
    if (words.size() >= room) break;
    words.push_back(std::move(word));
  }
  require(words.size() > kSpecials, "no words to make a vocabulary of that occur ", options.min_count,
          " times or more");
  return std::make_unique<WordVocabulary>(std::move(words));
}

std::unique_ptr<Tokenizer> parse_words(std::string_view bytes, const std::string& name) {
  std::vector<std::string> words;
  std::unordered_map<std::string_view, size_t> lines;
  for (size_t line = 1; !bytes.empty(); ++line) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view word = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (word.ends_with('\r')) word.remove_suffix(1);
    require(is_utf8(word), name, ", line ", line, ": not UTF-8");
    const std::vector<std::string_view> parts = split_words(word);
    require(parts.size() == 1 && parts[0].size() == word.size(), name, ", line ", line,
            word.empty() ? ": empty" : ": white space in a word", ", wanted one word a line");
    if (line <= kSpecials)
      require(word == kSpellings[line - 1], name, ", line ", line, ": '", word, "', wanted '",
              kSpellings[line - 1], "'; a vocabulary begins with <pad>, <s>, </s>, <unk>");
    const auto [place, fresh] = lines.emplace(word, line);
    require(fresh, name, ", line ", line, ": '", word, "' is in line ", place->second, " already");
    words.emplace_back(word);
  }
  require(words.size() > kSpecials, name, ": ", words.size(),
          " lines, wanted words after <pad>, <s>, </s>, <unk>");
  return std::make_unique<WordVocabulary>(std::move(words));
}

}  // namespace fovea::data
