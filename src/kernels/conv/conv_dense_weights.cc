// The gradient of the weights of a convolution with several channels to a group.
#include "base/parallel.h"
#include "kernels/conv/conv_dense.h"
#include "kernels/conv/conv_panels.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

// Few channels: those of several taps share a tile.
bool joins_taps(const ConvShape& s) {
  constexpr int64_t kFew = 8;
  return s.channels < kFew && s.groups == 1 && s.dilation_w == 1;
}

// One or two filters: taps lie in the lanes instead.
const ConvDense& sum_width_for(const ConvKernels& kernels, const ConvShape& s) {
  if (s.filters <= 2 && joins_taps(s) && s.kernel_w * s.channels > kernels.narrow.lanes) return kernels.wide;
  return width_for(kernels, s.filters / s.groups);
}

// Images and rows of dy that one chunk sums over, and the sums: [groups][row][column][channel][filters].
struct WeightSums {
  const ConvBackwardWeights& args;
  const ConvDense& kernels;
  const ConvPanels& panels;
  const ConvAxis &down, &across;
  float* sums;

  int64_t in() const { return args.shape.channels / args.shape.groups; }

  // Taps side by side in x, from column tap `first` on, at the places where all of them read something.
  struct Taps {
    int64_t group, row, first, count;  // count: floats
    ConvSpan rows, columns;
  };
  void add(const ConvSpan& images, const Taps& taps) const {
    const ConvShape& s = args.shape;
    if (taps.rows.count() <= 0 || taps.columns.count() <= 0) return;
    const int64_t x_row = s.width * s.channels, x_image = s.height * x_row;
    const int64_t dy_row = s.out_width() * s.filters, dy_image = s.out_height() * dy_row;
    const int64_t tap = (taps.group * s.kernel_h + taps.row) * s.kernel_w + taps.first;
    const int64_t x_first = down.origin + taps.rows.begin * down.stride + taps.row * down.dilation;
    const int64_t x_left = across.origin + taps.columns.begin * across.stride + taps.first * across.dilation;
    ConvSum sum{
        .taps = taps.count,
        .x = args.x + images.begin * x_image + x_first * x_row + x_left * s.channels + taps.group * in(),
        .images = images.count(),
        .x_image = x_image,
        .dy_image = dy_image,
        .rows = taps.rows.count(),
        .x_row = down.stride * x_row,
        .dy_row = dy_row,
        .columns = taps.columns.count(),
        .x_column = across.stride * s.channels,
        .dy_column = s.filters,
        .stride = panels.vectors * panels.lanes};
    const float* const dy = args.dy + images.begin * dy_image + taps.rows.begin * dy_row +
                            taps.columns.begin * s.filters + taps.group * panels.all;
    for (int64_t panel = 0; panel < panels.count; ++panel) {
      sum.dy = dy + panels.begin(panel);
      sum.vectors = panels.width(panel);
      sum.filters = panels.filters(panel);
      sum.sum = sums + tap * in() * sum.stride + panels.begin(panel);
      kernels.sum(sum);
    }
  }

  void add_block(const ConvSpan& images, const ConvSpan& rows) const {
    const ConvShape& s = args.shape;
    for (int64_t group = 0; group < s.groups; ++group)
      for (int64_t row = 0; row < s.kernel_h; ++row) {
        const ConvSpan all = places_of(down, row);
        const ConvSpan own{std::max(all.begin, rows.begin), std::min(all.end, rows.end)};
        if (joins_taps(s)) {
          for_each_span(across, {0, across.places}, [&](const ConvSpan& columns, const ConvSpan& taps) {
            if (taps.count() > 0) add(images, {group, row, taps.begin, taps.count() * in(), own, columns});
          });
        } else {
          for (int64_t column = 0; column < s.kernel_w; ++column)
            add(images, {group, row, column, in(), own, places_of(across, column)});
        }
      }
  }

  // In blocks that stay in the second cache while the taps pass.
  void add_chunk(const ConvChunk& chunk) const {
    constexpr int64_t kBlockFloats = 1 << 16;
    const ConvShape& s = args.shape;
    const int64_t row_floats =
        s.width * s.channels * std::min(s.stride_h, s.height) + s.out_width() * s.filters;
    const ConvSpan rows = chunk.rows(down.places);
    const int64_t strip = std::max<int64_t>(4, kBlockFloats / row_floats);
    const int64_t images =
        std::max<int64_t>(1, kBlockFloats / (row_floats * std::max<int64_t>(1, rows.count())));
    for (int64_t image = chunk.images.begin; image < chunk.images.end; image += images)
      for (int64_t row = rows.begin; row < rows.end; row += strip)
        add_block({image, std::min(chunk.images.end, image + images)},
                  {row, std::min(rows.end, row + strip)});
  }
};

// Chunks whose sums are kept apart: enough for some cores, as far as memory allows.
ConvCut cut_for_sums(const ConvShape& s, int64_t floats) {
  constexpr int64_t kMostFloats = int64_t{1} << 24, kMostChunks = 16, kLeastChunks = 4;
  const int64_t work = s.out_height() * s.out_width() * s.weights();
  const int64_t most = std::clamp(kMostFloats / std::max<int64_t>(1, floats), kLeastChunks, kMostChunks);
  ConvCut cut = cut_images(s.images, work, s.out_height());
  cut.stripes = std::min(cut.stripes, std::max<int64_t>(1, most / s.images));
  cut.images = std::max(cut.images, ceil_div(s.images, most));
  return cut;
}

}  // namespace

void dense_conv_backward_weights(const ConvBackwardWeights& args, const ConvKernels& all_kernels) {
  const ConvShape& s = args.shape;
  const ConvDense& kernels = sum_width_for(all_kernels, s);
  const ConvPanels panels(s.filters / s.groups, kernels.lanes, kernels.sum_vectors);
  const ConvAxis down = forward_axis(row_sizes(s)), across = forward_axis(column_sizes(s));
  const int64_t in = s.channels / s.groups, kernel = s.kernel_h * s.kernel_w;
  const int64_t stride = panels.vectors * panels.lanes, rows = s.groups * kernel * in;
  const ConvCut cut = cut_for_sums(s, rows * stride);
  const int64_t chunks = cut.chunks(s.images);
  float* const sums = scratch_floats(3, chunks * rows * stride);
  parallel_chunks(chunks, [&](int64_t number) {
    float* const own = sums + number * rows * stride;
    std::fill_n(own, rows * stride, 0.0f);
    WeightSums{args, kernels, panels, down, across, own}.add_chunk(chunk_of(cut, s.images, number));
  });
  // In the order of the chunks, whoever made them.
  parallel_for(rows, std::max<int64_t>(1, 16384 / stride), [&](int64_t begin, int64_t end) {
    for (int64_t chunk = 1; chunk < chunks; ++chunk)
      for (int64_t i = begin * stride; i < end * stride; ++i) sums[i] += sums[chunk * rows * stride + i];
    for (int64_t row = begin; row < end; ++row) {
      const int64_t group = row / (kernel * in), tap = row / in % kernel, channel = row % in;
      float* const to = args.d_weight + (group * panels.all * in + channel) * kernel + tap;
      for (int64_t f = 0; f < panels.all; ++f) to[f * in * kernel] = sums[row * stride + f];
    }
  });
}

}  // namespace fovea::kernels
