// Pooling, the small network and scaling of a gate over channels, for one instruction set.
#include "kernels/gates/channel_gate.h"

#include "kernels/gates/gate_rows-inl.h"
#include "kernels/vector/vector_math-inl.h"

namespace fovea::kernels {
namespace {

// f(c, lanes, number of vectors) over the channels: four vectors side by side where there are as many, so
// that memory is read in order.
template <int kVectors>
struct Count {};
template <class F>
HWY_INLINE void for_strips(int64_t channels, F f) {
  int64_t c = 0;
  for (; c + 4 * kLanes <= channels; c += 4 * kLanes) f(c, kLanes, Count<4>());
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) f(c, kLanes, Count<2>());
  for (; c + kLanes <= channels; c += kLanes) f(c, kLanes, Count<1>());
  if (c < channels) f(c, channels - c, Count<1>());
}

// Places that are summed in float before they join the total: few enough to keep its digits, and to lie in
// the second-level cache while strips of channels pass.
HWY_INLINE int64_t places_of_block(int64_t channels) {
  const int64_t most = 16384 / channels;
  return most < 8 ? 8 : most > 256 ? 256 : most;
}

// sums[c] += sum of term(place, c, lanes) over places [begin, end): several chains hide the latency of the
// additions.
template <class Term>
HWY_INLINE void add_places(int64_t begin, int64_t end, int64_t channels, float* sums, Term term) {
  for_strips(channels, [&]<int kVectors>(int64_t c, int64_t lanes, Count<kVectors>) HWY_ATTR {
    constexpr int kRows = 4 / kVectors < 2 ? 2 : 4 / kVectors;
    V sum[kRows][kVectors];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    }
    int64_t p = begin;
    for (; p + kRows <= end; p += kRows) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Add(sum[r][v], term(p + r, c + v * kLanes, lanes));
      }
    }
    for (; p < end; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[0][v] = hn::Add(sum[0][v], term(p, c + v * kLanes, lanes));
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      V total = load(sums + c + v * kLanes, lanes);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) total = hn::Add(total, sum[r][v]);
      store(total, sums + c + v * kLanes, lanes);
    }
  });
}

template <class Term>
HWY_INLINE void sum_places(int64_t places, int64_t channels, float* sums, Term term) {
  for_vectors(channels, [=](int64_t c, int64_t lanes) HWY_ATTR { store(hn::Zero(d), sums + c, lanes); });
  const int64_t block = places_of_block(channels);
  for (int64_t begin = 0; begin < places; begin += block)
    add_places(begin, HWY_MIN(places, begin + block), channels, sums, term);
}

