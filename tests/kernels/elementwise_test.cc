#include "kernels/vector/elementwise.h"

#include <vector>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

std::string name(Level level, int64_t count, int op = 0) {
  return std::string(level_name(level)) + " op " + std::to_string(op) + " size " + std::to_string(count);
}

TEST(Unary, EveryLevelEqualsTheReferenceForwardAndBackward) {
  for (const Level level : testing::vector_levels())
    for (int op = 0; op < kUnaryCount; ++op)
      for (const int64_t count : testing::odd_sizes()) {
        const auto kind = static_cast<Unary>(op);
        const bool positive = kind == Unary::log || kind == Unary::sigmoid;  // sigmoid's saved y is in (0, 1)
        const Guarded x = positive ? Guarded::random_positive(count, 1) : Guarded::random(count, 1, 2);
        const Guarded dy = Guarded::random(count, 2);
        Guarded got(count), wanted(count);
        unary(kind, x.data(), got.data(), count, elementwise_kernels(level));
        unary(kind, x.data(), wanted.data(), count, elementwise_kernels(Level::scalar));
        testing::expect_close(got, wanted, 2e-6f, name(level, count, op));
        unary_backward(kind, x.data(), dy.data(), got.data(), count, elementwise_kernels(level));
        unary_backward(kind, x.data(), dy.data(), wanted.data(), count, elementwise_kernels(Level::scalar));
        testing::expect_close(got, wanted, 4e-6f, name(level, count, op) + " backward");
      }
}

TEST(Unary, WorksInPlace) {
  Guarded x = Guarded::random(1023, 1), y(1023);
  unary(Unary::gelu, x.data(), y.data(), 1023);
  unary(Unary::gelu, x.data(), x.data(), 1023);
  testing::expect_same_bits(x, y, "in place");
}

struct Broadcast {
  std::vector<int64_t> sizes, a, b;  // strides of a and b
  int64_t count_a, count_b;
};

TEST(Binary, BroadcastsAnyPairOfShapes) {
  const std::vector<Broadcast> cases{
      {{}, {}, {}, 1, 1},                                   // scalars
      {{37}, {1}, {1}, 37, 37},                             // same shape
      {{5, 37}, {37, 1}, {0, 1}, 185, 37},                  // row vector
      {{5, 37}, {37, 1}, {1, 0}, 185, 5},                   // column vector
      {{5, 37}, {0, 0}, {37, 1}, 1, 185},                   // scalar first
      {{5, 37}, {1, 0}, {0, 1}, 5, 37},                     // outer product
      {{3, 4, 1, 7}, {28, 7, 7, 1}, {7, 0, 7, 1}, 84, 21},  // middle dimension repeated
      {{6, 5}, {1, 6}, {5, 1}, 30, 30},                     // a is a transposed view
      {{2, 0, 3}, {0, 3, 1}, {0, 3, 1}, 0, 0},              // empty
      {{70000}, {1}, {0}, 70000, 1},                        // several pieces
      {{300, 130}, {130, 1}, {0, 1}, 39000, 130},
  };
  for (const Level level : available_levels())
    for (int op = 0; op < kBinaryCount; ++op)
      for (const Broadcast& c : cases) {
        const Guarded a = Guarded::random(c.count_a, 1), b = Guarded::random_positive(c.count_b, 2);
        int64_t count = 1;
        for (const int64_t size : c.sizes) count *= size;
        Guarded got(count), wanted(count);
        binary(static_cast<Binary>(op), c.sizes, {a.data(), c.a.data()}, {b.data(), c.b.data()}, got.data(),
               elementwise_kernels(level));
        for (int64_t i = 0; i < count; ++i) {
          int64_t rest = i, at_a = 0, at_b = 0;
          for (size_t k = c.sizes.size(); k-- > 0; rest /= c.sizes[k]) {
            at_a += rest % c.sizes[k] * c.a[k];
            at_b += rest % c.sizes[k] * c.b[k];
          }
          const float u = a[at_a], v = b[at_b];
          wanted[i] = op == 0 ? u + v : op == 1 ? u - v : op == 2 ? u * v : u / v;
        }
        testing::expect_close(got, wanted, 1e-7f, name(level, count, op));
      }
}

