// The ops that `fovea bench ops` measures: each with the work it cannot avoid, so that a time becomes a
// fraction.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fovea::bench {

struct OpCase {
  std::string name;   // "linear", as --filter and bench/ know it
  std::string shape;  // for people
  double flops = 0;   // multiply-adds counted twice, forward and backward
  double bytes = 0;   // read and written at least, forward and backward
  // Makes inputs and parameters, and returns one step: forward, backward, gradients dropped before.
  std::function<std::function<void()>()> make;
};

const std::vector<OpCase>& op_cases();

}  // namespace fovea::bench