// The first maximum of each channel over places [begin, end), if it is above what max holds.
HWY_INLINE void raise_max(const float* x, int64_t begin, int64_t end, int64_t channels, float* max,
                          int32_t* place) {
  const hn::RebindToSigned<D> di;
  for_strips(channels, [&]<int kVectors>(int64_t c, int64_t lanes, Count<kVectors>) HWY_ATTR {
    V best[kVectors];
    hn::Vec<decltype(di)> best_place[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      best[v] = load(max + c + v * kLanes, lanes);
      best_place[v] = hn::Set(di, -1);
    }
    for (int64_t p = begin; p < end; ++p) {
      const auto here = hn::Set(di, static_cast<int32_t>(p));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const V value = load(x + p * channels + c + v * kLanes, lanes);
        const auto above = hn::Gt(value, best[v]);
        best[v] = hn::IfThenElse(above, value, best[v]);
        best_place[v] = hn::IfThenElse(hn::RebindMask(di, above), here, best_place[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = c + v * kLanes;
      store(best[v], max + at, lanes);
      HWY_ALIGN int32_t raised[kLanes];
      hn::Store(best_place[v], di, raised);
      for (int64_t i = 0; i < lanes; ++i)
        if (raised[i] >= 0) place[at + i] = raised[i];
    }
  });
}

void pool(const float* x, int64_t places, int64_t channels, float* mean, float* max, int32_t* place) {
  const auto term = [=](int64_t p, int64_t c, int64_t lanes)
                        HWY_ATTR { return load(x + p * channels + c, lanes); };
  if (max == nullptr) {
    sum_places(places, channels, mean, term);
  } else {
    for (int64_t c = 0; c < channels; ++c) mean[c] = 0, max[c] = x[c], place[c] = 0;
    const int64_t block = places_of_block(channels);
    for (int64_t begin = 0; begin < places; begin += block) {
      const int64_t end = HWY_MIN(places, begin + block);
      add_places(begin, end, channels, mean, term);
      raise_max(x, begin, end, channels, max, place);
    }
  }
  const V share = hn::Set(d, 1 / static_cast<float>(places));
  for_vectors(channels, [=](int64_t c, int64_t lanes)
                            HWY_ATTR { store(hn::Mul(load(mean + c, lanes), share), mean + c, lanes); });
}

HWY_INLINE float dot_of(const float* a, const float* b, int64_t count) {
  return sum_of(count, [=](int64_t i, int64_t lanes)
                           HWY_ATTR { return hn::Mul(load(a + i, lanes), load(b + i, lanes)); });
}

// y[i] = sum of x[j] rows[j][i] over `count` rows.
HWY_INLINE void weighted_rows(const float* x, const float* rows, int64_t count, int64_t columns, float* y) {
  for_vectors(columns, [=](int64_t i, int64_t lanes) HWY_ATTR {
    V sum0 = hn::Zero(d), sum1 = sum0;
    int64_t j = 0;
    for (; j + 2 <= count; j += 2) {
      sum0 = hn::MulAdd(hn::Set(d, x[j]), load(rows + j * columns + i, lanes), sum0);
      sum1 = hn::MulAdd(hn::Set(d, x[j + 1]), load(rows + (j + 1) * columns + i, lanes), sum1);
    }
    if (j < count) sum0 = hn::MulAdd(hn::Set(d, x[j]), load(rows + j * columns + i, lanes), sum0);
    store(hn::Add(sum0, sum1), y + i, lanes);
  });
}

void network(const ChannelGate& g, int64_t channels, int64_t image) {
  const int64_t pools = g.pools();
  const float* const pooled = g.pooled + image * pools * channels;
  float* const features = g.features + image * pools * g.hidden;
  float* const gate = g.gate + image * channels;
  for (int64_t j = 0; j < g.hidden; ++j)
    for (int64_t pool = 0; pool < pools; ++pool) {
      const float sum =
          (g.bias1 ? g.bias1[j] : 0) + dot_of(g.weight1 + j * channels, pooled + pool * channels, channels);
      features[pool * g.hidden + j] = sum < 0 ? 0 : sum;  // NaN stays
    }
  for (int64_t c = 0; c < channels; ++c) {
    float logit = g.bias2 ? static_cast<float>(pools) * g.bias2[c] : 0;
    for (int64_t pool = 0; pool < pools; ++pool)
      logit += dot_of(g.weight2 + c * g.hidden, features + pool * g.hidden, g.hidden);
    gate[c] = logit;
  }
  for_vectors(channels, [=](int64_t c, int64_t lanes)
                            HWY_ATTR { store(vmath::sigmoid(d, load(gate + c, lanes)), gate + c, lanes); });
}

void scale(const ChannelGateKernels::Scale& all) {
  const int64_t channels = all.channels;
  write_rows(all.past_cache, all.y, channels, [&](auto how) HWY_ATTR {
    from_the_end(all.places, channels, [&](int64_t begin, int64_t end) HWY_ATTR {
      for_strips(channels, [&]<int kVectors>(int64_t c, int64_t lanes, Count<kVectors>) HWY_ATTR {
        V factor[kVectors], shift[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          factor[v] = load(all.factor + c + v * kLanes, lanes);
          shift[v] = all.shift ? load(all.shift + c + v * kLanes, lanes) : hn::Zero(d);
        }
        const float* x = all.x + begin * channels + c;
        float* y = all.y + begin * channels + c;
        for (int64_t p = begin; p < end; ++p, x += channels, y += channels) {
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v)
            how.put(hn::MulAdd(load(x + v * kLanes, lanes), factor[v], shift[v]), y + v * kLanes, lanes);
        }
      });
    });
  });
}

void dot(const float* x, const float* dy, int64_t places, int64_t channels, float* sums) {
  sum_places(places, channels, sums, [=](int64_t p, int64_t c, int64_t lanes) HWY_ATTR {
    const int64_t at = p * channels + c;
    return hn::Mul(load(x + at, lanes), load(dy + at, lanes));
  });
}

void network_backward(const ChannelGate& g, const ChannelGateGradients& gradients, int64_t channels,
                      int64_t image, const float* d_gate, float* d_pooled) {
  const int64_t pools = g.pools();
  const float* const gate = g.gate + image * channels;
  float* const d_logits = gradients.logits + image * channels;
  const V one = hn::Set(d, 1.0f);
  for_vectors(channels, [=](int64_t c, int64_t lanes) HWY_ATTR {
    const V open = load(gate + c, lanes);
    store(hn::Mul(hn::Mul(load(d_gate + c, lanes), open), hn::Sub(one, open)), d_logits + c, lanes);
  });
  const float* const features = g.features + image * pools * g.hidden;
  float* const d_features = gradients.features + image * pools * g.hidden;
  weighted_rows(d_logits, g.weight2, channels, g.hidden, d_features);
  // The pools share what comes back, and each passes on what its own ReLU let through; the first, whose place
  // holds it, comes last.
  for (int64_t pool = pools; pool-- > 0;)
    for_vectors(g.hidden, [=](int64_t j, int64_t lanes) HWY_ATTR {
      const auto open = hn::Gt(load(features + pool * g.hidden + j, lanes), hn::Zero(d));
      store(hn::IfThenElseZero(open, load(d_features + j, lanes)), d_features + pool * g.hidden + j, lanes);
    });
  for (int64_t pool = 0; pool < pools; ++pool)
    weighted_rows(d_features + pool * g.hidden, g.weight1, g.hidden, channels, d_pooled + pool * channels);
}

}  // namespace

namespace FOVEA_LEVEL {
extern const ChannelGateKernels channel_gate_table;
const ChannelGateKernels channel_gate_table{
    .pool = pool, .network = network, .scale = scale, .dot = dot, .network_backward = network_backward};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
