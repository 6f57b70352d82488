// The text form of a spec. The grammar, which docs/attention.md shows with examples:
//
//   spec      = scoring [ "/" pattern [ "/" selection ] ]
//   scoring   = score { "+" term }
//   pattern   = all { "|" all }
//   all       = unit { "&" unit }
//   unit      = "(" pattern ")" | "heads" "(" pattern { ";" pattern } ")" | call
//   score, term, selection = call
//   call      = name [ "(" arguments ")" ]
//
// Spaces may stand between any two words.
#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "attention/spec.h"
#include "base/error.h"

namespace fovea {
namespace {

using namespace patterns;

constexpr size_t kLongestText = size_t{1} << 24;
constexpr int kDeepestBrackets = 32;

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j - 1] + 1, above + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Parser {
 public:
  Parser(std::string_view text, const PredicateTable& predicates) : text_(text), predicates_(predicates) {
    require(text.size() <= kLongestText, "attention: got a text of ", text.size(),
            " characters, wanted at most ", kLongestText);
  }

  AttentionSpec spec() {
    AttentionSpec spec;
    spec.score = score();
    while (take('+')) term(spec.terms);
    if (take('/')) {
      spec.pattern = pattern();
      if (take('/')) spec.selection = selection();
    }
    end("'+', '/' or the end");
    checked([&] { check(spec); }, 0);
    return spec;
  }

  Pattern whole_pattern() {
    Pattern result = pattern();
    end("'|', '&' or the end");
    return result;
  }

 private:
  // Errors stand where the offending word begins; columns count from 1.
  [[noreturn]] void unexpected(std::string_view wanted) {
    skip_spaces();
    if (at_ == text_.size()) fail_at(at_, "the text ends", message("wanted ", wanted));
    fail_at(at_, message("unexpected '", printable(text_[at_]), "'"), message("wanted ", wanted));
  }
  [[noreturn]] static void fail_at(size_t place, std::string_view got, std::string_view hint) {
    fail("attention: ", got, " at column ", place + 1, ": ", hint);
  }
  static std::string printable(char c) {
    if (c >= ' ' && c <= '~') return {c};
    static constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    return {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }

  // Runs a factory that checks its numbers, and adds the place to what it says.
  template <class F>
  auto checked(F make, size_t place) const -> decltype(make()) {
    try {
      return make();
    } catch (const Error& error) {
      fail("attention: at column ", place + 1, ": ", error.what());
    }
  }

  void skip_spaces() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void want(char c, std::string_view wanted) {
    if (!take(c)) unexpected(wanted);
  }
  void end(std::string_view wanted) {
    skip_spaces();
    if (at_ != text_.size()) unexpected(wanted);
  }

  std::string_view word(std::string_view wanted) {
    if (!is_letter(peek())) unexpected(wanted);
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    word_begin_ = begin;
    return text_.substr(begin, at_ - begin);
  }

  // The place of the word among the names; an unknown word is an error that names the nearest.
  size_t one_of(std::string_view what, std::span<const std::string_view> names) {
    const std::string_view got = word(what);
    const auto found = std::find(names.begin(), names.end(), got);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
    unknown(what, got, names);
  }
  [[noreturn]] void unknown(std::string_view what, std::string_view got,
                            std::span<const std::string_view> names) {
    const std::string shown(got.substr(0, 40));
    std::string_view nearest;
    size_t distance = 4;  // further away is another word
    for (const std::string_view name : names)
      if (const size_t d = edit_distance(shown, name); d < std::min(distance, name.size())) {
        distance = d;
        nearest = name;
      }
    std::string hint;
    if (!nearest.empty()) {
      hint = message("did you mean \"", nearest, "\"?");
    } else {
      hint = "wanted one of";
      for (const std::string_view name : names) hint.append(" ").append(name);
    }
    fail_at(word_begin_, message("unknown ", what, " \"", shown, "\""), hint);
  }

  int64_t integer(std::string_view wanted = "a whole number") {
    const char first = peek();
    if (!is_digit(first) && first != '-') unexpected(wanted);
    int64_t value = 0;
    const auto [rest, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range)
      fail_at(at_, "a number too large", "wanted less than 2147483648");
    if (error != std::errc()) unexpected(wanted);
    at_ = static_cast<size_t>(rest - text_.data());
    return value;
  }
  float number() {
    peek();
    float value = 0;
    const auto [rest, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range)
      fail_at(at_, "a number out of range", "wanted one that fits a float");
    if (error != std::errc()) unexpected("a number");
    at_ = static_cast<size_t>(rest - text_.data());
    return value;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> values{integer()};
    while (take(',')) values.push_back(integer());
    return values;
  }
  // [ "," "top_left" | "bottom_right" ]
  Align align_after_comma() { return take(',') ? align() : Align::bottom_right; }
  Align align() {
    static constexpr std::string_view kNames[] = {"bottom_right", "top_left"};
    return one_of("alignment", kNames) == 1 ? Align::top_left : Align::bottom_right;
  }

  // "(" body ")"
  template <class F>
  auto bracketed(F body) {
    want('(', "'('");
    auto result = body();
    want(')', "',' or ')'");
    return result;
  }

  Score score() {
    static constexpr std::string_view kNames[] = {"dot",      "scaled_dot", "cosine",
                                                  "bilinear", "additive",   "concat"};
    const size_t kind = one_of("score", kNames);
    const size_t place = word_begin_;
    const Score score{static_cast<ScoreKind>(kind)};
    const bool scales = score.kind == ScoreKind::scaled_dot || score.kind == ScoreKind::cosine;
    if (!scales || peek() != '(') return score.kind == ScoreKind::cosine ? cosine() : score;
    const float divisor = argument();
    return checked([&] { return score.kind == ScoreKind::cosine ? cosine(divisor) : scaled_dot(divisor); },
                   place);
  }
  float argument() {
    return bracketed([&] { return number(); });
  }

  void term(Terms& terms) {
    static constexpr std::string_view kNames[] = {"soft_cap", "alibi",    "bias",
                                                  "relative", "gaussian", "sink"};
    const size_t kind = one_of("term", kNames);
    if (said_[kind])
      fail_at(word_begin_, message("\"", kNames[kind], "\" a second time"), "wanted each term once");
    said_[kind] = true;
    const size_t place = word_begin_;
    switch (kind) {
      case 0:
        terms.soft_cap = argument();
        if (!(terms.soft_cap > 0))
          fail_at(place, message("soft_cap(", terms.soft_cap, ")"), "wanted more than 0");
        break;
      case 1:
        terms.alibi = true;
        break;
      case 2:
        terms.bias = true;
        break;
      case 3:
        terms.relative = relative();
        break;
      case 4:
        terms.gaussian = argument();
        if (!(terms.gaussian > 0))
          fail_at(place, message("gaussian(", terms.gaussian, ")"), "wanted more than 0");
        break;
      default:
        terms.sink = true;
    }
  }
  RelativeBuckets relative() {
    const size_t place = word_begin_;
    return bracketed([&] {
      RelativeBuckets r;
      r.buckets = integer();
      if (r.buckets == 0) fail_at(place, "relative with 0 buckets", "wanted at least 2");
      while (take(',')) {
        if (is_letter(peek())) {
          static constexpr std::string_view kSides[] = {"two_sided", "one_sided"};
          r.two_sided = one_of("side", kSides) == 0;
          break;
        }
        r.max_distance = integer();
      }
      return r;
    });
  }

  Selection selection() {
    static constexpr std::string_view kNames[] = {"soft",  "hard",      "gumbel", "argmax",
                                                  "top_k", "sparsemax", "sigmoid"};
    const auto kind = static_cast<SelectionKind>(one_of("selection", kNames));
    const size_t place = word_begin_;
    switch (kind) {
      case SelectionKind::soft: {
        if (peek() != '(') return soft();
        const float dropout = argument();
        return checked([&] { return soft({.dropout = dropout}); }, place);
      }
      case SelectionKind::gumbel: {
        if (peek() != '(') return gumbel();
        const GumbelOptions options = gumbel_options();
        return checked([&] { return gumbel(options); }, place);
      }
      case SelectionKind::top_k: {
        const int64_t k = bracketed([&] { return integer(); });
        return checked([&] { return top_k(k); }, place);
      }
      default:
        return {.kind = kind};
    }
  }
  GumbelOptions gumbel_options() {
    return bracketed([&] {
      GumbelOptions options;
      options.tau = number();
      if (take(',')) {
        static constexpr std::string_view kWays[] = {"straight_through", "relaxed"};
        options.straight_through = one_of("way back", kWays) == 0;
      }
      return options;
    });
  }

  Pattern pattern() {
    AnyOf any;
    any.parts.push_back(all());
    while (take('|')) any.parts.push_back(all());
    return any.parts.size() == 1 ? std::move(any.parts[0]) : Pattern(std::move(any));
  }
  Pattern all() {
    AllOf both;
    both.parts.push_back(unit());
    while (take('&')) both.parts.push_back(unit());
    return both.parts.size() == 1 ? std::move(both.parts[0]) : Pattern(std::move(both));
  }
  Pattern unit() {
    if (peek() != '(') return call();
    deepen();
    Pattern inner = bracketed([&] { return pattern(); });
    --depth_;
    return inner;
  }
  void deepen() {
    if (++depth_ > kDeepestBrackets)
      fail_at(at_, message("more than ", kDeepestBrackets, " open brackets"),
              "wanted fewer: | and & need few");
  }

  Pattern call() {
    static constexpr std::string_view kNames[] = {
        "full",          "causal",    "window",        "strided", "fixed",
        "block_window",  "global",    "random_blocks", "layout",  "lengths",
        "query_lengths", "documents", "predicate",     "heads",   "within"};
    const size_t kind = one_of("pattern", kNames);
    const size_t place = word_begin_;
    if (kind == 0) return full();
    if (kind == 1) return causal(peek() == '(' ? bracketed([&] { return align(); }) : Align::bottom_right);
    if (kind == 12) return named_predicate();
    Node node = bracketed([&] { return arguments(kind); });
    return checked([&] { return Pattern(std::move(node)); }, place);
  }

  Node arguments(size_t kind) {
    switch (kind) {
      case 2:
        return window_arguments();
      case 3: {
        Strided s{integer()};
        s.align = align_after_comma();
        return s;
      }
      case 4: {
        const auto [stride, summary] = two();
        return Fixed{stride, summary};
      }
      case 5: {
        const auto [block, left] = two();
        want(',', "','");
        return BlockWindow{block, left, integer()};
      }
      case 6:
        return tokens();
      case 7: {
        const auto [block, count] = two();
        return RandomBlocks{block, count, take(',') ? integer() : 0};
      }
      case 8:
        return layout_arguments();
      case 9:
        return Lengths{integers()};
      case 10:
        return QueryLengths{integers()};
      case 11: {
        Documents d{integers(), {}};
        d.keys = take(';') ? integers() : d.queries;
        return d;
      }
      case 14: {
        Within w{{integers(), {}}, {}};
        w.documents.keys = w.documents.queries;
        want(';', "',' or ';'");
        deepen();
        w.parts.push_back(pattern());
        --depth_;
        return w;
      }
      default: {
        PerHead per;
        deepen();
        do per.parts.push_back(pattern());
        while (take(';'));
        --depth_;
        return per;
      }
    }
  }
  std::pair<int64_t, int64_t> two() {
    const int64_t first = integer();
    want(',', "','");
    return {first, integer()};
  }
  Node window_arguments() {
    const auto [left, right] = two();
    Window w{left, right};
    while (take(',')) {
      if (is_letter(peek())) {
        w.align = align();
        break;
      }
      w.dilation = integer();
    }
    return w;
  }
  Node tokens() {
    Global global;
    do {
      const int64_t first = integer("a token");
      int64_t last = first;
      if (take('.')) {
        want('.', "'..' between the ends of a range");
        last = integer();
      }
      global.tokens.push_back({first, last});
    } while (take(','));
    return global;
  }
  Node layout_arguments() {
    Layout layout{integer(), {}};
    want(';', "';' between the block and the rows");
    do {
      skip_spaces();
      const size_t begin = at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      if (at_ == begin) unexpected("a row of 0 and 1");
      layout.rows.emplace_back(text_.substr(begin, at_ - begin));
    } while (take(','));
    return layout;
  }
  Pattern named_predicate() {
    const std::string_view name = bracketed([&] { return word("the name of a predicate"); });
    const auto found = predicates_.find(name);
    if (found != predicates_.end()) return predicate(found->first, found->second);
    if (predicates_.empty())
      fail_at(word_begin_, message("unknown predicate \"", name.substr(0, 40), "\""),
              "a predicate is a function: give it to parse_spec by its name");
    std::vector<std::string_view> names;
    for (const auto& [known, sees] : predicates_) names.push_back(known);
    unknown("predicate", name, names);
  }

  std::string_view text_;
  const PredicateTable& predicates_;
  size_t at_ = 0, word_begin_ = 0;
  int depth_ = 0;
  bool said_[6] = {};
};

}  // namespace

AttentionSpec parse_spec(std::string_view text, const PredicateTable& predicates) {
  return Parser(text, predicates).spec();
}

Pattern parse_pattern(std::string_view text, const PredicateTable& predicates) {
  return Parser(text, predicates).whole_pattern();
}

}  // namespace fovea
