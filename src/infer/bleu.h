// BLEU (Papineni et al. 2002) of a corpus, number for number what sacreBLEU computes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::infer {

// The version of sacreBLEU whose numbers these are; signatures name it.
inline constexpr const char* kSacreBleuVersion = "2.6.0";

struct BleuOptions {
  // "13a" (WMT's mteval-v13a), "zh" (Chinese characters apart, the rest as 13a), "char", "caption" (lower-case
  // words without punctuation, which sacreBLEU lacks) or "none" (the text is tokenised already).
  std::string tokenize = "13a";
  bool lowercase = false;
};

struct BleuScore {
  double score = 0;  // 0 ... 100
  std::array<double, 4> precisions{};
  std::array<int64_t, 4> matched{}, total{};  // n-grams, n = 1 ... 4
  double brevity_penalty = 1;
  int64_t hypothesis_length = 0, reference_length = 0;  // tokens
  std::string signature;  // "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"

  // "60.1/33.1/20.0/12.5 (BP = 1.000 ratio = 1.002 hyp_len = 512 ref_len = 511)"
  std::string details() const;
};

// hypotheses: one a sentence. references: one list per set of references, each as long as hypotheses. Orders
// without a match are smoothed exponentially, as sacreBLEU does by default. Sentences hold no line breaks.
// Throws Error for unequal lengths, no sentence, no reference, an unknown tokenizer.
BleuScore bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
               const BleuOptions& options = {});

// BLEU of the sentences whose first reference has first ... last words, as BLEU counts words.
struct BleuOfLength {
  int64_t first = 0, last = 0;
  int64_t sentences = 0;
  BleuScore bleu;
};
// Sentences of 1 ... width words, of width + 1 ... 2 width words, and so on; lengths nobody has are left out.
std::vector<BleuOfLength> bleu_by_length(std::span<const std::string> hypotheses,
                                         std::span<const std::vector<std::string>> references, int64_t width,
                                         const BleuOptions& options = {});

// The words BLEU counts: the sentence after one of the tokenizers above.
std::vector<std::string> bleu_tokens(std::string_view sentence, const BleuOptions& options);

}  // namespace fovea::infer
