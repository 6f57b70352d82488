#include "autograd/ops_position.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"

namespace fovea {
namespace {

// Cosines and sines of every (row, pair), computed once for forward and backward: [N, D/2] each.
struct Angles {
  std::vector<float> cosine, sine;
};

Angles make_angles(std::span<const int32_t> positions, int64_t d, float base) {
  const int64_t pairs = d / 2;
  Angles angles;
  angles.cosine.resize(positions.size() * static_cast<size_t>(pairs));
  angles.sine.resize(angles.cosine.size());
  size_t place = 0;
  for (const int32_t position : positions) {
    for (int64_t p = 0; p < pairs; ++p, ++place) {
      const double angle =
          position * std::pow(double{base}, -2.0 * static_cast<double>(p) / static_cast<double>(d));
      angles.cosine[place] = static_cast<float>(std::cos(angle));
      angles.sine[place] = static_cast<float>(std::sin(angle));
    }
  }
  return angles;
}

// y = x turned by the angles (direction 1) or against them (direction -1).
Tensor turn(const Tensor& x, const Angles& angles, bool interleaved, float direction) {
  const Tensor from = x.contiguous();
  Tensor to(x.shape());
  const int64_t n = x.size(-2), d = x.size(-1), pairs = d / 2;
  const int64_t step = interleaved ? 2 : 1, partner = interleaved ? 1 : pairs;
  const int64_t rows = d == 0 ? 0 : x.count() / d;
  parallel_for(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, d)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* in = from.data() + row * d;
      float* out = to.data() + row * d;
      const float* cosine = angles.cosine.data() + row % n * pairs;
      const float* sine = angles.sine.data() + row % n * pairs;
      for (int64_t p = 0; p < pairs; ++p) {
        const float a = in[p * step], b = in[p * step + partner], s = direction * sine[p];
        out[p * step] = a * cosine[p] - b * s;
        out[p * step + partner] = b * cosine[p] + a * s;
      }
    }
  });
  return to;
}

}  // namespace

Var rotary(const Var& x, std::span<const int32_t> positions, const RotaryOptions& options) {
  require(x.rank() >= 2 && x.size(-1) % 2 == 0, "rotary: got shape ", x.shape(),
          ", wanted [..., N, D] with D even");
  require(static_cast<int64_t>(positions.size()) == x.size(-2), "rotary: got ", positions.size(),
          " positions for ", x.size(-2), " rows of shape ", x.shape());
  const auto angles = std::make_shared<Angles>(make_angles(positions, x.size(-1), options.base));
  const bool interleaved = options.interleaved;
  return record(turn(x.value(), *angles, interleaved, 1), {x}, [x, angles, interleaved](const Tensor& grad) {
    x.add_grad(turn(grad, *angles, interleaved, -1));
  });
}

}  // namespace fovea
