#include <cmath>

#include "kernels/vector/optim.h"

namespace fovea::kernels::scalar {
namespace {

// The gradient that reaches the rule: scaled, with weight decay added.
float gradient_at(const OptimRange& r, const OptimCoefficients& c, int64_t i) {
  return (r.gradient ? r.gradient[i] : 0.0f) * c.gradient_scale + c.weight_decay * r.weight[i];
}

void sgd(const OptimRange& r, const OptimCoefficients& c) {
  for (int64_t i = 0; i < r.count; ++i) r.weight[i] -= c.learning_rate * gradient_at(r, c, i);
}

template <bool nesterov>
void sgd_momentum(const OptimRange& r, const OptimCoefficients& c) {
  for (int64_t i = 0; i < r.count; ++i) {
    const float g = gradient_at(r, c, i);
    float& buffer = r.state[0][i];
    buffer = c.decay1 * buffer + c.gain1 * g;
    r.weight[i] -= c.learning_rate * (nesterov ? g + c.decay1 * buffer : buffer);
  }
}

void adam(const OptimRange& r, const OptimCoefficients& c) {
  for (int64_t i = 0; i < r.count; ++i) {
    const float g = gradient_at(r, c, i);
    float& first = r.state[0][i];
    float& second = r.state[1][i];
    first += c.gain1 * (g - first);
    second = c.decay2 * second + c.gain2 * g * g;
    const float root = std::sqrt(second) * c.root_scale + c.epsilon;
    r.weight[i] = r.weight[i] * c.keep - c.learning_rate * (first / root);
  }
}

void adadelta(const OptimRange& r, const OptimCoefficients& c) {
  for (int64_t i = 0; i < r.count; ++i) {
    const float g = gradient_at(r, c, i);
    float& squares = r.state[0][i];
    float& updates = r.state[1][i];
    squares = c.decay2 * squares + c.gain2 * g * g;
    const float update = std::sqrt(updates + c.epsilon) / std::sqrt(squares + c.epsilon) * g;
    updates = c.decay2 * updates + c.gain2 * update * update;
    r.weight[i] -= c.learning_rate * update;
  }
}

void adagrad(const OptimRange& r, const OptimCoefficients& c) {
  for (int64_t i = 0; i < r.count; ++i) {
    const float g = gradient_at(r, c, i);
    float& squares = r.state[0][i];
    squares += g * g;
    r.weight[i] -= c.learning_rate * (g / (std::sqrt(squares) + c.epsilon));
  }
}

template <bool momentum, bool centered>
void rmsprop(const OptimRange& r, const OptimCoefficients& c) {
  for (int64_t i = 0; i < r.count; ++i) {
    const float g = gradient_at(r, c, i);
    float& squares = r.state[0][i];
    squares = c.decay2 * squares + c.gain2 * g * g;
    float variance = squares;
    if (centered) {
      float& mean = r.state[2][i];
      mean += c.gain2 * (g - mean);
      variance -= mean * mean;
    }
    float update = g / (std::sqrt(variance) + c.epsilon);
    if (momentum) update = r.state[1][i] = c.decay1 * r.state[1][i] + update;
    r.weight[i] -= c.learning_rate * update;
  }
}

void ema(float* average, const float* weight, int64_t count, float gain) {
  for (int64_t i = 0; i < count; ++i) average[i] += gain * (weight[i] - average[i]);
}

double sum_of_squares(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

}  // namespace

extern const OptimKernels optim_table;
const OptimKernels optim_table{
    .sgd = sgd,
    .sgd_momentum = sgd_momentum<false>,
    .sgd_nesterov = sgd_momentum<true>,
    .adam = adam,
    .adadelta = adadelta,
    .adagrad = adagrad,
    .rmsprop = {{rmsprop<false, false>, rmsprop<false, true>}, {rmsprop<true, false>, rmsprop<true, true>}},
    .ema = ema,
    .sum_of_squares = sum_of_squares,
};

}  // namespace fovea::kernels::scalar
