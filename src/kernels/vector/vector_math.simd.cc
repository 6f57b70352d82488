#include "kernels/vector/vector_math.h"

#include "kernels/vector/vector_math-inl.h"

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;

template <class Function>
HWY_INLINE void over_array(const float* x, float* y, int64_t count, Function function) {
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(function(d, hn::LoadU(d, x + i)), d, y + i);
  if (i == count) return;
  HWY_ALIGN float tail[hn::MaxLanes(d)] = {};
  for (int64_t t = i; t < count; ++t) tail[t - i] = x[t];
  hn::Store(function(d, hn::Load(d, tail)), d, tail);
  for (int64_t t = i; t < count; ++t) y[t] = tail[t - i];
}

#define FOVEA_OVER_ARRAY(name)                                                          \
  void name##_array(const float* x, float* y, int64_t count) {                          \
    over_array(x, y, count, [](auto d, auto v) HWY_ATTR { return vmath::name(d, v); }); \
  }
FOVEA_OVER_ARRAY(exp)
FOVEA_OVER_ARRAY(exp_nonpositive)
FOVEA_OVER_ARRAY(log)
FOVEA_OVER_ARRAY(tanh)
FOVEA_OVER_ARRAY(sigmoid)
FOVEA_OVER_ARRAY(erf)
#undef FOVEA_OVER_ARRAY

}  // namespace

namespace FOVEA_LEVEL {
extern const VectorMathKernels vector_math_table;
const VectorMathKernels vector_math_table{
    .exp = exp_array,
    .exp_nonpositive = exp_nonpositive_array,
    .log = log_array,
    .tanh = tanh_array,
    .sigmoid = sigmoid_array,
    .erf = erf_array,
};
}  // namespace FOVEA_LEVEL
}  // namespace fovea::kernels
