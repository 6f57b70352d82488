// Depthwise convolution, forward and both gradients: prepares lines of each image and calls the kernels of the
// instruction set.
#include "kernels/conv/conv_depthwise.h"

#include "base/parallel.h"
#include "kernels/conv/conv_axis.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

// Several filters to a channel: x is spread, each channel as often as it has filters, and everything below
// sees as many channels as filters.
int64_t copies(const ConvShape& s) {
  return s.filters / s.channels;
}

// Rows of an image of x that scratch holds spread, floats.
int64_t spread_floats(const ConvShape& s) {
  return s.height * s.width * s.filters;
}

void spread(const ConvShape& s, const float* x, float* to) {
  const int64_t values = s.height * s.width * s.channels, times = copies(s);
  for (int64_t i = 0; i < values; ++i)
    for (int64_t j = 0; j < times; ++j) to[i * times + j] = x[i];
}

// The transpose: channels that were spread are summed.
void gather(const ConvShape& s, const float* from, float* x) {
  const int64_t values = s.height * s.width * s.channels, times = copies(s);
  for (int64_t i = 0; i < values; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < times; ++j) sum += from[i * times + j];
    x[i] = sum;
  }
}

// Lines that run down instead of across, as the edges of an image do better.
constexpr int64_t kShort = 3;
void turn(DepthwiseLines& l) {
  std::swap(l.lines, l.count);
  std::swap(l.x_line, l.x_step);
  std::swap(l.y_line, l.y_step);
  std::swap(l.rows, l.taps);
  std::swap(l.x_row, l.x_tap);
  std::swap(l.weight_row, l.weight_tap);
}

// Depthwise lines of one image; x: [rows.inputs, columns.inputs, channels], y: [..., out_width, channels].
struct Image {
  const ConvKernels& kernels;
  int64_t channels, width, out_width;
  const float* bias;

  void operator()(const ConvAxis& down, const ConvAxis& across, const ConvSpan& rows, const float* x,
                  const float* weight, float* y) const {
    const int64_t x_row = width * channels, y_row = out_width * channels;
    for_each_span(down, rows, [&](const ConvSpan& own_rows, const ConvSpan& row_taps) {
      for_each_span(across, {0, across.places}, [&](const ConvSpan& columns, const ConvSpan& column_taps) {
        const bool some = row_taps.count() > 0 && column_taps.count() > 0;
        const int64_t row = down.origin + own_rows.begin * down.stride + row_taps.begin * down.dilation;
        const int64_t column =
            across.origin + columns.begin * across.stride + column_taps.begin * across.dilation;
        DepthwiseLines lines{.lines = own_rows.count(),
                             .x_line = down.stride * x_row,
                             .y_line = down.step * y_row,
                             .count = columns.count(),
                             .x_step = across.stride * channels,
                             .y_step = across.step * channels,
                             .rows = some ? row_taps.count() : 0,
                             .x_row = down.dilation * x_row,
                             .weight_row = across.taps * channels,
                             .taps = some ? column_taps.count() : 0,
                             .x_tap = across.dilation * channels,
                             .weight_tap = channels,
                             .channels = channels,
                             .x = some ? x + row * x_row + column * channels : x,
                             .weight = weight + (row_taps.begin * across.taps + column_taps.begin) * channels,
                             .bias = bias,
                             .y = y + (down.first + own_rows.begin * down.step) * y_row +
                                  (across.first + columns.begin * across.step) * channels};
        if (lines.count < lines.lines && lines.count < kShort) turn(lines);
        kernels.depthwise_lines(lines);
      });
    });
  }
};

// [taps][filters], the taps of a phase in the order of its axes.
float* pack(const ConvShape& s, const ConvAxis& down, const ConvAxis& across, const float* weight,
            float* to) {
  for (int64_t row = 0; row < down.taps; ++row)
    for (int64_t column = 0; column < across.taps; ++column, to += s.filters) {
      const float* const tap = weight + (down.kernel_first + row * down.kernel_step) * s.kernel_w +
                               across.kernel_first + column * across.kernel_step;
      for (int64_t f = 0; f < s.filters; ++f) to[f] = tap[f * s.kernel_h * s.kernel_w];
    }
  return to;
}

