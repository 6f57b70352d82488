#include "kernels/conv/conv_planes.h"

#include "base/parallel.h"
#include "kernels/conv/conv_axis.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

// x: [images, down.inputs, across.inputs, in] -> y: [images, down.places, across.places, out].
struct Planes {
  ConvAxis down, across;
  int64_t images, in, out;
  const float* x;
  const float* weight;  // [in][row][column][out], in the order of the axes
  const float* bias;
  float* y;

  // What the places of y reach, from the origin on.
  int64_t height() const { return (down.places - 1) * down.stride + (down.taps - 1) * down.dilation + 1; }
  int64_t width() const { return across.places + (across.taps - 1) * across.dilation; }
  int64_t plane() const { return height() * width(); }

  void run(const ConvKernels& kernels, int64_t image) const {
    float* const planes = scratch_floats(2, in * plane() + kMostLanes);
    split(x + image * down.inputs * across.inputs * in, planes);
    ConvPlanes all{.rows = down.places,
                   .x_row = down.stride * width(),
                   .y_row = across.places * out,
                   .columns = across.places,
                   .channels = in,
                   .x_plane = plane(),
                   .tap_rows = down.taps,
                   .x_tap_row = down.dilation * width(),
                   .taps = across.taps,
                   .x_tap = across.dilation,
                   .filters = out,
                   .x = planes,
                   .weight = weight,
                   .y = y + image * down.places * across.places * out};
    for (int64_t f = 0; bias != nullptr && f < out; ++f) all.bias[f] = bias[f];
    kernels.planes(all);
  }

 private:
  // Channels apart, with zeros where there is no x.
  void split(const float* from, float* to) const {
    const int64_t left = std::clamp<int64_t>(-across.origin, 0, width());
    const int64_t end = std::clamp<int64_t>(across.inputs - across.origin, left, width());
    for (int64_t c = 0; c < in; ++c)
      for (int64_t row = 0; row < height(); ++row, to += width()) {
        const int64_t at = down.origin + row;
        if (at < 0 || at >= down.inputs) {
          std::fill_n(to, width(), 0.0f);
          continue;
        }
        const float* const own = from + (at * across.inputs + across.origin) * in + c;
        std::fill_n(to, left, 0.0f);
        for (int64_t i = left; i < end; ++i) to[i] = own[i * in];
        std::fill(to + end, to + width(), 0.0f);
      }
  }
};

void run(const ConvShape& s, Planes planes, const float* weight, int64_t weight_in, int64_t weight_out,
         const ConvKernels& kernels) {
  const ConvAxis &down = planes.down, &across = planes.across;
  float* const packed = scratch_floats(3, s.weights());
  float* to = packed;
  for (int64_t c = 0; c < planes.in; ++c)
    for (int64_t row = 0; row < down.taps; ++row)
      for (int64_t column = 0; column < across.taps; ++column)
        for (int64_t f = 0; f < planes.out; ++f)
          *to++ = weight[c * weight_in + f * weight_out +
                         (down.kernel_first + row * down.kernel_step) * s.kernel_w + across.kernel_first +
                         column * across.kernel_step];
  planes.weight = packed;
  const ConvCut cut = cut_images(s.images, s.out_height() * s.out_width() * s.weights(), 1);
  parallel_chunks(cut.chunks(s.images), [&](int64_t number) {
    const ConvSpan images = chunk_of(cut, s.images, number).images;
    for (int64_t image = images.begin; image < images.end; ++image) planes.run(kernels, image);
  });
}

}  // namespace

bool planes_conv_forward_fits(const ConvShape& s) {
  return s.filters <= kConvPlanesFilters && s.groups == 1 && s.stride_w == 1;
}

bool planes_conv_backward_data_fits(const ConvShape& s) {
  return s.channels <= kConvPlanesFilters && s.groups == 1 && s.stride_h == 1 && s.stride_w == 1;
}

void planes_conv_forward(const ConvForward& args, const ConvKernels& kernels) {
  const ConvShape& s = args.shape;
  const int64_t taps = s.kernel_h * s.kernel_w;
  run(s,
      {.down = forward_axis(row_sizes(s)),
       .across = forward_axis(column_sizes(s)),
       .images = s.images,
       .in = s.channels,
       .out = s.filters,
       .x = args.x,
       .weight = nullptr,
       .bias = args.bias,
       .y = args.y},
      args.weight, taps, s.channels * taps, kernels);
}

void planes_conv_backward_data(const ConvBackwardData& args, const ConvKernels& kernels) {
  const ConvShape& s = args.shape;
  const int64_t taps = s.kernel_h * s.kernel_w;
  run(s,
      {.down = backward_axis(row_sizes(s), 0),
       .across = backward_axis(column_sizes(s), 0),
       .images = s.images,
       .in = s.filters,
       .out = s.channels,
       .x = args.dy,
       .weight = nullptr,
       .bias = nullptr,
       .y = args.dx},
      args.weight, s.channels * taps, taps, kernels);
}

}  // namespace fovea::kernels
