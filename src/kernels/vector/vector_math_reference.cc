#include <cmath>

#include "kernels/vector/vector_math.h"

namespace fovea::kernels::scalar {
namespace {

template <double (*f)(double)>
void over_array(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(f(x[i]));
}

double exp_of(double x) {
  return std::exp(x);
}
double log_of(double x) {
  return std::log(x);
}
double tanh_of(double x) {
  return std::tanh(x);
}
double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}
double erf_of(double x) {
  return std::erf(x);
}

}  // namespace

extern const VectorMathKernels vector_math_table;
const VectorMathKernels vector_math_table{
    .exp = over_array<exp_of>,
    .exp_nonpositive = over_array<exp_of>,
    .log = over_array<log_of>,
    .tanh = over_array<tanh_of>,
    .sigmoid = over_array<sigmoid_of>,
    .erf = over_array<erf_of>,
};

}  // namespace fovea::kernels::scalar