int64_t work_of_image(const ConvShape& s) {
  return 8 * s.out_height() * s.out_width() * s.weights();  // bound by memory
}

}  // namespace

void depthwise_conv_forward(const ConvForward& args, const ConvKernels& kernels) {
  const ConvShape& s = args.shape;
  const ConvAxis down = forward_axis(row_sizes(s)), across = forward_axis(column_sizes(s));
  float* const bias = scratch_floats(3, s.filters + s.weights());
  if (args.bias != nullptr)
    std::copy_n(args.bias, s.filters, bias);
  else
    std::fill_n(bias, s.filters, 0.0f);
  float* const weight = bias + s.filters;
  pack(s, down, across, args.weight, weight);
  const Image image{kernels, s.filters, s.width, s.out_width(), bias};
  const ConvCut cut = cut_images(s.images, work_of_image(s), copies(s) > 1 ? 1 : down.places);
  parallel_chunks(cut.chunks(s.images), [&](int64_t number) {
    const ConvChunk chunk = chunk_of(cut, s.images, number);
    for (int64_t i = chunk.images.begin; i < chunk.images.end; ++i) {
      const float* x = args.x + i * s.height * s.width * s.channels;
      if (copies(s) > 1) {
        float* const wide = scratch_floats(2, spread_floats(s));
        spread(s, x, wide);
        x = wide;
      }
      image(down, across, chunk.rows(down.places), x, weight,
            args.y + i * s.out_height() * s.out_width() * s.filters);
    }
  });
}

void depthwise_conv_backward_data(const ConvBackwardData& args, const ConvKernels& kernels) {
  const ConvShape& s = args.shape;
  const ConvSizes rows = row_sizes(s), columns = column_sizes(s);
  const int64_t column_phases = phases(columns), all_phases = phases(rows) * column_phases;
  const auto down = [&](int64_t phase) { return backward_axis(rows, phase / column_phases); };
  const auto across = [&](int64_t phase) { return backward_axis(columns, phase % column_phases); };
  float* const bias = scratch_floats(3, s.filters + s.weights());
  std::fill_n(bias, s.filters, 0.0f);
  float* packed = bias + s.filters;
  for (int64_t phase = 0; phase < all_phases; ++phase)
    packed = pack(s, down(phase), across(phase), args.weight, packed);
  const Image image{kernels, s.filters, s.out_width(), s.width, bias};
  const ConvCut cut = cut_images(s.images, work_of_image(s), copies(s) > 1 ? 1 : s.height / s.stride_h);
  // Few rows at a time, which stay near while the phases pass.
  const int64_t strips = all_phases > 1 ? std::max<int64_t>(1, s.out_height() / cut.stripes / 8) : 1;
  parallel_chunks(cut.chunks(s.images), [&](int64_t number) {
    const ConvChunk chunk = chunk_of(cut, s.images, number);
    for (int64_t i = chunk.images.begin; i < chunk.images.end; ++i) {
      float* const dx = args.dx + i * s.height * s.width * s.channels;
      float* const to = copies(s) > 1 ? scratch_floats(2, spread_floats(s)) : dx;
      for (int64_t strip = 0; strip < strips; ++strip) {
        const float* weight = bias + s.filters;
        for (int64_t phase = 0; phase < all_phases; ++phase) {
          const ConvAxis own_rows = down(phase), own_columns = across(phase);
          image(own_rows, own_columns, chunk.strip(strip, strips).rows(own_rows.places),
                args.dy + i * s.out_height() * s.out_width() * s.filters, weight, to);
          weight += own_rows.taps * own_columns.taps * s.filters;
        }
      }
      if (copies(s) > 1) gather(s, to, dx);
    }
  });
}

