// Gates of images: every instruction set against the reference, any number of threads, and what they keep.
#include "kernels/gates/image_gate.h"

#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

// Both gates or one of them, with all that they read and write.
struct Gates {
  Gates(const GateShape& s, int64_t hidden_, int64_t kernel_, int variant_)
      : shape(s),
        variant(variant_),
        hidden(hidden_),
        kernel(kernel_),
        floats(s.images * s.image_floats()),
        rows(s.images * pools()),
        x(Guarded::random(floats, 1)),
        dy(Guarded::random(floats, 2)),
        weight1(Guarded::random(hidden * s.channels, 3)),
        bias1(Guarded::random(hidden, 4)),
        weight2(Guarded::random(s.channels * hidden, 5)),
        bias2(Guarded::random(s.channels, 6)),
        weight(Guarded::random(2 * kernel * kernel, 7, 0.3f)),
        pooled(rows * s.channels),
        features(rows * hidden),
        channel_gate(s.images * s.channels),
        maps(2 * s.images * s.places()),
        spatial_gate(s.images * s.places()),
        y(floats),
        d_logits(s.images * s.channels),
        d_features(rows * hidden),
        d_weight1(hidden * s.channels),
        d_bias1(hidden),
        d_weight2(s.channels * hidden),
        d_bias2(s.channels),
        d_places(s.images * s.places()),
        d_weight(2 * kernel * kernel),
        dx(floats),
        place(static_cast<size_t>(s.images * s.channels)),
        channel(static_cast<size_t>(s.images * s.places())) {}

  bool has_channel() const { return variant != 0; }
  bool has_spatial() const { return variant != 1; }
  bool with_max() const { return variant > 2; }
  bool with_bias() const { return variant != 4; }
  int64_t pools() const { return with_max() ? 2 : 1; }

  void run(Level level, bool wants_dx = true) {
    const ChannelGate channels{.hidden = hidden,
                               .with_max = with_max(),
                               .weight1 = weight1.data(),
                               .bias1 = with_bias() ? bias1.data() : nullptr,
                               .weight2 = weight2.data(),
                               .bias2 = with_bias() ? bias2.data() : nullptr,
                               .pooled = pooled.data(),
                               .place = place.data(),
                               .features = features.data(),
                               .gate = channel_gate.data()};
    const SpatialGate places{.kernel = kernel,
                             .weight = weight.data(),
                             .maps = maps.data(),
                             .channel = channel.data(),
                             .gate = spatial_gate.data()};
    const ChannelGateGradients d_channels{.logits = d_logits.data(),
                                          .features = d_features.data(),
                                          .weight1 = d_weight1.data(),
                                          .bias1 = with_bias() ? d_bias1.data() : nullptr,
                                          .weight2 = d_weight2.data(),
                                          .bias2 = with_bias() ? d_bias2.data() : nullptr};
    const SpatialGateGradients d_spatial{.logits = d_places.data(), .weight = d_weight.data()};
    image_gate_forward({.shape = shape,
                        .x = x.data(),
                        .channel = has_channel() ? &channels : nullptr,
                        .spatial = has_spatial() ? &places : nullptr,
                        .y = y.data()},
                       level);
    image_gate_backward({.shape = shape,
                         .x = x.data(),
                         .dy = dy.data(),
                         .channel = has_channel() ? &channels : nullptr,
                         .spatial = has_spatial() ? &places : nullptr,
                         .d_channel = &d_channels,
                         .d_spatial = &d_spatial,
                         .dx = wants_dx ? dx.data() : nullptr},
                        level);
  }

  // Every array that is written, by name.
  template <class Visit>
  void for_each_result(Visit visit) {
    visit(pooled, "pooled");
    visit(features, "features");
    visit(channel_gate, "channel gate");
    visit(maps, "maps");
    visit(spatial_gate, "spatial gate");
    visit(y, "y");
    visit(d_logits, "d_logits");
    visit(d_features, "d_features");
    visit(d_weight1, "d_weight1");
    visit(d_bias1, "d_bias1");
    visit(d_weight2, "d_weight2");
    visit(d_bias2, "d_bias2");
    visit(d_places, "d_places");
    visit(d_weight, "d_weight");
    visit(dx, "dx");
  }

  GateShape shape;
  int variant;
  int64_t hidden, kernel, floats, rows;
  Guarded x, dy, weight1, bias1, weight2, bias2, weight;
  Guarded pooled, features, channel_gate, maps, spatial_gate, y;
  Guarded d_logits, d_features, d_weight1, d_bias1, d_weight2, d_bias2, d_places, d_weight, dx;
  std::vector<int32_t> place, channel;
};

constexpr int kVariants =
    5;  // places; channels; both, by the mean; both, also by the maximum, with biases or without

std::vector<std::pair<Guarded*, std::string>> results_of(Gates& gates) {
  std::vector<std::pair<Guarded*, std::string>> all;
  gates.for_each_result([&](Guarded& array, const char* name) { all.emplace_back(&array, name); });
  return all;
}

TEST(ImageGate, EveryLevelEqualsTheReference) {
  const GateShape shapes[] = {{1, 1, 1, 1},    {2, 3, 5, 3},  {3, 7, 2, 16},
                              {1, 17, 19, 37}, {2, 4, 4, 64}, {2, 5, 3, 130}};
  for (const Level level : testing::vector_levels())
    for (int variant = 0; variant < kVariants; ++variant)
      for (const GateShape& shape : shapes) {
        const int64_t hidden = 1 + shape.channels / 3, kernel = shape.height % 2 == 1 ? 7 : 3;
        Gates got(shape, hidden, kernel, variant), wanted(shape, hidden, kernel, variant);
        got.run(level);
        wanted.run(Level::scalar);
        const std::string what = std::string(level_name(level)) + " variant " + std::to_string(variant) +
                                 " " + std::to_string(shape.channels) + " channels ";
        const auto a = results_of(got), b = results_of(wanted);
        for (size_t i = 0; i < a.size(); ++i)
          testing::expect_close(*a[i].first, *b[i].first, 5e-5f, what + a[i].second);
        EXPECT_EQ(got.place, wanted.place) << what;
        EXPECT_EQ(got.channel, wanted.channel) << what;
      }
}

