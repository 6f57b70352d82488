// chrF and chrF++ (Popović 2015, 2017) of a corpus, number for number what sacreBLEU computes.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace fovea::infer {

struct ChrfOptions {
  int char_order = 6;  // 1 ... 6
  int word_order = 0;  // 2 is chrF++; 0 ... 4
  int beta = 2;        // recall counts beta times as much as precision
  bool lowercase = false;
};

struct ChrfScore {
  double score = 0;       // 0 ... 100
  std::string name;       // "chrF2", "chrF2++"
  std::string signature;  // "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"
};

// hypotheses: one a sentence. references: one list per set of references, each as long as hypotheses; a
// sentence is held against the one it meets best. White space does not count. Throws Error for unequal
// lengths, no sentence, no reference, orders out of range.
ChrfScore chrf(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
               const ChrfOptions& options = {});

}  // namespace fovea::infer
