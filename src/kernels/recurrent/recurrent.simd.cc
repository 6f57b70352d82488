// The time loops and gates of LSTM and GRU on vectors.
//
// Measured on one Zen 3 core (FMA peak 103 GFLOP/s), forward and backward, against PyTorch 2.13 in the same
// minutes and in processor time, with other work on the machine:
//   batch x steps, input -> hidden           here            PyTorch's best
//   GRU   64 x 32, 512 -> 512              263 ms, 0.71 of peak      302 ms
//   LSTM  64 x 32, 512 -> 512              346 ms, 0.72 of peak      383 ms
//   GRU   16 x 32, 128 -> 128              3.8 ms, 0.76 of peak     11.9 ms
//   LSTM  16 x 32, 128 -> 128              5.3 ms, 0.73 of peak      7.2 ms
//   LSTM  64 of 10...200, both ways, 128   159 ms, 0.64 of peak      411 ms
#include "kernels/recurrent/recurrent.h"

#include "kernels/gemm/packed_gemm-inl.h"
#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// Units whose gates are multiplied, then activated while their sums are still in L1.
constexpr int64_t kUnits = 64;
static_assert(kUnits % panels::kColumns == 0);

// Rows of scratch memory a little apart from powers of two, so that they do not share cache sets.
constexpr int64_t padded(int64_t columns) {
  return columns + 16;
}

int64_t scratch_size(RecurrentCell cell, int64_t rows, int64_t hidden) {
  const int64_t gates = recurrent_gates(cell);
  const int64_t forward = 3 * padded(hidden) + padded(gates * kUnits);
  const int64_t backward = 2 * padded(hidden) + padded(gates * hidden);
  return rows * (forward > backward ? forward : backward);
}

// How a row's elements are read and written: whole vectors, and at its end the few that are left.
struct Whole {
  HWY_INLINE Vector load(const float* p) const { return hn::LoadU(Tag(), p); }
  HWY_INLINE void store(Vector v, float* p) const { hn::StoreU(v, Tag(), p); }
};
struct Rest {
  int64_t count;
  HWY_INLINE Vector load(const float* p) const { return load_first(Tag(), p, count); }
  HWY_INLINE void store(Vector v, float* p) const { store_first(v, Tag(), p, count); }
};
template <class Part>
HWY_INLINE Vector load_or_zero(Part part, const float* p) {
  return p == nullptr ? hn::Zero(Tag()) : part.load(p);
}

// Runs body(part, u) over the units [begin, end).
template <class Body>
HWY_INLINE void over_units(int64_t begin, int64_t end, Body body) {
  int64_t u = begin;
  for (; u + panels::kLanes <= end; u += panels::kLanes) body(Whole{}, u);
  if (u < end) body(Rest{end - u}, u);
}

// 1 / (1 + e^-x). Beyond |x| = 87 the exponential stays where it is, which no float sum can tell.
HWY_INLINE Vector gate_sigmoid(Vector x) {
  const Tag d;
  const hn::RebindToSigned<Tag> di;
  Vector biased;
  const Vector p = vmath::exp_reduced(d, vmath::clamp(d, hn::Neg(x), -87.3f, 87.3f), biased);
  const Vector e = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, biased))));
  const Vector one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, e));
}

HWY_INLINE const float* offset(const float* p, int64_t by) {
  return p == nullptr ? nullptr : p + by;
}

using ForwardRow = RecurrentForwardRow;
using BackwardRow = RecurrentBackwardRow;

