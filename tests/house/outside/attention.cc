// A program outside Fovea that needs attention alone: it asks for a gradient, and meets an error.
#include <fovea/attention/attention.h>
#include <fovea/autograd/ops.h>
#include <fovea/base/error.h>
#include <fovea/base/parallel.h>

#include <cstdio>

int main() {
  const fovea::Var x(fovea::Tensor::full({1, 1, 4, 8}, 0.5f), true);
  const fovea::Var y = fovea::attention(x, x, x, {.pattern = fovea::causal()});
  fovea::sum(y).backward();
  if (y.value().data()[0] != 0.5f || !x.grad().defined()) return 1;
  try {
    fovea::set_num_threads(-1);
    return 1;
  } catch (const fovea::Error& error) {
    std::printf("outside: %s\n", error.what());
  }
  return 0;
}
