// exp, log, tanh, sigmoid and erf on Highway vectors of float: for X.simd.cc files, inlined, with internal
// linkage.
//
// Largest errors (tests/kernels/vector_math_test.cc): exp and log 2 ulp, sigmoid 4, tanh and erf 6.
// ulp. NaN gives NaN. `d` is the vector's tag: any ScalableTag, CappedTag or half of one over float.
#pragma once

#include <hwy/highway.h>

namespace fovea::kernels {
namespace {
namespace vmath {

namespace hn = hwy::HWY_NAMESPACE;

// Horner's scheme, coefficients from the constant upwards.
template <class D, class V>
HWY_INLINE V polynomial(D d, V x, float c0, float c1) {
  return hn::MulAdd(x, hn::Set(d, c1), hn::Set(d, c0));
}
template <class D, class V, class... More>
HWY_INLINE V polynomial(D d, V x, float c0, float c1, More... more) {
  return hn::MulAdd(x, polynomial(d, x, c1, more...), hn::Set(d, c0));
}

// The larger, or the smaller, of a bound and x, where NaN in x stays NaN. The instructions of x86 give their second operand
// then; those of ARM that Highway takes give the bound.
template <class V>
HWY_INLINE V at_least(V bound, V x) {
#if HWY_ARCH_X86
  return hn::Max(bound, x);
#else
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
#endif
}
template <class V>
HWY_INLINE V at_most(V bound, V x) {
#if HWY_ARCH_X86
  return hn::Min(bound, x);
#else
  return hn::IfThenElse(hn::Gt(x, bound), bound, x);
#endif
}

// Keeps x within [low, high]; NaN stays NaN.
template <class D, class V>
HWY_INLINE V clamp(D d, V x, float low, float high) {
  return at_most(hn::Set(d, high), at_least(hn::Set(d, low), x));
}

// x = n ln2 + r, |r| <= ln2 / 2: gives exp(r) and, in the low bits of `biased`, n.
template <class D, class V>
HWY_INLINE V exp_reduced(D d, V x, V& biased) {
  const V magic = hn::Set(d, 0x1.8p23f);  // adding it rounds to an integer and leaves that in the mantissa
  biased = hn::MulAdd(x, hn::Set(d, 0x1.715476p+0f), magic);
  const V n = hn::Sub(biased, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1f), x);  // ln2 in two parts: n times the first is exact
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20f), r);
  const V tail = polynomial(d, r, 0.499999934f, 0.166665204f, 0.0416683908f, 0.0083687452f, 0.00138145401f);
  return hn::MulAdd(hn::Mul(r, r), tail, hn::Add(r, hn::Set(d, 1.0f)));
}

// e^x over the whole range: subnormal results are right, -inf gives 0, overflow gives +inf.
template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  V biased;
  const V p = exp_reduced(d, clamp(d, x, -104.0f, 89.0f), biased);
  // Two factors, because 2^n alone may not be a normal number.
  const auto n = hn::Sub(hn::BitCast(di, biased), hn::Set(di, 0x4B400000));
  const auto half = hn::ShiftRight<1>(n), one = hn::Set(di, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, one)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(n, half), one)));
  return hn::Mul(hn::Mul(p, first), second);
}

// e^x for x <= 0, as softmax needs it: fewer steps, and 0 where the result would be subnormal (x < -87.3).
template <class D, class V>
HWY_INLINE V exp_nonpositive(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V lowest = hn::Set(d, -87.3f);
  V biased;
  const V p = exp_reduced(d, at_least(lowest, x), biased);
  const V scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, biased))));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), scaled);
}

// Natural logarithm: 0 gives -inf, negative numbers NaN, +inf itself; subnormals are right.
template <class D, class V>
HWY_INLINE V log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto subnormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V normal = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p23f)), x);
  // The mantissa is taken from [sqrt(1/2), sqrt(2)), so that the result near 1 comes from the polynomial
  // alone.
  const auto bits = hn::BitCast(di, normal);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));
  const V mantissa = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const V e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(subnormal, hn::Set(d, 23.0f)));
  const V f = hn::Sub(mantissa, hn::Set(d, 1.0f)), f2 = hn::Mul(f, f);
  const V tail = polynomial(d, f, 0.333333126f, -0.250000096f, 0.200021187f, -0.166679959f, 0.142195522f,
                            -0.124055882f, 0.118881633f, -0.116756567f, 0.0674664412f);
  V y = hn::Mul(hn::Mul(f, f2), tail);
  y = hn::MulAdd(e, hn::Set(d, 0x1.7f7d1cp-20f), y);
  y = hn::NegMulAdd(hn::Set(d, 0.5f), f2, y);
  y = hn::MulAdd(e, hn::Set(d, 0x1.62e4p-1f), hn::Add(f, y));
  const V infinity = hn::Inf(d);
  y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), y);
  const auto wrong = hn::Or(hn::Lt(x, hn::Zero(d)), hn::IsNaN(x));
  return hn::IfThenElse(wrong, hn::NaN(d), y);
}

// x P(x^2) / Q(x^2): odd, exact at 0, and 1 beyond 9.02 where float can show no difference.
template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  const V c = clamp(d, x, -9.02f, 9.02f), square = hn::Mul(c, c);
  const V p =
      polynomial(d, square, 0.999999979f, 0.133797177f, 0.00349403429f, 2.0583477e-05f, 1.33190666e-08f);
  const V q = polynomial(d, square, 1.0f, 0.467130329f, 0.0258710721f, 0.00032830924f, 7.76201715e-07f);
  return clamp(d, hn::Div(hn::Mul(c, p), q), -1.0f, 1.0f);
}

// 1 / (1 + e^-x)
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

// x P(x^2) / Q(x^2): odd, exact at 0, and 1 beyond 4.
template <class D, class V>
HWY_INLINE V erf(D d, V x) {
  const V c = clamp(d, x, -4.0f, 4.0f), square = hn::Mul(c, c);
  const V p = polynomial(d, square, 1.12837914f, 0.193545862f, 0.0531018548f, 0.00388337974f, 0.000284566977f,
                         1.98677957e-06f);
  const V q =
      polynomial(d, square, 1.0f, 0.50485811f, 0.115350334f, 0.0152073217f, 0.00118558036f, 3.74202028e-05f);
  return clamp(d, hn::Div(hn::Mul(c, p), q), -1.0f, 1.0f);
}

}  // namespace vmath
}  // namespace
}  // namespace fovea::kernels
