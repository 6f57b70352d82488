// One axis of a convolution as its loops see it: which inputs each place of the output reads. The gradient of
// x is a convolution too; with a stride it falls into several, one for each place within the stride.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernels/conv/conv.h"

namespace fovea::kernels {

inline int64_t ceil_div(int64_t a, int64_t b) {
  return a > 0 ? (a + b - 1) / b : -(-a / b);
}

// Tap t of place i reads input origin + i * stride + t * dilation, where there is one, and belongs to row (or
// column) kernel_first + t * kernel_step of the weights. Place i is written to output first + i * step.
struct ConvAxis {
  int64_t places = 0, first = 0, step = 1;
  int64_t inputs = 0;
  int64_t origin = 0, stride = 1;
  int64_t taps = 0, dilation = 1;
  int64_t kernel_first = 0, kernel_step = 1;
};

// A span of places, or of taps.
struct ConvSpan {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  friend bool operator==(const ConvSpan&, const ConvSpan&) = default;
};

// The taps of place i that read something.
inline ConvSpan taps_at(const ConvAxis& axis, int64_t place) {
  const int64_t input = axis.origin + place * axis.stride;
  const int64_t begin = std::clamp<int64_t>(ceil_div(-input, axis.dilation), 0, axis.taps);
  const int64_t end = std::clamp<int64_t>(ceil_div(axis.inputs - input, axis.dilation), begin, axis.taps);
  return {begin, end};
}

// The places at which tap t reads something.
inline ConvSpan places_of(const ConvAxis& axis, int64_t tap) {
  const int64_t input = axis.origin + tap * axis.dilation;
  const int64_t begin = std::clamp<int64_t>(ceil_div(-input, axis.stride), 0, axis.places);
  const int64_t end = std::clamp<int64_t>(ceil_div(axis.inputs - input, axis.stride), begin, axis.places);
  return {begin, end};
}

// Calls visit(places, taps) for the spans of places in `all` that read through the same taps.
template <class Visit>
void for_each_span(const ConvAxis& axis, const ConvSpan& all, Visit visit) {
  for (int64_t begin = all.begin; begin < all.end;) {
    const ConvSpan taps = taps_at(axis, begin);
    int64_t end = begin + 1;
    while (end < all.end && taps_at(axis, end) == taps) ++end;
    visit(ConvSpan{begin, end}, taps);
    begin = end;
  }
}

// Sizes along an axis, as ConvShape has them.
struct ConvSizes {
  int64_t inputs, outputs, kernel, stride, dilation, before;
};
inline ConvSizes row_sizes(const ConvShape& s) {
  return {s.height, s.out_height(), s.kernel_h, s.stride_h, s.dilation_h, s.top};
}
inline ConvSizes column_sizes(const ConvShape& s) {
  return {s.width, s.out_width(), s.kernel_w, s.stride_w, s.dilation_w, s.left};
}

inline ConvAxis forward_axis(const ConvSizes& s) {
  return {.places = s.outputs,
          .inputs = s.inputs,
          .origin = -s.before,
          .stride = s.stride,
          .taps = s.kernel,
          .dilation = s.dilation};
}

// The gradient of every stride-th x from `first` on, first < phases(): they read dy through the rows of the
// kernel that can reach them, the last row first.
inline int64_t phases(const ConvSizes& s) {
  return std::min(s.stride, s.inputs);
}
inline ConvAxis backward_axis(const ConvSizes& s, int64_t first) {
  // Kernel row k and place o of dy meet at o * stride + k * dilation = first + before, modulo the stride.
  const int64_t common = std::gcd(s.stride, s.dilation), kernel_step = s.stride / common;
  const int64_t phase = (first + s.before) % s.stride, most = std::min(kernel_step, s.kernel);
  int64_t kernel = 0;
  while (kernel < most && kernel * s.dilation % s.stride != phase) ++kernel;
  const int64_t taps = kernel < most ? (s.kernel - 1 - kernel) / kernel_step + 1 : 0;
  const int64_t last = taps > 0 ? kernel + (taps - 1) * kernel_step : 0;
  return {.places = (s.inputs - 1 - first) / s.stride + 1,
          .first = first,
          .step = s.stride,
          .inputs = s.outputs,
          .origin = taps > 0 ? (first + s.before - last * s.dilation) / s.stride : 0,
          .stride = 1,
          .taps = taps,
          .dilation = s.dilation / common,
          .kernel_first = last,
          .kernel_step = -kernel_step};
}

// How images and rows of the output are cut into chunks for threads, by shape alone.
struct ConvCut {
  int64_t images = 1;   // of a chunk
  int64_t stripes = 1;  // of an image: a few large ones keep several cores busy
  int64_t chunks(int64_t all_images) const { return ceil_div(all_images, images) * stripes; }
};

// work: multiply-adds for an image; rows: those there are to cut.
inline ConvCut cut_images(int64_t images, int64_t work, int64_t rows) {
  constexpr int64_t kWork = int64_t{1} << 22;  // makes a chunk worth handing out
  constexpr int64_t kFewImages = 8, kMostStripes = 8, kLeastRows = 4;
  const int64_t enough = ceil_div(kWork, std::max<int64_t>(1, work));
  ConvCut cut{std::clamp<int64_t>(std::max(enough, images / 32), 1, std::max<int64_t>(1, images))};
  if (images > kFewImages || enough > 1) return cut;
  cut.stripes = std::clamp<int64_t>(std::min(work / kWork, rows / kLeastRows), 1, kMostStripes);
  return cut;
}

// A chunk: its images, and its share of the rows.
struct ConvChunk {
  ConvSpan images;
  int64_t stripe, stripes;
  ConvSpan rows(int64_t all) const { return {all * stripe / stripes, all * (stripe + 1) / stripes}; }
  // The same images, strip i of n of its rows.
  ConvChunk strip(int64_t i, int64_t n) const { return {images, stripe * n + i, stripes * n}; }
};
inline ConvChunk chunk_of(const ConvCut& cut, int64_t all_images, int64_t number) {
  const int64_t image = number / cut.stripes * cut.images;
  return {{image, std::min(all_images, image + cut.images)}, number % cut.stripes, cut.stripes};
}

}  // namespace fovea::kernels