namespace {

// sums: [kernel_h][kernel_w][filters]; x and dy of one image.
void add_image(const ConvShape& s, const ConvKernels& kernels, const ConvSpan& rows, const float* x,
               const float* dy, float* sums) {
  constexpr int64_t kBlockFloats = 1 << 15;  // that stay near while the channels pass
  const ConvAxis down = forward_axis(row_sizes(s)), across = forward_axis(column_sizes(s));
  const int64_t x_row = s.width * s.filters, dy_row = s.out_width() * s.filters;
  const int64_t strip = std::max<int64_t>(4, kBlockFloats / (x_row + dy_row));
  for (int64_t first = rows.begin; first < rows.end; first += strip) {
    const ConvSpan some{first, std::min(rows.end, first + strip)};
    for_each_span(down, some, [&](const ConvSpan& own_rows, const ConvSpan& row_taps) {
      for_each_span(across, {0, across.places}, [&](const ConvSpan& columns, const ConvSpan& column_taps) {
        if (row_taps.count() == 0 || column_taps.count() == 0) return;
        const int64_t row = down.origin + own_rows.begin * down.stride + row_taps.begin * down.dilation;
        const int64_t column =
            across.origin + columns.begin * across.stride + column_taps.begin * across.dilation;
        kernels.depthwise_sum({.rows = row_taps.count(),
                               .x_row = down.dilation * x_row,
                               .sum_row = s.kernel_w * s.filters,
                               .taps = column_taps.count(),
                               .x_tap = across.dilation * s.filters,
                               .lines = own_rows.count(),
                               .x_line = down.stride * x_row,
                               .dy_line = dy_row,
                               .count = columns.count(),
                               .x_step = across.stride * s.filters,
                               .dy_step = s.filters,
                               .channels = s.filters,
                               .x = x + row * x_row + column * s.filters,
                               .dy = dy + own_rows.begin * dy_row + columns.begin * s.filters,
                               .sum = sums + (row_taps.begin * s.kernel_w + column_taps.begin) * s.filters});
      });
    });
  }
}

}  // namespace

void depthwise_conv_backward_weights(const ConvBackwardWeights& args, const ConvKernels& kernels) {
  constexpr int64_t kMostChunks = 16;
  const ConvShape& s = args.shape;
  ConvCut cut = cut_images(s.images, work_of_image(s), copies(s) > 1 ? 1 : s.out_height());
  cut.images = std::max(cut.images, ceil_div(s.images, kMostChunks));
  const int64_t chunks = cut.chunks(s.images), floats = s.weights();
  float* const sums = scratch_floats(3, chunks * floats);
  parallel_chunks(chunks, [&](int64_t number) {
    float* const own = sums + number * floats;
    std::fill_n(own, floats, 0.0f);
    const ConvChunk chunk = chunk_of(cut, s.images, number);
    for (int64_t i = chunk.images.begin; i < chunk.images.end; ++i) {
      const float* x = args.x + i * s.height * s.width * s.channels;
      if (copies(s) > 1) {
        float* const wide = scratch_floats(2, spread_floats(s));
        spread(s, x, wide);
        x = wide;
      }
      add_image(s, kernels, chunk.rows(s.out_height()), x,
                args.dy + i * s.out_height() * s.out_width() * s.filters, own);
    }
  });
  // In the order of the chunks, whoever made them.
  for (int64_t chunk = 1; chunk < chunks; ++chunk)
    for (int64_t i = 0; i < floats; ++i) sums[i] += sums[chunk * floats + i];
  const int64_t kernel = s.kernel_h * s.kernel_w;
  for (int64_t tap = 0; tap < kernel; ++tap)
    for (int64_t f = 0; f < s.filters; ++f) args.d_weight[f * kernel + tap] = sums[tap * s.filters + f];
}

}  // namespace fovea::kernels
