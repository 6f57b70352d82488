#include "autograd/ops_gaussian.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace fovea {

Var gaussian_log_probability(const Var& mean, const Tensor& drawn, float deviation) {
  require(mean.rank() == 2 && drawn.shape() == mean.shape(), "gaussian_log_probability: got a mean of shape ",
          mean.shape(), " and draws of shape ", drawn.shape(), ", wanted both [rows, axes]");
  require(deviation > 0, "gaussian_log_probability: got a deviation of ", deviation, ", wanted more than 0");
  const int64_t rows = mean.size(0), axes = mean.size(1);
  const Tensor m = mean.value().contiguous(), x = drawn.contiguous();
  const double scale = 1 / (double{deviation} * deviation);
  const double constant =
      -static_cast<double>(axes) * (std::log(double{deviation}) + 0.5 * std::log(2 * std::numbers::pi));
  Tensor y(Shape{rows});
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t a = r * axes; a < (r + 1) * axes; ++a)
      squares += std::pow(double{x.data()[a]} - double{m.data()[a]}, 2);
    y.data()[r] = static_cast<float>(constant - 0.5 * scale * squares);
  }
  return record(std::move(y), {mean}, [=](const Tensor& grad) {
    const Tensor d(m.shape());
    for (int64_t i = 0; i < rows * axes; ++i)
      d.data()[i] =
          static_cast<float>(grad.data()[i / axes] * scale * (double{x.data()[i]} - double{m.data()[i]}));
    mean.add_grad(d);
  });
}

}  // namespace fovea
