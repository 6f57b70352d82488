// Dense convolution and the gradient of its images as one algorithm: packs weights in panels and runs them over pieces
// of images.
#include "kernels/conv/conv_dense.h"

#include "base/parallel.h"
#include "kernels/conv/conv_axis.h"
#include "kernels/conv/conv_panels.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

// A convolution, or the gradient of x as one: x: [images, height, width, groups * in] -> y: [images,
// out_height, out_width, groups * out]. The places of y come in phases, each a convolution of its own: one
// forward, up to stride_h * stride_w for the gradient.
struct DenseConv {
  bool backward;
  ConvSizes rows, columns;
  int64_t images, groups, in, out;
  int64_t weight_in, weight_out;  // from one channel of x, or of y, to the next
  const float* x;
  const float* weight;
  const float* bias;
  float* y;

  int64_t height() const { return backward ? rows.outputs : rows.inputs; }
  int64_t width() const { return backward ? columns.outputs : columns.inputs; }
  int64_t out_height() const { return backward ? rows.inputs : rows.outputs; }
  int64_t out_width() const { return backward ? columns.inputs : columns.outputs; }
  int64_t kernel() const { return rows.kernel * columns.kernel; }
  int64_t work() const { return rows.outputs * columns.outputs * kernel() * groups * in * out; }
  int64_t phases() const { return backward ? kernels::phases(rows) * kernels::phases(columns) : 1; }
};

// One phase.
struct Axes {
  Axes(const DenseConv& c, int64_t phase)
      : rows(c.backward ? backward_axis(c.rows, phase / phases(c.columns)) : forward_axis(c.rows)),
        columns(c.backward ? backward_axis(c.columns, phase % phases(c.columns)) : forward_axis(c.columns)) {}
  int64_t taps() const { return rows.taps * columns.taps; }
  ConvAxis rows, columns;
};

DenseConv as_dense(const ConvForward& args) {
  const ConvShape& s = args.shape;
  const int64_t taps = s.kernel_h * s.kernel_w, in = s.channels / s.groups;
  return {.backward = false,
          .rows = row_sizes(s),
          .columns = column_sizes(s),
          .images = s.images,
          .groups = s.groups,
          .in = in,
          .out = s.filters / s.groups,
          .weight_in = taps,
          .weight_out = in * taps,
          .x = args.x,
          .weight = args.weight,
          .bias = args.bias,
          .y = args.y};
}

DenseConv as_dense(const ConvBackwardData& args) {
  const ConvShape& s = args.shape;
  const int64_t taps = s.kernel_h * s.kernel_w, out = s.channels / s.groups;
  return {.backward = true,
          .rows = row_sizes(s),
          .columns = column_sizes(s),
          .images = s.images,
          .groups = s.groups,
          .in = s.filters / s.groups,
          .out = out,
          .weight_in = out * taps,
          .weight_out = taps,
          .x = args.dy,
          .weight = args.weight,
          .bias = nullptr,
          .y = args.dx};
}

// The weights of all phases; of a phase, for each group and panel the bias, then [row][column][in][filters].
class PackedWeights {
 public:
  PackedWeights(const DenseConv& c, const ConvPanels& panels) : c_(c), panels_(panels) {
    const int64_t floats = panels.vectors * panels.lanes * c.groups;
    packed_ = scratch_floats(3, (c.phases() + c.kernel() * c.in) * floats);
    float* to = packed_;
    for (int64_t phase = 0; phase < c.phases(); ++phase) {
      const Axes axes(c, phase);
      for (int64_t group = 0; group < c.groups; ++group)
        for (int64_t panel = 0; panel < panels.count; ++panel) to = pack(axes, group, panel, to);
    }
  }
  // The first phase's; each is followed by the next.
  const float* data() const { return packed_; }

 private:
  float* pack(const Axes& axes, int64_t group, int64_t panel, float* to) const {
    const int64_t first = panels_.begin(panel), filters = panels_.filters(panel);
    const int64_t wide = panels_.floats(panel);
    for (int64_t f = 0; f < wide; ++f)
      to[f] = c_.bias != nullptr && f < filters ? c_.bias[group * c_.out + first + f] : 0;
    to += wide;
    const float* const weight = c_.weight + group * c_.in * c_.out * c_.kernel() + first * c_.weight_out;
    const ConvAxis &rows = axes.rows, &columns = axes.columns;
    for (int64_t row = 0; row < rows.taps; ++row)
      for (int64_t column = 0; column < columns.taps; ++column) {
        const float* const tap = weight + (rows.kernel_first + row * rows.kernel_step) * c_.columns.kernel +
                                 columns.kernel_first + column * columns.kernel_step;
        for (int64_t i = 0; i < c_.in; ++i, to += wide) {
          for (int64_t f = 0; f < filters; ++f) to[f] = tap[i * c_.weight_in + f * c_.weight_out];
          std::fill(to + filters, to + wide, 0.0f);
        }
      }
    return to;
  }
  const DenseConv& c_;
  const ConvPanels& panels_;
  float* packed_;
};

// One panel of one group in one phase.
struct PanelConv {
  const DenseConv& c;
  const ConvDense& kernels;
  const Axes& axes;
  int64_t group, first, filters;
  int vectors;
  const float* packed;