TEST(ScaleAndAxpy, EqualTheirDefinition) {
  for (const Level level : available_levels())
    for (const int64_t count : testing::odd_sizes()) {
      const Guarded x = Guarded::random(count, 1), before = Guarded::random(count, 2);
      Guarded y = before, scaled(count), wanted(count), wanted_scaled(count);
      axpy(0.7f, x.data(), y.data(), count, elementwise_kernels(level));
      scale(0.7f, x.data(), scaled.data(), count, elementwise_kernels(level));
      for (int64_t i = 0; i < count; ++i) {
        wanted[i] = before[i] + 0.7f * x[i];
        wanted_scaled[i] = 0.7f * x[i];
      }
      testing::expect_close(y, wanted, 1e-6f, name(level, count));
      testing::expect_same_bits(scaled, wanted_scaled, name(level, count));
    }
}

TEST(Dropout, DrawsAreThoseOfTheCounterRngOnEveryLevel) {
  for (const Level level : available_levels())
    for (const int64_t count : testing::odd_sizes())
      for (const int64_t first : {int64_t{0}, int64_t{1}, int64_t{6}, int64_t{255}, (int64_t{1} << 34) + 3}) {
        const Dropout rule{0.3f, 0x123456789abcdefull};
        const Guarded x = Guarded::random(count, 1);
        Guarded got(count), wanted(count);
        elementwise_kernels(level).dropout(rule, first, x.data(), got.data(), count);
        for (int64_t i = 0; i < count; ++i) wanted[i] = x[i] * rule.factor(first + i);
        testing::expect_same_bits(got, wanted, name(level, count));
        EXPECT_TRUE(got.guards_intact());
      }
}

TEST(Dropout, DropsTheAskedShareAndKeepsTheMean) {
  const int64_t count = 200000;
  const Guarded x(count, 1);
  Guarded y(count);
  dropout({0.3f, 7}, x.data(), y.data(), count);
  double sum = 0, dropped = 0;
  for (const float v : y) sum += v, dropped += v == 0;
  EXPECT_NEAR(dropped / count, 0.3, 0.005);
  EXPECT_NEAR(sum / count, 1, 0.01);
}

TEST(Dropout, ExtremesKeepAllOrNothing) {
  const Guarded x(100, 1);
  Guarded y(100);
  dropout({0.0f, 7}, x.data(), y.data(), 100);
  testing::expect_same_bits(y, x, "p = 0");
  dropout({1.0f, 7}, x.data(), y.data(), 100);
  testing::expect_same_bits(y, Guarded(100), "p = 1");
}

TEST(BiasActivation, EveryLevelEqualsTheReferenceForwardAndBackward) {
  for (const Level level : testing::vector_levels())
    for (int op = 0; op < 5; ++op)
      for (const bool keep_before : {false, true})
        for (const int64_t columns : testing::odd_sizes()) {
          const auto activation = static_cast<Epilogue>(op);
          const int64_t rows = 5, count = rows * columns;
          const Guarded x = Guarded::random(count, 1), bias = Guarded::random(columns, 2),
                        dy = Guarded::random(count, 3);
          const auto run = [&](Level at, Guarded& before, Guarded& y, Guarded& dx, Guarded& d_bias) {
            bias_activation({activation, rows, columns, x.data(), bias.data(),
                             keep_before ? before.data() : nullptr, y.data()},
                            elementwise_kernels(at));
            const float* saved = activation == Epilogue::relu ? y.data()
                                 : keep_before                ? before.data()
                                                              : x.data();
            bias_activation_backward({activation, rows, columns, saved, dy.data(), dx.data(), d_bias.data()},
                                     elementwise_kernels(at));
          };
          Guarded before(count), y(count), dx(count), d_bias(columns);
          Guarded before0(count), y0(count), dx0(count), d_bias0(columns);
          run(level, before, y, dx, d_bias);
          run(Level::scalar, before0, y0, dx0, d_bias0);
          testing::expect_close(before, before0, 0, name(level, columns, op));
          testing::expect_close(y, y0, 2e-6f, name(level, columns, op));
          testing::expect_close(dx, dx0, 4e-6f, name(level, columns, op));
          testing::expect_close(d_bias, d_bias0, 1e-5f, name(level, columns, op));
        }
}

TEST(BiasActivation, BiasGradientDoesNotDependOnThreads) {
  const int64_t rows = 1000, columns = 65;
  const Guarded dy = Guarded::random(rows * columns, 1), y = Guarded::random(rows * columns, 2);
  Guarded dx(rows * columns), one(columns), three(columns);
  set_num_threads(1);
  bias_activation_backward({Epilogue::relu, rows, columns, y.data(), dy.data(), dx.data(), one.data()});
  set_num_threads(3);
  bias_activation_backward({Epilogue::relu, rows, columns, y.data(), dy.data(), dx.data(), three.data()});
  set_num_threads(0);
  testing::expect_same_bits(three, one, "d_bias");
}

}  // namespace
}  // namespace fovea::kernels