// 16 MiB and more are written past the cache, with as many channels as fill the vectors.
TEST(ImageGate, LargeBatchesEqualTheReferenceToo) {
  for (const int variant : {1, 3}) {
    const GateShape shape{22, 56, 56, 64};
    Gates got(shape, 4, 3, variant), wanted(shape, 4, 3, variant);
    got.run(current_level());
    wanted.run(Level::scalar);
    testing::expect_close(got.y, wanted.y, 5e-5f, "y");
    testing::expect_close(got.dx, wanted.dx, 5e-5f, "dx");
  }
}

TEST(ImageGate, IsTheSameForAnyNumberOfThreadsAndForEachImageAlone) {
  const GateShape shape{9, 13, 11, 24};
  for (int variant = 0; variant < kVariants; ++variant) {
    set_num_threads(1);
    Gates one(shape, 5, 7, variant);
    one.run(current_level());
    for (const int threads : {2, 3, 8}) {
      set_num_threads(threads);
      Gates many(shape, 5, 7, variant);
      many.run(current_level());
      const auto a = results_of(many), b = results_of(one);
      for (size_t i = 0; i < a.size(); ++i) testing::expect_same_bits(*a[i].first, *b[i].first, a[i].second);
    }
    set_num_threads(0);
    GateShape last = shape;
    last.images = 1;
    Gates alone(last, 5, 7, variant);
    const int64_t first = 8 * shape.image_floats();
    for (int64_t i = 0; i < shape.image_floats(); ++i)
      alone.x[i] = one.x[first + i], alone.dy[i] = one.dy[first + i];
    alone.run(current_level());
    for (int64_t i = 0; i < shape.image_floats(); ++i) {
      ASSERT_EQ(alone.y[i], one.y[first + i]);
      ASSERT_EQ(alone.dx[i], one.dx[first + i]);
    }
  }
}

TEST(ImageGate, WithoutAGradientOfTheImagesThoseOfTheWeightsAreTheSame) {
  for (int variant = 0; variant < kVariants; ++variant) {
    Gates with({2, 6, 5, 20}, 3, 3, variant), without({2, 6, 5, 20}, 3, 3, variant);
    with.run(current_level());
    without.run(current_level(), false);
    testing::expect_same_bits(without.d_weight1, with.d_weight1, "d_weight1");
    testing::expect_same_bits(without.d_weight2, with.d_weight2, "d_weight2");
    testing::expect_same_bits(without.d_weight, with.d_weight, "d_weight");
  }
}

TEST(ImageGate, TheFirstOfEqualMaximaCounts) {
  constexpr int64_t kChannels = 40, kPlaces = 6;
  Guarded x(kPlaces * kChannels, 1.0f), mean(kChannels), max(kChannels), maps(2 * kPlaces);
  x[2 * kChannels + 33] = x[4 * kChannels + 33] = 3;
  x[2 * kChannels + 35] = 3;
  for (const Level level : available_levels()) {
    std::vector<int32_t> place(kChannels), channel(kPlaces);
    channel_gate_kernels(level).pool(x.data(), kPlaces, kChannels, mean.data(), max.data(), place.data());
    spatial_gate_kernels(level).pool(x.data(), kPlaces, kChannels, maps.data(), channel.data());
    EXPECT_EQ(place[33], 2) << level_name(level);
    EXPECT_EQ(place[32], 0) << level_name(level);
    EXPECT_EQ(channel, (std::vector<int32_t>{0, 0, 33, 0, 33, 0})) << level_name(level);
  }
}

TEST(ImageGate, ANotANumberReachesTheMeansAndBreaksNothing) {
  constexpr int64_t kChannels = 20, kPlaces = 9;
  Guarded x = Guarded::random(kPlaces * kChannels, 1);
  x[3 * kChannels + 7] = std::numeric_limits<float>::quiet_NaN();
  for (int64_t c = 0; c < kChannels; ++c) x[5 * kChannels + c] = std::numeric_limits<float>::quiet_NaN();
  for (const Level level : available_levels()) {
    Guarded mean(kChannels), max(kChannels), maps(2 * kPlaces);
    std::vector<int32_t> place(kChannels, -1), channel(kPlaces, -1);
    channel_gate_kernels(level).pool(x.data(), kPlaces, kChannels, mean.data(), max.data(), place.data());
    spatial_gate_kernels(level).pool(x.data(), kPlaces, kChannels, maps.data(), channel.data());
    EXPECT_TRUE(std::isnan(mean[7]) && std::isnan(maps[2 * 3]) && std::isnan(maps[2 * 5]))
        << level_name(level);
    for (const int32_t p : place) EXPECT_TRUE(p >= 0 && p < kPlaces) << level_name(level);
    for (const int32_t c : channel) EXPECT_TRUE(c >= 0 && c < kChannels) << level_name(level);
  }
}

TEST(ImageGate, NoImagesGiveGradientsOfZero) {
  Gates none({0, 3, 3, 4}, 2, 3, 3);
  for (Guarded* array : {&none.d_weight1, &none.d_bias2, &none.d_weight})
    for (float& value : *array) value = 1;
  none.run(current_level());
  for (Guarded* array : {&none.d_weight1, &none.d_bias2, &none.d_weight})
    for (const float value : *array) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace fovea::kernels