// The units [begin, end) of a row.
HWY_INLINE void lstm_row(const ForwardRow& row, const float* bias, int64_t hidden, int64_t begin,
                         int64_t end) {
  const Tag d;
  over_units(begin, end, [&](auto part, int64_t u) HWY_ATTR {
    const auto gate = [&](int64_t g) HWY_ATTR {
      const Vector sum = hn::Add(part.load(row.before + g * hidden + u), part.load(bias + g * hidden + u));
      return hn::Add(sum, part.load(row.product + g * row.product_stride + (u - begin)));
    };
    const Vector i = gate_sigmoid(gate(0)), f = gate_sigmoid(gate(1));
    const Vector g = vmath::tanh(d, gate(2)), o = gate_sigmoid(gate(3));
    const Vector c = hn::MulAdd(f, part.load(row.c + u), hn::Mul(i, g));
    const Vector h = hn::Mul(o, vmath::tanh(d, c));
    part.store(c, row.c + u);
    part.store(h, row.h_next + u);
    part.store(h, row.out + u);
    if (row.gates == nullptr) return;
    part.store(i, row.gates + u);
    part.store(f, row.gates + hidden + u);
    part.store(g, row.gates + 2 * hidden + u);
    part.store(o, row.gates + 3 * hidden + u);
    part.store(c, row.cells + u);
  });
}

HWY_INLINE void gru_row(const ForwardRow& row, const float* bias, int64_t hidden, int64_t begin,
                        int64_t end) {
  const Tag d;
  over_units(begin, end, [&](auto part, int64_t u) HWY_ATTR {
    const auto input = [&](int64_t g) HWY_ATTR {
      return hn::Add(part.load(row.before + g * hidden + u), part.load(bias + g * hidden + u));
    };
    const auto product = [&](int64_t g) HWY_ATTR {
      return part.load(row.product + g * row.product_stride + (u - begin));
    };
    const Vector r = gate_sigmoid(hn::Add(input(0), product(0)));
    const Vector z = gate_sigmoid(hn::Add(input(1), product(1)));
    const Vector h_n = hn::Add(product(2), part.load(bias + 3 * hidden + u));
    const Vector n = vmath::tanh(d, hn::MulAdd(r, h_n, input(2)));
    const Vector h = hn::MulAdd(z, hn::Sub(part.load(row.h + u), n), n);
    part.store(h, row.h_next + u);
    part.store(h, row.out + u);
    if (row.gates == nullptr) return;
    part.store(r, row.gates + u);
    part.store(z, row.gates + hidden + u);
    part.store(n, row.gates + 2 * hidden + u);
    part.store(h_n, row.gates + 3 * hidden + u);
  });
}

void copy_row(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from == nullptr ? 0 : from[i];
}

void forward(const RecurrentBlock& b) {
  const RecurrentForward& f = *b.forward;
  const bool lstm = b.cell == RecurrentCell::lstm;
  const int64_t hidden = b.hidden, gates = recurrent_gates(b.cell), stride = padded(hidden);
  const int64_t tile_stride = padded(gates * kUnits);
  float* h = b.scratch;
  float* h_next = h + b.rows * stride;
  float* c = h_next + b.rows * stride;
  float* tile = c + b.rows * stride;
  for (int64_t r = 0; r < b.rows; ++r) {
    copy_row(offset(f.h_first, b.sequence[r] * hidden), hidden, h + r * stride);
    if (lstm) copy_row(offset(f.c_first, b.sequence[r] * hidden), hidden, c + r * stride);
  }
  const int64_t gate_pack = (hidden + panels::kColumns - 1) / panels::kColumns * panels::kColumns * hidden;
  int64_t active = b.rows;
  for (int64_t t = 0;; ++t) {
    for (; active > 0 && b.length[active - 1] <= t; --active) {
      const int64_t r = active - 1;
      if (f.h_last != nullptr) copy_row(h + r * stride, hidden, f.h_last + b.sequence[r] * hidden);
      if (f.c_last != nullptr) copy_row(c + r * stride, hidden, f.c_last + b.sequence[r] * hidden);
    }
    if (active == 0) break;
    for (int64_t begin = 0; begin < hidden; begin += kUnits) {
      const int64_t end = panels::smaller(hidden, begin + kUnits);
      for (int64_t g = 0; g < gates && b.product == nullptr; ++g)
        panels::multiply({.m = active,
                          .n = hidden,
                          .k = hidden,
                          .column_begin = begin,
                          .column_end = end,
                          .a = h,
                          .lda = stride,
                          .packed = b.packed + g * gate_pack,
                          .c = tile + g * kUnits - begin,
                          .ldc = tile_stride});
      for (int64_t r = 0; r < active; ++r) {
        const int64_t token = b.first[r] + t * b.step;
        ForwardRow row{.before = b.before + token * b.before_stride,
                       .product = tile + r * tile_stride,
                       .product_stride = kUnits,
                       .h = h + r * stride,
                       .h_next = h_next + r * stride,
                       .c = c + r * stride,
                       .out = f.out + token * f.out_stride,
                       .gates = f.gates == nullptr ? nullptr : f.gates + token * 4 * hidden,
                       .cells = f.cells == nullptr ? nullptr : f.cells + token * hidden};
        if (b.product != nullptr) {
          row.product = b.product + b.sequence[r] * gates * hidden + begin;
          row.product_stride = hidden;
        }
        if (lstm) {
          lstm_row(row, b.bias, hidden, begin, end);
        } else {
          gru_row(row, b.bias, hidden, begin, end);
        }
      }
    }
    float* const swapped = h;
    h = h_next;
    h_next = swapped;
  }
}

