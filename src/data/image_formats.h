// What decode_image() chooses from, and what its formats share. Each throws Error beginning with `where`.
#pragma once

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/images.h"

namespace fovea::data {

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& where, const DecodeOptions& options);
Image decode_png(std::span<const std::byte> bytes, const std::string& where, const DecodeOptions& options);

// Before memory is taken for the pixels. whole: the format keeps the picture in memory while it is read.
inline void check_pixels(int64_t height, int64_t width, bool whole, const std::string& where,
                         const DecodeOptions& options) {
  require(height > 0 && width > 0, where, ": a picture without pixels");
  require(height <= options.max_pixels / width, where, ": ", width, " x ", height, " pixels, wanted at most ",
          options.max_pixels, " in all");
  require(!whole || height <= kMaxWholePixels / width, where, ": ", width, " x ", height,
          " pixels, wanted at most ", kMaxWholePixels, " of an interlaced PNG or a progressive JPEG");
}

// The whole factor by which height x width can be shrunk and still covers what is wanted.
inline int64_t shrink_factor(int64_t height, int64_t width, const DecodeOptions& options) {
  if (options.cover_height <= 0 || options.cover_width <= 0) return 1;
  return std::max<int64_t>(1, std::min(height / options.cover_height, width / options.cover_width));
}

// Keeps all decoding of this process within a budget of memory: waits while others hold too much of it. One
// decoder alone always goes on.
class DecodingMemory {
 public:
  explicit DecodingMemory(uint64_t bytes);
  ~DecodingMemory();
  DecodingMemory(const DecodingMemory&) = delete;
  DecodingMemory& operator=(const DecodingMemory&) = delete;

 private:
  uint64_t bytes_;
};

// Rows of red, green and blue, top to bottom, into a picture shrunk by a whole factor: each pixel the mean of
// factor x factor, fewer at the right and lower edges.
class Shrinker {
 public:
  Shrinker(int64_t height, int64_t width, int64_t factor);
  // row: [width, 3]
  void add(const uint8_t* row);
  // After the last row.
  Image take() { return std::move(image_); }
  // Bytes of the result, for DecodingMemory.
  static uint64_t bytes(int64_t height, int64_t width, int64_t factor);

 private:
  void finish_rows();

  int64_t height_, width_, factor_;
  int64_t rows_ = 0, done_ = 0;  // in the sums; in all
  std::vector<uint64_t> sums_;   // [width of the result, 3]
  Image image_;
};

}  // namespace fovea::data
