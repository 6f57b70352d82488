#include "kernels/gates/spatial_gate.h"

#include "kernels/gates/gate_rows-inl.h"
#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_sums-inl.h"

namespace fovea::kernels {
namespace {

// Sums and maxima over channels are made for four places at a time: what crosses lanes then costs a quarter.
using D4 = hn::FixedTag<float, 4>;
constexpr D4 d4;
constexpr int64_t kPlaces = 4;

// body(first place, places) for all places, four at a time; the last ones may be fewer.
template <class Body>
HWY_INLINE void for_fours(int64_t places, Body body) {
  for (int64_t p = 0; p < places; p += kPlaces) body(p, HWY_MIN(kPlaces, places - p));
}

// Four places of x; those that do not exist are the first one again.
struct Rows {
  const float* row[kPlaces];
  HWY_INLINE Rows(const float* x, int64_t count, int64_t channels) {
    for (int64_t k = 0; k < kPlaces; ++k) row[k] = x + (k < count ? k : 0) * channels;
  }
};

void pool(const float* x, int64_t places, int64_t channels, float* maps, int32_t* channel) {
  const V first_lanes = hn::Iota(d, 0.0f);
  const auto share = hn::Set(d4, 1 / static_cast<float>(channels));
  const auto last = hn::Set(d4, static_cast<float>(channels - 1));
  for_fours(places, [&](int64_t p, int64_t count) HWY_ATTR {
    const Rows rows(x + p * channels, count, channels);
    V sum[kPlaces], best[kPlaces], index[kPlaces];
#pragma GCC unroll 4
    for (int k = 0; k < kPlaces; ++k) {
      sum[k] = hn::Zero(d);
      best[k] = hn::Neg(hn::Inf(d));
      index[k] = first_lanes;
    }
    for_vectors(channels, [&](int64_t c, int64_t lanes) HWY_ATTR {
      const V here = hn::Add(hn::Set(d, static_cast<float>(c)), first_lanes);
#pragma GCC unroll 4
      for (int k = 0; k < kPlaces; ++k) {
        const V value = load(rows.row[k] + c, lanes);
        sum[k] = hn::Add(sum[k], value);
        const V candidate = keep_first(value, lanes, -__builtin_inff());
        const auto above = hn::Gt(candidate, best[k]);
        best[k] = hn::IfThenElse(above, candidate, best[k]);
        index[k] = hn::IfThenElse(above, here, index[k]);
      }
    });
    HWY_ALIGN float means[kPlaces], largest[kPlaces];
    hn::Store(hn::Mul(four_sums(d, sum[0], sum[1], sum[2], sum[3]), share), d4, means);
    hn::Store(join_four(d, best[0], best[1], best[2], best[3], MaxLanes()), d4, largest);
    // Of the lanes that hold the maximum, the one that met it first. A NaN (its mean is one) may leave none.
#pragma GCC unroll 4
    for (int k = 0; k < kPlaces; ++k)
      index[k] = hn::IfThenElse(hn::Eq(best[k], hn::Set(d, largest[k])), index[k], hn::Inf(d));
    const auto first = hn::Min(join_four(d, index[0], index[1], index[2], index[3], MinLanes()), last);
    HWY_ALIGN int32_t places_of_max[kPlaces];
    const hn::RebindToSigned<D4> di4;
    hn::Store(hn::ConvertTo(di4, first), di4, places_of_max);
    for (int64_t k = 0; k < count; ++k) {
      maps[2 * (p + k)] = means[k];
      maps[2 * (p + k) + 1] = largest[k];
      channel[p + k] = places_of_max[k];
    }
  });
}

void scale(const float* x, int64_t places, int64_t channels, float* gate, float* y, bool past_cache) {
  for_vectors(places, [=](int64_t p, int64_t lanes)
                          HWY_ATTR { store(vmath::sigmoid(d, load(gate + p, lanes)), gate + p, lanes); });
  write_rows(past_cache, y, channels, [=](auto how) HWY_ATTR {
    from_the_end(places, channels, [=](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t p = begin; p < end; ++p) {
        const V g = hn::Set(d, gate[p]);
        for_vectors(channels, [=](int64_t c, int64_t lanes) HWY_ATTR {
          const int64_t at = p * channels + c;
          how.put(hn::Mul(load(x + at, lanes), g), y + at, lanes);
        });
      }
    });
  });
}

void dot(const float* x, const float* dy, int64_t places, int64_t channels, const float* gate,
         float* d_logits) {
  for_fours(places, [&](int64_t p, int64_t count) HWY_ATTR {
    const Rows xs(x + p * channels, count, channels), dys(dy + p * channels, count, channels);
    V sum[kPlaces];
#pragma GCC unroll 4
    for (int k = 0; k < kPlaces; ++k) sum[k] = hn::Zero(d);
    for_vectors(channels, [&](int64_t c, int64_t lanes) HWY_ATTR {
#pragma GCC unroll 4
      for (int k = 0; k < kPlaces; ++k)
        sum[k] = hn::MulAdd(load(xs.row[k] + c, lanes), load(dys.row[k] + c, lanes), sum[k]);
    });
    HWY_ALIGN float sums[kPlaces];
    hn::Store(four_sums(d, sum[0], sum[1], sum[2], sum[3]), d4, sums);
    for (int64_t k = 0; k < count; ++k) d_logits[p + k] = sums[k] * gate[p + k] * (1 - gate[p + k]);
  });
}

void backward(const SpatialGateKernels::Backward& args) {
  const int64_t channels = args.channels;
  const float share = 1 / static_cast<float>(channels);
  const hn::RebindToSigned<D> di;
  const auto first_lanes = hn::Iota(di, 0);
  write_rows(args.past_cache, args.dx, channels, [&](auto how) HWY_ATTR {
    from_the_end(args.places, channels, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t p = begin; p < end; ++p) {
        const V g = hn::Set(d, args.gate[p]), d_mean = hn::Set(d, args.d_maps[2 * p] * share),
                d_max = hn::Set(d, args.d_maps[2 * p + 1]);
        const float* const dy = args.dy + p * channels;
        float* const dx = args.dx + p * channels;
        // Where the channel of the maximum is, seen from the vector's first lane.
        for_vectors(channels, [&](int64_t c, int64_t lanes) HWY_ATTR {
          const auto there = hn::Eq(first_lanes, hn::Set(di, args.channel[p] - static_cast<int32_t>(c)));
          const V extra = hn::IfThenElseZero(hn::RebindMask(d, there), d_max);
          how.put(hn::Add(hn::MulAdd(load(dy + c, lanes), g, d_mean), extra), dx + c, lanes);
        });
      }
    });
  });
}

}  // namespace

namespace FOVEA_LEVEL {
extern const SpatialGateKernels spatial_gate_table;
const SpatialGateKernels spatial_gate_table{.pool = pool, .scale = scale, .dot = dot, .backward = backward};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