// x (1 - x): the slope of the sigmoid at its value.
HWY_INLINE Vector sigmoid_slope(Vector x) {
  return hn::NegMulAdd(x, x, x);
}
// 1 - x^2: of tanh.
HWY_INLINE Vector tanh_slope(Vector x) {
  return hn::NegMulAdd(x, x, hn::Set(Tag(), 1.0f));
}

HWY_INLINE void lstm_row_back(const BackwardRow& row, int64_t hidden) {
  const Tag d;
  over_units(0, hidden, [&](auto part, int64_t u) HWY_ATTR {
    float* const gates = row.gates + u;
    const Vector i = part.load(gates), f = part.load(gates + hidden);
    const Vector g = part.load(gates + 2 * hidden), o = part.load(gates + 3 * hidden);
    const Vector d_h = hn::Add(part.load(row.d_h + u), load_or_zero(part, offset(row.d_out, u)));
    const Vector c = vmath::tanh(d, part.load(row.cells + u));
    const Vector d_c = hn::MulAdd(hn::Mul(d_h, o), tanh_slope(c), part.load(row.d_c + u));
    const Vector c_before = load_or_zero(part, offset(row.c_before, u));
    part.store(hn::Mul(d_c, f), row.d_c + u);
    const auto store = [&](int64_t gate, Vector v) HWY_ATTR {
      part.store(v, gates + gate * hidden);
      part.store(v, row.rows + gate * hidden + u);
    };
    store(0, hn::Mul(hn::Mul(d_c, g), sigmoid_slope(i)));
    store(1, hn::Mul(hn::Mul(d_c, c_before), sigmoid_slope(f)));
    store(2, hn::Mul(hn::Mul(d_c, i), tanh_slope(g)));
    store(3, hn::Mul(hn::Mul(d_h, c), sigmoid_slope(o)));
  });
}

HWY_INLINE void gru_row_back(const BackwardRow& row, int64_t hidden) {
  over_units(0, hidden, [&](auto part, int64_t u) HWY_ATTR {
    float* const gates = row.gates + u;
    float* const rows = row.rows + u;
    const Vector r = part.load(gates), z = part.load(gates + hidden);
    const Vector n = part.load(gates + 2 * hidden), h_n = part.load(gates + 3 * hidden);
    const Vector d_h = hn::Add(part.load(row.d_h + u), load_or_zero(part, offset(row.d_out, u)));
    const Vector h_before = load_or_zero(part, offset(row.h_before, u));
    const Vector d_n = hn::Mul(hn::NegMulAdd(d_h, z, d_h), tanh_slope(n));
    const Vector d_z = hn::Mul(hn::Mul(d_h, hn::Sub(h_before, n)), sigmoid_slope(z));
    const Vector d_r = hn::Mul(hn::Mul(d_n, h_n), sigmoid_slope(r));
    const Vector d_h_n = hn::Mul(d_n, r);
    part.store(hn::Mul(d_h, z), row.d_h + u);
    part.store(d_r, gates);
    part.store(d_r, rows);
    part.store(d_z, gates + hidden);
    part.store(d_z, rows + hidden);
    part.store(d_n, gates + 2 * hidden);
    part.store(d_h_n, gates + 3 * hidden);
    part.store(d_h_n, rows + 2 * hidden);
  });
}

