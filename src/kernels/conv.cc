#include "kernels/conv.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/conv_primitive.h"
#include "kernels/elementwise.h"
#include "kernels/gemm.h"
#include "kernels/reduce.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t out_places(const ConvShape& s) {
  return s.images * s.out_height() * s.out_width();
}

// 1 x 1 over every place: rows of features times a matrix.
bool is_product(const ConvShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.groups == 1 &&
         s.top == 0 && s.bottom == 0 && s.left == 0 && s.right == 0;
}

// Multiply-adds for one image.
int64_t work_of_image(const ConvShape& s) {
  return std::max<int64_t>(1, s.out_height() * s.out_width() * s.weights());
}

// Scratch that begins with a cache line, as oneDNN likes it.
float* line_of_scratch(int slot, int64_t floats) {
  float* const memory = scratch_floats(slot, floats + 15);
  return memory + (16 - reinterpret_cast<uintptr_t>(memory) / sizeof(float) % 16) % 16;
}

constexpr int64_t kChunkWork = int64_t{1} << 22;  // multiply-adds that make a chunk worth handing out

// How images and rows of y are cut, by shape alone.
struct Cut {
  int64_t images, rows;
  int64_t chunks(const ConvShape& s) const {
    return ceil_div(s.images, images) * ceil_div(s.out_height(), rows);
  }
};

Cut cut_images(const ConvShape& s) {
  return {std::clamp<int64_t>(kChunkWork / work_of_image(s), 1, s.images), s.out_height()};
}

// A few large images are cut into stripes of rows too, so that one picture keeps several cores busy.
Cut cut_images_and_rows(const ConvShape& s) {
  constexpr int64_t kFewImages = 8, kMostStripes = 8, kLeastRows = 4;
  Cut cut = cut_images(s);
  if (s.images > kFewImages || cut.images > 1) return cut;
  const int64_t stripes = std::clamp<int64_t>(work_of_image(s) / kChunkWork, 1, kMostStripes);
  cut.rows = std::min(s.out_height(), std::max(kLeastRows, ceil_div(s.out_height(), stripes)));
  return cut;
}

// One chunk: a convolution of its own, and where it begins.
struct Chunk {
  ConvShape shape;
  int64_t x, y;  // first element
};

Chunk chunk_of(const ConvShape& s, const Cut& cut, int64_t number) {
  const int64_t stripes = ceil_div(s.out_height(), cut.rows);
  const int64_t image = number / stripes * cut.images, row = number % stripes * cut.rows;
  const int64_t rows = std::min(cut.rows, s.out_height() - row);
  // Rows of x that these rows of y see; those outside the image are padding.
  const int64_t first = row * s.stride_h - s.top;
  const int64_t last = first + (rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
  Chunk chunk{s, 0, 0};
  chunk.shape.images = std::min(cut.images, s.images - image);
  if (rows < s.out_height()) {
    chunk.shape.top = std::max<int64_t>(0, -first);
    chunk.shape.bottom = std::max<int64_t>(0, last - s.height);
    chunk.shape.height = std::min(last, s.height) - std::max<int64_t>(0, first);
  }
  chunk.x =
      (image * s.height + (rows < s.out_height() ? std::max<int64_t>(0, first) : 0)) * s.width * s.channels;
  chunk.y = (image * s.out_height() + row) * s.out_width() * s.filters;
  return chunk;
}

// The weights as each shape of chunk wants them: packed once, mostly in one way for all.
class PackedWeights {
 public:
  PackedWeights(ConvPass pass, const ConvShape& s, const Cut& cut, bool with_bias, const float* weight) {
    for (int64_t i = 0; i < cut.chunks(s); ++i) {
      const ConvShape shape = chunk_of(s, cut, i).shape;
      if (find(shape) != nullptr) continue;
      FOVEA_ASSERT(count_ < static_cast<int>(entries_.size()));
      entries_[count_++] = {shape, nullptr, 0};
    }
    int64_t floats = 0;
    for (int i = 0; i < count_; ++i) {
      const ConvPrimitive& own = conv_primitive(pass, entries_[i].shape, with_bias);
      int like = 0;
      while (!own.packs_like(conv_primitive(pass, entries_[like].shape, with_bias))) ++like;
      entries_[i].offset = like < i ? entries_[like].offset : floats;
      if (like == i) floats += ceil_div(own.packed_floats(), 16) * 16;
    }
    float* const memory = line_of_scratch(3, floats);
    int64_t packed = 0;
    for (int i = 0; i < count_; ++i) {
      entries_[i].data = memory + entries_[i].offset;
      if (entries_[i].offset < packed) continue;
      ConvPrimitive& own = conv_primitive(pass, entries_[i].shape, with_bias);
      own.pack(weight, memory + entries_[i].offset);
      packed = entries_[i].offset + own.packed_floats();
    }
  }
  const float* of(const ConvShape& shape) const { return find(shape)->data; }

 private:
  struct Entry {
    ConvShape shape;
    const float* data;
    int64_t offset;
  };
  const Entry* find(const ConvShape& shape) const {
    for (int i = 0; i < count_; ++i)
      if (entries_[i].shape == shape) return &entries_[i];
    return nullptr;
  }
  std::array<Entry, 16> entries_;
  int count_ = 0;
};

void product_forward(const ConvForward& args) {
  const ConvShape& s = args.shape;
  const int64_t rows = out_places(s);
  gemm({.transpose_b = true,
        .m = rows,
        .n = s.filters,
        .k = s.channels,
        .a = args.x,
        .lda = s.channels,
        .b = args.weight,
        .ldb = s.channels,
        .c = args.y,
        .ldc = s.filters});
  if (args.bias == nullptr) return;
  bias_activation({.rows = rows, .columns = s.filters, .x = args.y, .bias = args.bias, .y = args.y});
}

void product_backward_data(const ConvBackwardData& args) {
  const ConvShape& s = args.shape;
  gemm({.m = out_places(s),
        .n = s.channels,
        .k = s.filters,
        .a = args.dy,
        .lda = s.filters,
        .b = args.weight,
        .ldb = s.channels,
        .c = args.dx,
        .ldc = s.channels});
}

void product_backward_weights(const ConvBackwardWeights& args) {
  const ConvShape& s = args.shape;
  gemm({.transpose_a = true,
        .m = s.filters,
        .n = s.channels,
        .k = out_places(s),
        .a = args.dy,
        .lda = s.filters,
        .b = args.x,
        .ldb = s.channels,
        .c = args.d_weight,
        .ldc = s.channels});
  if (args.d_bias != nullptr) sum_axis(args.dy, {1, out_places(s), s.filters}, args.d_bias);
}

// Chunks whose gradients of the weights are kept apart until they are summed: enough for some cores, as far
// as memory allows.
int64_t images_of_weight_chunk(const ConvShape& s) {
  constexpr int64_t kMostFloats = int64_t{1} << 24, kMostChunks = 16, kLeastChunks = 4;
  const int64_t most = std::clamp(kMostFloats / std::max<int64_t>(1, s.weights()), kLeastChunks, kMostChunks);
  return std::max(cut_images(s).images, ceil_div(s.images, most));
}

}  // namespace

