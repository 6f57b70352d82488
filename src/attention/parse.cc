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
// Spaces are allowed between any two words. Names and arguments are those of spec_records.h and
// pattern_records.h.
#include <array>
#include <utility>

#include "attention/pattern_records.h"
#include "attention/spec.h"
#include "attention/spec_records.h"

namespace fovea {
namespace {

using namespace patterns;
using namespace specs;

class Parser {
 public:
  Parser(std::string_view text, const PredicateTable& predicates) : text_(text), predicates_(predicates) {}

  AttentionSpec spec() {
    AttentionSpec spec;
    spec.score = score();
    std::array<bool, std::size(kTerms)> said{};
    while (text_.take('+')) term(spec.terms, said);
    if (text_.take('/')) {
      spec.pattern = pattern();
      if (text_.take('/')) spec.selection = selection();
    }
    text_.end("'+', '/' or the end");
    text_.checked([&] { check(spec); }, 0);
    return spec;
  }

  Selection whole_selection() {
    const Selection result = selection();
    text_.end("the end");
    return result;
  }

  Pattern whole_pattern() {
    Pattern result = pattern();
    text_.end("'|', '&' or the end");
    return result;
  }

 private:
  // The record whose name comes next.
  template <class Record, size_t N>
  const Record& named(std::string_view what, const Record (&records)[N]) {
    return records[text_.one_of(what, names_of(records))];
  }
  // What takes no arguments is not followed by any.
  void refuse_arguments(std::string_view name, std::string_view signature) {
    if (text_.peek() == '(') text_.unexpected(message("no arguments: ", name, " is written ", signature));
  }

  Score score() {
    const ScoreRecord& record = named("score", kScores);
    const size_t place = text_.word_begin();
    Score score{record.kind};
    if (record.kind == ScoreKind::cosine) score = cosine();
    if (!record.has_divisor) refuse_arguments(record.name, record.signature);
    if (text_.peek() != '(') return score;
    score.number = argument(text_, record.signature);
    text_.checked(
        [&] {
          require(positive(score.number), record.name, ": got the divisor ", score.number,
                  ", wanted a number above 0");
        },
        place);
    return score;
  }

  void term(Terms& terms, std::array<bool, std::size(kTerms)>& said) {
    const TermRecord& record = named("term", kTerms);
    bool& before = said[static_cast<size_t>(&record - kTerms)];
    if (before)
      SpecText::fail_at(text_.word_begin(), message("\"", record.name, "\" a second time"),
                        "wanted each term once");
    before = true;
    record.parse(text_, terms);
    refuse_arguments(record.name, record.signature);
  }

  Selection selection() {
    const SelectionRecord& record = named("selection", kSelections);
    const size_t place = text_.word_begin();
    // Errors of the text say where they are; those of the numbers do not.
    const Selection selection = text_.located([&] { return record.parse(text_); }, place);
    refuse_arguments(record.name, record.signature);
    return selection;
  }

  Pattern pattern() {
    AnyOf any;
    any.parts.push_back(all());
    while (text_.take('|')) any.parts.push_back(all());
    return any.parts.size() == 1 ? std::move(any.parts[0]) : Pattern(std::move(any));
  }
  Pattern all() {
    AllOf both;
    both.parts.push_back(unit());
    while (text_.take('&')) both.parts.push_back(unit());
    return both.parts.size() == 1 ? std::move(both.parts[0]) : Pattern(std::move(both));
  }
  Pattern unit() {
    if (text_.peek() != '(') return call();
    text_.open();
    Pattern inner = text_.bracketed("(pattern)", [&] { return pattern(); });
    text_.close();
    return inner;
  }

  // The words that begin a pattern, and how each goes on. | and & have no word.
  struct Word {
    std::string_view name;
    Pattern (Parser::*read)();
  };
  template <class Member>
  static constexpr Word word_of() {
    if constexpr (std::is_same_v<Member, Within>)
      return {"within", &Parser::read_within};
    else if constexpr (std::is_same_v<Member, PerHead>)
      return {"heads", &Parser::read_heads};
    else if constexpr (std::is_same_v<Member, Predicate>)
      return {Record<Member>::name, &Parser::read_predicate};
    else if constexpr (std::is_same_v<Member, AnyOf> || std::is_same_v<Member, AllOf>)
      return {"", nullptr};
    else
      return {Record<Member>::name, &Parser::read_member<Member>};
  }
  template <size_t... I>
  static std::vector<Word> words(std::index_sequence<I...>) {
    std::vector<Word> all{word_of<std::variant_alternative_t<I, Node>>()...};
    std::erase_if(all, [](const Word& word) { return word.name.empty(); });
    return all;
  }

  Pattern call() {
    static const std::vector<Word> kWords = words(std::make_index_sequence<std::variant_size_v<Node>>());
    static const std::vector<std::string_view> kNames = [] {
      std::vector<std::string_view> names;
      for (const Word& word : kWords) names.push_back(word.name);
      return names;
    }();
    return (this->*kWords[text_.one_of("pattern", kNames)].read)();
  }

  template <class Member>
  Pattern read_member() {
    const size_t place = text_.word_begin();
    Node node = Record<Member>::parse(text_);
    refuse_arguments(Record<Member>::name, Record<Member>::signature);
    return text_.checked([&] { return Pattern(std::move(node)); }, place);
  }
  Pattern read_within() {
    const size_t place = text_.word_begin();
    Within w = text_.bracketed("within(n,...; pattern; ...)", [&] {
      Within within{{text_.integers(), {}}, {}};
      within.documents.keys = within.documents.queries;
      text_.want(';', "',' or ';': within(n,...; pattern; ...)");
      text_.open();
      do within.parts.push_back(pattern());
      while (text_.take(';'));
      text_.close();
      return within;
    });
    return text_.checked([&] { return Pattern(std::move(w)); }, place);
  }
  Pattern read_heads() {
    const size_t place = text_.word_begin();
    PerHead per = text_.bracketed("heads(pattern; pattern; ...)", [&] {
      PerHead heads;
      text_.open();
      do heads.parts.push_back(pattern());
      while (text_.take(';'));
      text_.close();
      return heads;
    });
    return text_.checked([&] { return Pattern(std::move(per)); }, place);
  }
  Pattern read_predicate() {
    const std::string_view name =
        text_.bracketed("predicate(name)", [&] { return text_.word("the name of a predicate"); });
    const auto found = predicates_.find(name);
    if (found != predicates_.end()) return predicate(found->first, found->second);
    if (predicates_.empty())
      SpecText::fail_at(text_.word_begin(), message("unknown predicate \"", name.substr(0, 40), "\""),
                        "a predicate is a function: give it to parse_spec by its name");
    std::vector<std::string_view> names;
    for (const auto& [known, sees] : predicates_) names.push_back(known);
    text_.unknown("predicate", name, names);
  }

  SpecText text_;
  const PredicateTable& predicates_;
};

}  // namespace

AttentionSpec parse_spec(std::string_view text, const PredicateTable& predicates) {
  return Parser(text, predicates).spec();
}

Selection parse_selection(std::string_view text) {
  const PredicateTable none;
  return Parser(text, none).whole_selection();
}

Pattern parse_pattern(std::string_view text, const PredicateTable& predicates) {
  return Parser(text, predicates).whole_pattern();
}

}  // namespace fovea