  // Places that see the same taps: images by rows by columns. A line runs along the columns if there are
  // some, for they lie side by side, else along the longest way: the edges of an image run down, its corners
  // through several images.
  struct Block {
    ConvSpan images, rows, row_taps, columns, column_taps;
  };
  void operator()(const Block& block) const {
    constexpr int64_t kSome = 6;
    const auto& [images, rows, row_taps, columns, column_taps] = block;
    const ConvAxis &down = axes.rows, &across = axes.columns;
    const int64_t features = c.groups * c.in, all = c.groups * c.out, wide = vectors * kernels.lanes;
    const int64_t x_row = c.width() * features, x_image = c.height() * x_row;
    const int64_t y_row = c.out_width() * all, y_image = c.out_height() * y_row;
    struct Way {
      int64_t count, x, y;
    };
    Way along{columns.count(), across.stride * features, across.step * all};
    Way second{rows.count(), down.stride * x_row, down.step * y_row}, third{images.count(), x_image, y_image};
    if (along.count < std::min(kSome, second.count)) std::swap(along, second);
    if (along.count < std::min(kSome, third.count)) std::swap(along, third);
    // Columns that are neighbours are one run of floats.
    const bool joined = across.dilation == 1 && c.groups == 1;
    const bool some = row_taps.count() > 0 && column_taps.count() > 0;
    ConvLines lines{
        .lines = second.count,
        .x_line = second.x,
        .y_line = second.y,
        .count = along.count,
        .x_step = along.x,
        .y_step = along.y,
        .rows = some ? row_taps.count() : 0,
        .x_row = down.dilation * x_row,
        .weight_row = across.taps * c.in * wide,
        .runs = joined ? 1 : column_taps.count(),
        .x_run = across.dilation * features,
        .weight_run = c.in * wide,
        .length = joined ? column_taps.count() * c.in : c.in,
        .weight = packed + wide + (row_taps.begin * across.taps + column_taps.begin) * c.in * wide,
        .bias = packed,
        .vectors = vectors,
        .filters = filters};
    const float* x = c.x;
    if (some)
      x += images.begin * x_image + group * c.in +
           (down.origin + rows.begin * down.stride + row_taps.begin * down.dilation) * x_row +
           (across.origin + columns.begin * across.stride + column_taps.begin * across.dilation) * features;
    float* const y = c.y + images.begin * y_image + (down.first + rows.begin * down.step) * y_row +
                     (across.first + columns.begin * across.step) * all + group * c.out + first;
    for (int64_t i = 0; i < third.count; ++i) {
      lines.x = some ? x + i * third.x : x;
      lines.y = y + i * third.y;
      kernels.lines(lines);
    }
  }
};

// Some images and rows, group by group and panel by panel.
void run_strip(const DenseConv& c, const ConvDense& kernels, const ConvPanels& panels, const Axes& axes,
               const float* packed, const ConvSpan& images, const ConvSpan& rows) {
  for (int64_t group = 0; group < c.groups; ++group)
    for (int64_t panel = 0; panel < panels.count; ++panel) {
      const PanelConv run{
          c, kernels, axes, group, panels.begin(panel), panels.filters(panel), panels.width(panel), packed};
      for_each_span(axes.rows, rows, [&](const ConvSpan& some_rows, const ConvSpan& row_taps) {
        for_each_span(axes.columns, {0, axes.columns.places},
                      [&](const ConvSpan& columns, const ConvSpan& column_taps) {
                        run({images, some_rows, row_taps, columns, column_taps});
                      });
      });
      packed += panels.floats(panel) * (1 + axes.taps() * c.in);
    }
}

// The images and rows of a chunk, in pieces that stay in the second cache while panels and phases pass.
void run_chunk(const DenseConv& c, const ConvDense& kernels, const ConvPanels& panels, const float* packed,
               const ConvChunk& chunk) {
  constexpr int64_t kFloats = 1 << 15, kLeastRows = 8;
  const int64_t row_floats = std::max<int64_t>(1, c.width() * c.groups * c.in),
                floats = c.height() * row_floats;
  const bool once = panels.count * c.groups * c.phases() == 1;
  const int64_t images =
      once ? chunk.images.count() : std::max<int64_t>(1, kFloats / std::max<int64_t>(1, floats));
  const int64_t rows = ceil_div(c.backward ? c.rows.inputs : c.rows.outputs, c.backward ? c.rows.stride : 1);
  const int64_t strips = std::clamp<int64_t>(floats / chunk.stripes / kFloats, 1,
                                             std::max<int64_t>(1, rows / chunk.stripes / kLeastRows));
  for (int64_t image = chunk.images.begin; image < chunk.images.end; image += images) {
    const ConvSpan own{image, std::min(chunk.images.end, image + images)};
    for (int64_t strip = 0; strip < strips; ++strip) {
      const ConvChunk piece = chunk.strip(strip, strips);
      const float* weights = packed;
      for (int64_t phase = 0; phase < c.phases(); ++phase) {
        const Axes axes(c, phase);
        run_strip(c, kernels, panels, axes, weights, own, piece.rows(axes.rows.places));
        weights += c.groups * panels.vectors * panels.lanes * (1 + axes.taps() * c.in);
      }
    }
  }
}

void run(const DenseConv& c, const ConvKernels& all_kernels) {
  const ConvDense& kernels = width_for(all_kernels, c.out);
  const ConvPanels panels(c.out, kernels.lanes, kernels.line_vectors);
  const PackedWeights packed(c, panels);
  const ConvCut cut = cut_images(c.images, c.work(), c.out_height());
  parallel_chunks(cut.chunks(c.images), [&](int64_t number) {
    run_chunk(c, kernels, panels, packed.data(), chunk_of(cut, c.images, number));
  });
}

}  // namespace

void dense_conv_forward(const ConvForward& args, const ConvKernels& kernels) {
  run(as_dense(args), kernels);
}

void dense_conv_backward_data(const ConvBackwardData& args, const ConvKernels& kernels) {
  run(as_dense(args), kernels);
}

}  // namespace fovea::kernels
