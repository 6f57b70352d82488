// Pictures: JPEG and PNG to pixels, pixels to the size a network reads.
//
// Bytes come from outside. A picture's size is checked against a limit before memory is taken for it, and
// what is cut off or corrupt is one Error that names the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tensor/tensor.h"

namespace fovea::data {

// Red, green, blue of every pixel, row by row: [height, width, 3].
struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;
};

// The most pixels of a picture: 8192 x 8192.
inline constexpr int64_t kMaxPixels = int64_t{64} << 20;
// The most of one that cannot be read row by row: an interlaced PNG, a progressive JPEG.
inline constexpr int64_t kMaxWholePixels = int64_t{32} << 20;

struct DecodeOptions {
  int64_t max_pixels = kMaxPixels;
  // A larger picture is shrunk by a whole factor while it is read, as long as it still covers this: memory
  // and the result stay small. Each pixel is then the mean of those it stands for. 0: keep the size.
  int64_t cover_height = 0, cover_width = 0;
};

// JPEG (greyscale, colour, CMYK) or PNG (any kind; 16 bits become 8, what is transparent shows white), told
// apart by the first bytes; upright as EXIF says. All threads together decode no more at a time than
// fits into a budget of memory. Throws Error, beginning with `where`, for anything else.
Image decode_image(std::span<const std::byte> bytes, const std::string& where,
                   const DecodeOptions& options = {});
Image read_image(const std::filesystem::path& path, const DecodeOptions& options = {});
// The bytes of a picture's file, within the limit for such files: 256 MiB.
std::vector<std::byte> read_image_bytes(const std::filesystem::path& path);

// Floats x * scale + shift: [height, width, 3]. The default gives 0 to 1.
Tensor to_floats(const Image& image, float scale = 1.0f / 255, float shift = 0);

// The functions below take and give images [height, width, channels] of floats.

// Bilinear between the centres of pixels (PyTorch's interpolate with align_corners and antialias off):
// shrinking to less than half skips pixels.
Tensor resize(const Tensor& image, int64_t height, int64_t width);
// To `shortest` pixels along the shorter side, the longer one in proportion.
Tensor resize_shortest(const Tensor& image, int64_t shortest);

// The image is resized, in proportion, so that it just covers
// height x width, and what stands out on either side is not computed.
Tensor resize_and_crop(const Tensor& image, int64_t height, int64_t width);

// The middle; throws when the image is smaller. Where it cannot be the middle, half a pixel up and left.
Tensor centre_crop(const Tensor& image, int64_t height, int64_t width);

struct RandomCrop {
  int64_t height = 0, width = 0;
  int64_t padding = 0;  // zeros around the image first
  bool flip = true;     // left and right, every second time
};
// Three draws whatever comes out: row, column, flip.
Tensor random_crop(const Tensor& image, const RandomCrop& options, Rng& rng);

// Whether a file's name ends as those of pictures do: .jpg, .jpeg or .png, in any case.
bool is_picture_name(const std::filesystem::path& path);

// A folder with one sub-folder for every class, as image collections are kept.
struct ImageFolder {
  struct Item {
    std::filesystem::path path;
    int32_t label;  // place in `classes`
  };
  std::vector<std::string> classes;  // names of the sub-folders, sorted
  std::vector<Item> items;           // by class, then by name
  int64_t ignored = 0;               // files in the sub-folders that are no .jpg, .jpeg or .png
};
// Throws Error when there is no such folder, no class, or a class without pictures. Names that begin with a
// dot are not looked at.
ImageFolder list_image_folder(const std::filesystem::path& folder);

}  // namespace fovea::data