void conv_forward(const ConvForward& args) {
  const ConvShape& s = args.shape;
  if (out_places(s) == 0) return;
  if (is_product(s)) return product_forward(args);
  const bool with_bias = args.bias != nullptr;
  const Cut cut = cut_images_and_rows(s);
  const PackedWeights weights(ConvPass::forward, s, cut, with_bias, args.weight);
  parallel_chunks(cut.chunks(s), [&](int64_t number) {
    const Chunk chunk = chunk_of(s, cut, number);
    conv_primitive(ConvPass::forward, chunk.shape, with_bias)
        .run({args.x + chunk.x, args.y + chunk.y, weights.of(chunk.shape), args.bias});
  });
}

void conv_backward_data(const ConvBackwardData& args) {
  const ConvShape& s = args.shape;
  if (s.images == 0) return;
  if (is_product(s)) return product_backward_data(args);
  const Cut cut = cut_images(s);
  const PackedWeights weights(ConvPass::backward_data, s, cut, false, args.weight);
  parallel_chunks(cut.chunks(s), [&](int64_t number) {
    const Chunk chunk = chunk_of(s, cut, number);
    conv_primitive(ConvPass::backward_data, chunk.shape, false)
        .run({args.dx + chunk.x, args.dy + chunk.y, weights.of(chunk.shape), nullptr});
  });
}

void conv_backward_weights(const ConvBackwardWeights& args) {
  const ConvShape& s = args.shape;
  if (out_places(s) == 0) {
    std::fill_n(args.d_weight, s.weights(), 0.0f);
    if (args.d_bias != nullptr) std::fill_n(args.d_bias, s.filters, 0.0f);
    return;
  }
  if (is_product(s)) return product_backward_weights(args);
  const bool with_bias = args.d_bias != nullptr;
  const Cut cut{images_of_weight_chunk(s), s.out_height()};
  const int64_t chunks = cut.chunks(s), stride = s.weights() + (with_bias ? s.filters : 0);
  float* const sums = scratch_floats(3, chunks * stride);
  parallel_chunks(chunks, [&](int64_t number) {
    const Chunk chunk = chunk_of(s, cut, number);
    ConvPrimitive& primitive = conv_primitive(ConvPass::backward_weights, chunk.shape, with_bias);
    // The calling thread works too: its chunk's packed gradient must not lie where the sums do.
    float* const packed = line_of_scratch(2, primitive.packed_floats());
    float* const sum = sums + number * stride;
    primitive.run({args.x + chunk.x, args.dy + chunk.y, packed, with_bias ? sum + s.weights() : nullptr});
    primitive.unpack(packed, sum);
  });
  // In the order of the chunks, whoever made them.
  parallel_for(stride, 16384, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = 1; chunk < chunks; ++chunk)
      for (int64_t i = begin; i < end; ++i) sums[i] += sums[chunk * stride + i];
  });
  std::copy_n(sums, s.weights(), args.d_weight);
  if (with_bias) std::copy_n(sums + s.weights(), s.filters, args.d_bias);
}

}  // namespace fovea::kernels
