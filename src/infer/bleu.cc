// The tokenizations of sacreBLEU, the counts of matching n-grams, and BLEU from them.
#include "infer/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "data/captions.h"
#include "data/text.h"
#include "infer/ngrams.h"

namespace fovea::infer {
namespace {

constexpr size_t kOrders = 4;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// ASCII punctuation but for the apostrophe, comma, hyphen and full stop.
bool always_apart(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// The four rules of mteval-v13a, each a pass over the whole line: a later rule sees the spaces of the earlier
// ones, and a character that one match has taken cannot begin the next. Bytes will do, since the rules ask
// only whether a neighbour is a digit.
std::string separate_punctuation(std::string_view line) {
  const auto stop = [](char c) { return c == '.' || c == ','; };
  std::string text, next;
  for (const char c : line) always_apart(c) ? text.append({' ', c, ' '}) : text.append({c});

  const auto pass = [&](auto&& matches, auto&& rewrite) {
    next.clear();
    for (size_t i = 0; i < text.size(); ++i) {
      if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
        rewrite(text[i], text[i + 1]);
        ++i;
      } else {
        next += text[i];
      }
    }
    std::swap(text, next);
  };
  const auto second_apart = [&](char a, char b) { next.append({a, ' ', b, ' '}); };
  const auto first_apart = [&](char a, char b) { next.append({' ', a, ' ', b}); };
  pass([&](char a, char b) { return !is_digit(a) && stop(b); }, second_apart);
  pass([&](char a, char b) { return stop(a) && !is_digit(b); }, first_apart);
  pass([&](char a, char b) { return is_digit(a) && b == '-'; }, second_apart);
  return text;
}

std::string tokenize_13a(std::string_view line) {
  std::string text;
  text.append(1, ' ').append(line).append(1, ' ');
  replace_all(text, "<skipped>", "");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  return separate_punctuation(text);
}

// What sacreBLEU sets apart as Chinese. Two of its ranges were meant as U+20000 ... U+2A6D6 and
// U+2F800 ... U+2FA1D, but Python reads an escape of four digits and one more character: they act as given
// here.
bool is_chinese(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  static constexpr Range kRanges[] = {{0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A},
                                      {0xFA70, 0xFAD9}, {0x2001, 0x2A6D}, {0x2F81, 0x2FA1}, {0xFF00, 0xFFEF},
                                      {0x2E80, 0x2EFF}, {0x3000, 0x303F}, {0x31C0, 0x31EF}, {0x2F00, 0x2FDF},
                                      {0x2FF0, 0x2FFF}, {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0xFE10, 0xFE1F},
                                      {0xFE30, 0xFE4F}, {0x3200, 0x33FF}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const Range& range) { return c >= range.first && c <= range.last; });
}

std::string tokenize_zh(std::string_view line) {
  std::string text;
  for (std::string_view rest = data::strip(line); !rest.empty();) {
    const char* const begin = rest.data();
    const bool chinese = is_chinese(data::next_character(rest));
    const std::string_view character(begin, rest.data() - begin);
    if (chinese) text += ' ';
    text += character;
    if (chinese) text += ' ';
  }
  return separate_punctuation(text);
}

std::string tokenize_char(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    const char* const begin = line.data();
    data::next_character(line);
    text.append(begin, line.data()).append(1, ' ');
  }
  return text;
}

using Tokenize = std::string (*)(std::string_view);

Tokenize find_tokenizer(const std::string& name) {
  if (name == "13a") return tokenize_13a;
  if (name == "zh") return tokenize_zh;
  if (name == "char") return tokenize_char;
  if (name == "caption") return data::caption_words;
  if (name == "none") return [](std::string_view line) { return std::string(line); };
  fail("no BLEU tokenizer '", name, "', wanted 13a, zh, char, caption or none");
}

std::string tokenized(std::string_view sentence, Tokenize tokenize, bool lowercase) {
  if (!lowercase) return tokenize(data::strip_end(sentence));
  const std::string lower = data::lowercase(sentence);
  return tokenize(data::strip_end(lower));
}

using Counts = std::array<std::vector<CountedNgram>, kOrders>;

Counts count_orders(const std::vector<uint32_t>& words) {
  Counts counts;
  for (size_t n = 0; n < kOrders; ++n) counts[n] = count_ngrams(words, n + 1, 32);
  return counts;
}

// An n-gram may match as often as the reference that has it most often.
void merge_maximum(Counts& into, const Counts& more) {
  for (size_t n = 0; n < kOrders; ++n) {
    std::vector<CountedNgram> merged;
    meet_ngrams(into[n], more[n], [&](const CountedNgram& a, const CountedNgram& b) {
      merged.push_back({a.ngram, std::max(a.count, b.count)});
    });
    into[n] = std::move(merged);
  }
}

