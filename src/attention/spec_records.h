// What each score, term and selection is, one record each: its name, the arguments it expects, how its text is
// read and printed, and which numbers it takes. pattern_records.h has the same of patterns.
#pragma once

#include <charconv>
#include <cmath>
#include <ostream>
#include <span>
#include <string_view>

#include "attention/spec.h"
#include "attention/spec_text.h"

namespace fovea::specs {

// The shortest text that reads back as the same float.
inline std::string shortest(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

inline bool positive(float value) {
  return value > 0 && std::isfinite(value);
}

// One number in brackets.
inline float argument(SpecText& text, std::string_view signature) {
  return text.bracketed(signature, [&] { return text.number(); });
}

struct ScoreRecord {
  ScoreKind kind;
  std::string_view name, signature;
  bool has_divisor;  // takes an optional number, by which the score is divided
};
inline constexpr ScoreRecord kScores[] = {
    {ScoreKind::dot, "dot", "dot", false},
    {ScoreKind::scaled_dot, "scaled_dot", "scaled_dot or scaled_dot(gamma)", true},
    {ScoreKind::cosine, "cosine", "cosine or cosine(tau)", true},
    {ScoreKind::bilinear, "bilinear", "bilinear", false},
    {ScoreKind::additive, "additive", "additive", false},
    {ScoreKind::concat, "concat", "concat", false},
    {ScoreKind::location, "location", "location", false},
};

struct TermRecord {
  std::string_view name, signature;
  bool (*present)(const Terms&);
  void (*parse)(SpecText&, Terms&);
  void (*print)(std::ostream&, const Terms&);  // name and arguments
  void (*check)(const Terms&);                 // throws Error when a number makes no sense
};
inline void no_numbers(const Terms&) {}

inline RelativeBuckets parse_relative(SpecText& text, std::string_view signature) {
  const size_t place = text.word_begin();
  return text.bracketed(signature, [&] {
    RelativeBuckets r;
    r.buckets = text.integer();
    if (r.buckets == 0) SpecText::fail_at(place, "relative with 0 buckets", "wanted at least 2");
    bool more = text.take(',');
    if (more && !text.at_letter()) {
      r.max_distance = text.integer();
      more = text.take(',');
    }
    static constexpr std::string_view kSides[] = {"two_sided", "one_sided"};
    if (more && !text.at_letter()) text.unexpected(signature);
    if (more) r.two_sided = text.one_of("side", kSides) == 0;
    return r;
  });
}

inline void check_relative(const Terms& terms) {
  const RelativeBuckets& r = terms.relative;
  if (r.buckets == 0) return;
  const int64_t smallest = r.two_sided ? 4 : 2;
  require(r.buckets >= smallest && r.buckets <= 1 << 16 && r.buckets % smallest == 0, "relative: got ",
          r.buckets, " buckets, wanted a multiple of ", smallest, ", at most ", 1 << 16);
  require(r.max_distance > r.buckets / smallest && r.max_distance < int64_t{1} << 31,
          "relative: got the distance ", r.max_distance, ", wanted more than the ", r.buckets / smallest,
          " distances that have their own bucket");
}

// A term of one number above 0.
inline float parse_positive(SpecText& text, std::string_view name, std::string_view signature) {
  const size_t place = text.word_begin();
  const float number = argument(text, signature);
  if (!positive(number)) SpecText::fail_at(place, message(name, "(", number, ")"), "wanted a number above 0");
  return number;
}
inline void check_positive(float number, const char* what) {
  require(number == 0 || positive(number), what, ": got ", number, ", wanted a number above 0");
}

// In the order in which they act.
inline constexpr TermRecord kTerms[] = {
    {"soft_cap", "soft_cap(c)", [](const Terms& t) { return t.soft_cap != 0; },
     [](SpecText& text, Terms& t) { t.soft_cap = parse_positive(text, "soft_cap", "soft_cap(c)"); },
     [](std::ostream& out, const Terms& t) { out << "soft_cap(" << shortest(t.soft_cap) << ')'; },
     [](const Terms& t) { check_positive(t.soft_cap, "soft_cap"); }},
    {"alibi", "alibi", [](const Terms& t) { return t.alibi; }, [](SpecText&, Terms& t) { t.alibi = true; },
     [](std::ostream& out, const Terms&) { out << "alibi"; }, no_numbers},
    {"bias", "bias", [](const Terms& t) { return t.bias; }, [](SpecText&, Terms& t) { t.bias = true; },
     [](std::ostream& out, const Terms&) { out << "bias"; }, no_numbers},
    {"relative", "relative(buckets[,max_distance][,one_sided|two_sided])",
     [](const Terms& t) { return t.relative.buckets != 0; },
     [](SpecText& text, Terms& t) {
       t.relative = parse_relative(text, "relative(buckets[,max_distance][,one_sided|two_sided])");
     },
     [](std::ostream& out, const Terms& t) {
       out << "relative(" << t.relative.buckets << ',' << t.relative.max_distance
           << (t.relative.two_sided ? "" : ",one_sided") << ')';
     },
     check_relative},
    {"gaussian", "gaussian(sigma)", [](const Terms& t) { return t.gaussian != 0; },
     [](SpecText& text, Terms& t) { t.gaussian = parse_positive(text, "gaussian", "gaussian(sigma)"); },
     [](std::ostream& out, const Terms& t) { out << "gaussian(" << shortest(t.gaussian) << ')'; },
     [](const Terms& t) { check_positive(t.gaussian, "gaussian: sigma"); }},
    {"sink", "sink", [](const Terms& t) { return t.sink; }, [](SpecText&, Terms& t) { t.sink = true; },
     [](std::ostream& out, const Terms&) { out << "sink"; }, no_numbers},
};

struct SelectionRecord {
  SelectionKind kind;
  std::string_view name, signature;
  bool has_sum;  // of a softmax, which a sink may join
  Selection (*parse)(SpecText&);
  void (*print)(std::ostream&, const Selection&);  // the arguments, with their brackets
};
inline void no_arguments(std::ostream&, const Selection&) {}

inline Selection parse_soft(SpecText& text) {
  if (text.peek() != '(') return soft();
  return soft({.dropout = argument(text, "soft or soft(dropout)")});
}
inline Selection parse_gumbel(SpecText& text) {
  if (text.peek() != '(') return gumbel();
  return gumbel(text.bracketed("gumbel or gumbel(tau[,straight_through|relaxed])", [&] {
    GumbelOptions options;
    options.tau = text.number();
    static constexpr std::string_view kWays[] = {"straight_through", "relaxed"};
    if (text.take(',')) options.straight_through = text.one_of("way back", kWays) == 0;
    return options;
  }));
}

inline constexpr SelectionRecord kSelections[] = {
    {SelectionKind::soft, "soft", "soft or soft(dropout)", true, parse_soft,
     [](std::ostream& out, const Selection& s) {
       if (s.dropout != 0) out << '(' << shortest(s.dropout) << ')';
     }},
    {SelectionKind::hard, "hard", "hard", false, [](SpecText&) { return hard(); }, no_arguments},
    {SelectionKind::gumbel, "gumbel", "gumbel or gumbel(tau[,straight_through|relaxed])", false, parse_gumbel,
     [](std::ostream& out, const Selection& s) {
       out << '(' << shortest(s.tau) << (s.straight_through ? ",straight_through)" : ")");
     }},
    {SelectionKind::argmax, "argmax", "argmax", false, [](SpecText&) { return argmax(); }, no_arguments},
    {SelectionKind::top_k, "top_k", "top_k(k)", true,
     [](SpecText& text) { return top_k(text.bracketed("top_k(k)", [&] { return text.integer(); })); },
     [](std::ostream& out, const Selection& s) { out << '(' << s.k << ')'; }},
    {SelectionKind::sparsemax, "sparsemax", "sparsemax", false, [](SpecText&) { return sparsemax(); },
     no_arguments},
    {SelectionKind::sigmoid, "sigmoid", "sigmoid", false, [](SpecText&) { return sigmoid_selection(); },
     no_arguments},
    {SelectionKind::identity, "identity", "identity", false, [](SpecText&) { return identity_selection(); },
     no_arguments},
};

// The record of a kind, found by the compiler: a kind without one does not compile.
template <const auto& records, auto kind>
constexpr const auto& record_in() {
  constexpr size_t place = [] {
    size_t i = 0;
    while (records[i].kind != kind) ++i;  // beyond the end it is no constant
    return i;
  }();
  return records[place];
}
// Without default: the compiler reports a kind that was added to the enum alone.
constexpr const ScoreRecord& record_of(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::dot:
      return record_in<kScores, ScoreKind::dot>();
    case ScoreKind::scaled_dot:
      return record_in<kScores, ScoreKind::scaled_dot>();
    case ScoreKind::cosine:
      return record_in<kScores, ScoreKind::cosine>();
    case ScoreKind::bilinear:
      return record_in<kScores, ScoreKind::bilinear>();
    case ScoreKind::additive:
      return record_in<kScores, ScoreKind::additive>();
    case ScoreKind::concat:
      return record_in<kScores, ScoreKind::concat>();
    case ScoreKind::location:
      return record_in<kScores, ScoreKind::location>();
  }
  FOVEA_ASSERT(!"not a kind");
  return kScores[0];
}
constexpr const SelectionRecord& record_of(SelectionKind kind) {
  switch (kind) {
    case SelectionKind::soft:
      return record_in<kSelections, SelectionKind::soft>();
    case SelectionKind::hard:
      return record_in<kSelections, SelectionKind::hard>();
    case SelectionKind::gumbel:
      return record_in<kSelections, SelectionKind::gumbel>();
    case SelectionKind::argmax:
      return record_in<kSelections, SelectionKind::argmax>();
    case SelectionKind::top_k:
      return record_in<kSelections, SelectionKind::top_k>();
    case SelectionKind::sparsemax:
      return record_in<kSelections, SelectionKind::sparsemax>();
    case SelectionKind::sigmoid:
      return record_in<kSelections, SelectionKind::sigmoid>();
    case SelectionKind::identity:
      return record_in<kSelections, SelectionKind::identity>();
  }
  FOVEA_ASSERT(!"not a kind");
  return kSelections[0];
}

// Names of a table, for messages and for the parser.
template <class Record, size_t N>
std::vector<std::string_view> names_of(const Record (&records)[N]) {
  std::vector<std::string_view> names;
  for (const Record& record : records) names.push_back(record.name);
  return names;
}

}  // namespace fovea::specs