void backward(const RecurrentBlock& b) {
  const RecurrentBackward& back = *b.backward;
  const RecurrentForward& f = *b.forward;
  const bool lstm = b.cell == RecurrentCell::lstm;
  const int64_t hidden = b.hidden, gates = recurrent_gates(b.cell), stride = padded(hidden);
  const int64_t rows_stride = padded(gates * hidden);
  float* d_h = b.scratch;
  float* d_c = d_h + b.rows * stride;
  float* rows = d_c + b.rows * stride;
  int64_t active = 0;
  for (int64_t t = b.rows == 0 ? 0 : b.length[0]; t-- > 0;) {
    for (; active < b.rows && b.length[active] > t; ++active) {
      copy_row(offset(back.d_h_last, b.sequence[active] * hidden), hidden, d_h + active * stride);
      if (lstm) copy_row(offset(back.d_c_last, b.sequence[active] * hidden), hidden, d_c + active * stride);
    }
    for (int64_t r = 0; r < active; ++r) {
      const int64_t token = b.first[r] + t * b.step, before = token - b.step;
      const BackwardRow row{
          .d_out = offset(back.d_out, token * f.out_stride),
          .d_h = d_h + r * stride,
          .d_c = d_c + r * stride,
          .cells = offset(f.cells, token * hidden),
          .c_before = t > 0 ? offset(f.cells, before * hidden) : offset(f.c_first, b.sequence[r] * hidden),
          .h_before =
              t > 0 ? offset(f.out, before * f.out_stride) : offset(f.h_first, b.sequence[r] * hidden),
          .gates = f.gates + token * 4 * hidden,
          .rows = rows + r * rows_stride};
      if (lstm) {
        lstm_row_back(row, hidden);
      } else {
        gru_row_back(row, hidden);
      }
    }
    if (b.packed == nullptr || (t == 0 && !b.want_first)) continue;
    panels::multiply({.m = active,
                      .n = hidden,
                      .k = gates * hidden,
                      .column_begin = 0,
                      .column_end = hidden,
                      .a = rows,
                      .lda = rows_stride,
                      .packed = b.packed,
                      .accumulate = !lstm,
                      .c = d_h,
                      .ldc = stride});
  }
  for (int64_t r = 0; r < b.rows; ++r) {
    const bool empty = b.length[r] == 0;
    const int64_t place = b.sequence[r] * hidden;
    if (back.d_h_first != nullptr)
      copy_row(empty ? offset(back.d_h_last, place) : d_h + r * stride, hidden, back.d_h_first + place);
    if (back.d_c_first != nullptr)
      copy_row(empty ? offset(back.d_c_last, place) : d_c + r * stride, hidden, back.d_c_first + place);
  }
}

void forward_row(RecurrentCell cell, const ForwardRow& row, const float* bias, int64_t hidden) {
  if (cell == RecurrentCell::lstm) {
    lstm_row(row, bias, hidden, 0, hidden);
  } else {
    gru_row(row, bias, hidden, 0, hidden);
  }
}

void backward_row(RecurrentCell cell, const BackwardRow& row, int64_t hidden) {
  if (cell == RecurrentCell::lstm) {
    lstm_row_back(row, hidden);
  } else {
    gru_row_back(row, hidden);
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const RecurrentKernels recurrent_table;
const RecurrentKernels recurrent_table{.scratch_size = scratch_size,
                                       .forward = forward,
                                       .backward = backward,
                                       .forward_row = forward_row,
                                       .backward_row = backward_row};
}  // namespace FOVEA_LEVEL
}  // namespace fovea::kernels