// Of the references the one nearest in length; of two as near the shorter.
int64_t nearest_length(int64_t length, const std::vector<int64_t>& references) {
  return *std::min_element(references.begin(), references.end(), [length](int64_t a, int64_t b) {
    const int64_t to_a = std::abs(a - length), to_b = std::abs(b - length);
    return to_a != to_b ? to_a < to_b : a < b;
  });
}

void finish(BleuScore& result) {
  const double hypothesis = static_cast<double>(result.hypothesis_length),
               reference = static_cast<double>(result.reference_length);
  if (hypothesis < reference)
    result.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  if (std::all_of(result.matched.begin(), result.matched.end(), [](int64_t count) { return count == 0; }))
    return;
  double smooth = 1;
  for (size_t n = 0; n < kOrders && result.total[n] > 0; ++n) {
    const double total = static_cast<double>(result.total[n]);
    if (result.matched[n] == 0) smooth *= 2;
    result.precisions[n] = result.matched[n] == 0 ? 100 / (smooth * total)
                                                  : 100. * static_cast<double>(result.matched[n]) / total;
  }
  double sum = 0;
  for (const double precision : result.precisions) sum += precision > 0 ? std::log(precision) : -9999999999.;
  result.score = result.brevity_penalty * std::exp(sum / kOrders);
}

void require_alike(std::span<const std::string> hypotheses,
                   std::span<const std::vector<std::string>> references) {
  require(!hypotheses.empty(), "no sentences to score");
  require(!references.empty(), "no references to score against");
  for (const auto& set : references)
    require(set.size() == hypotheses.size(), hypotheses.size(), " hypotheses but ", set.size(),
            " references, wanted as many");
}

}  // namespace

std::vector<std::string> bleu_tokens(std::string_view sentence, const BleuOptions& options) {
  const std::string text = tokenized(sentence, find_tokenizer(options.tokenize), options.lowercase);
  const std::vector<std::string_view> words = data::split_words(text);
  return {words.begin(), words.end()};
}

BleuScore bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
               const BleuOptions& options) {
  const Tokenize tokenize = find_tokenizer(options.tokenize);
  require_alike(hypotheses, references);

  BleuScore result;
  WordNumbers words;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const auto numbers = [&](const std::string& sentence) {
      const std::string text = tokenized(sentence, tokenize, options.lowercase);
      return words.of(data::split_words(text));
    };
    Counts wanted;
    std::vector<int64_t> lengths;
    for (const auto& set : references) {
      const std::vector<uint32_t> reference = numbers(set[i]);
      lengths.push_back(static_cast<int64_t>(reference.size()));
      merge_maximum(wanted, count_orders(reference));
    }
    const std::vector<uint32_t> hypothesis = numbers(hypotheses[i]);
    const Counts got = count_orders(hypothesis);
    for (size_t n = 0; n < kOrders; ++n)
      meet_ngrams(got[n], wanted[n], [&](const CountedNgram& a, const CountedNgram& b) {
        result.total[n] += a.count;
        result.matched[n] += std::min(a.count, b.count);
      });
    const auto length = static_cast<int64_t>(hypothesis.size());
    result.hypothesis_length += length;
    result.reference_length += nearest_length(length, lengths);
  }
  finish(result);
  result.signature = message("nrefs:", references.size(), "|case:", options.lowercase ? "lc" : "mixed",
                             "|eff:no|tok:", options.tokenize, "|smooth:exp|version:", kSacreBleuVersion);
  return result;
}

std::vector<BleuOfLength> bleu_by_length(std::span<const std::string> hypotheses,
                                         std::span<const std::vector<std::string>> references, int64_t width,
                                         const BleuOptions& options) {
  require(width >= 1, "by length: got steps of ", width, " words, wanted at least 1");
  require_alike(hypotheses, references);
  std::map<int64_t, std::vector<size_t>> places;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const auto words = static_cast<int64_t>(bleu_tokens(references[0][i], options).size());
    places[std::max<int64_t>(0, words - 1) / width].push_back(i);
  }
  std::vector<BleuOfLength> result;
  for (const auto& place : places) {
    const int64_t step = place.first;
    const std::vector<size_t>& chosen = place.second;
    const auto choose = [&](std::span<const std::string> all) {
      std::vector<std::string> some;
      for (const size_t i : chosen) some.push_back(all[i]);
      return some;
    };
    std::vector<std::vector<std::string>> wanted;
    for (const auto& set : references) wanted.push_back(choose(set));
    result.push_back({step * width + 1, (step + 1) * width, static_cast<int64_t>(chosen.size()),
                      bleu(choose(hypotheses), wanted, options)});
  }
  return result;
}

std::string BleuScore::details() const {
  const double ratio = reference_length == 0
                           ? 0
                           : static_cast<double>(hypothesis_length) / static_cast<double>(reference_length);
  char text[256];
  std::snprintf(text, sizeof text,
                "%.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)", precisions[0],
                precisions[1], precisions[2], precisions[3], brevity_penalty, ratio,
                static_cast<long long>(hypothesis_length), static_cast<long long>(reference_length));
  return text;
}

}  // namespace fovea::infer
