// Any bytes as hypothesis and reference: scores stay within 0 and 100, and a text scores best against itself.
#include <cmath>
#include <cstdlib>

#include "data/text.h"
#include "infer/bleu.h"
#include "infer/chrf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const size_t middle = text.size() / 2;
  const std::vector<std::string> hypotheses{text.substr(0, middle)};
  const std::vector<std::vector<std::string>> others{{text.substr(middle)}}, same{hypotheses};
  const auto check = [](double other, double self) {
    constexpr double kRounding = 1e-9;
    if (!(other >= 0 && other <= 100 + kRounding && other <= self + kRounding)) std::abort();
  };
  for (const char* tokenize : {"13a", "zh", "char", "none"})
    for (const bool lowercase : {false, true}) {
      const fovea::infer::BleuOptions options{.tokenize = tokenize, .lowercase = lowercase};
      const auto self = fovea::infer::bleu(hypotheses, same, options);
      if (self.matched != self.total) std::abort();
      check(fovea::infer::bleu(hypotheses, others, options).score, 100);
    }
  for (const int word_order : {0, 2})
    check(fovea::infer::chrf(hypotheses, others, {.word_order = word_order}).score, 100);
  return 0;
}
