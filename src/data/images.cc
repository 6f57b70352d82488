// Decodes pictures, converts them to floats, resizes and crops them, and lists folders of pictures.
#include "data/images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/parallel.h"
#include "data/bytes.h"
#include "data/exif.h"
#include "data/image_formats.h"

namespace fovea::data {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;

void check_image(const char* what, const Tensor& image) {
  require(image.rank() == 3 && image.count() > 0, what, ": got an image of shape ", image.shape(),
          ", wanted [height, width, channels]");
}

// Where a row or column of the result lies between two of the source.
struct Between {
  int64_t first, second;
  float share;  // of the second
};

// For `from` rows (or columns) resized to `to`: the places of `count` of these, after `skipped` others.
std::vector<Between> places_between(int64_t from, int64_t to, int64_t skipped, int64_t count) {
  std::vector<Between> places(static_cast<size_t>(count));
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  for (int64_t i = 0; i < count; ++i) {
    const float at = std::max(0.0f, (static_cast<float>(skipped + i) + 0.5f) * scale - 0.5f);
    const int64_t first = std::min(static_cast<int64_t>(at), from - 1);
    places[static_cast<size_t>(i)] = {first, std::min(first + 1, from - 1), at - static_cast<float>(first)};
  }
  return places;
}

// Every row between its two rows, every column between its two columns.
Tensor interpolate(const Tensor& image, const std::vector<Between>& rows,
                   const std::vector<Between>& columns) {
  const auto height = static_cast<int64_t>(rows.size()), width = static_cast<int64_t>(columns.size());
  const Tensor from = image.contiguous(), to(Shape{height, width, image.size(2)});
  const int64_t channels = from.size(2), stride = from.size(1) * channels;
  parallel_for(height, std::max<int64_t>(1, 16384 / (width * channels)), [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) {
      const Between& row = rows[static_cast<size_t>(h)];
      const float *above = from.data() + row.first * stride, *below = from.data() + row.second * stride;
      float* out = to.data() + h * width * channels;
      for (const Between& column : columns) {
        const int64_t left = column.first * channels, right = column.second * channels;
        for (int64_t c = 0; c < channels; ++c) {
          const float upper = above[left + c] + column.share * (above[right + c] - above[left + c]);
          const float lower = below[left + c] + column.share * (below[right + c] - below[left + c]);
          *out++ = upper + row.share * (lower - upper);
        }
      }
    }
  });
  return to;
}

// Copies the part of `image` that begins at (top, left), which may lie outside: zeros there.
Tensor cut_out(const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width, bool flip) {
  const int64_t channels = image.size(2);
  const Tensor part = Tensor::zeros({height, width, channels});
  for (int64_t h = 0; h < height; ++h)
    for (int64_t w = 0; w < width; ++w) {
      const int64_t row = top + h, column = left + (flip ? width - 1 - w : w);
      if (row < 0 || row >= image.size(0) || column < 0 || column >= image.size(1)) continue;
      std::copy_n(image.data() + (row * image.size(1) + column) * channels, channels,
                  part.data() + (h * width + w) * channels);
    }
  return part;
}

// What a file is that is no JPEG or PNG, as far as its first bytes tell, and what to do.
std::string other_format(std::string_view file) {
  constexpr std::pair<std::string_view, const char*> kBegins[] = {
      {"GIF8", "GIF"},        {"BM", "BMP"},   {{"II*\0", 4}, "TIFF"},
      {{"MM\0*", 4}, "TIFF"}, {"%PDF", "PDF"}, {"<svg", "SVG"}};
  const char* name = nullptr;
  for (const auto& [begin, format] : kBegins)
    if (file.starts_with(begin)) name = format;
  const std::string_view brand = file.size() >= 12 ? file.substr(4, 8) : "";
  if (file.starts_with("RIFF") && brand.ends_with("WEBP")) name = "WebP";
  if (brand.starts_with("ftyp")) name = brand == "ftypavif" ? "AVIF" : "HEIC or MP4";
  return name == nullptr ? "" : message(" but ", name, "; convert it first");
}

// Entries of a folder but those that begin with a dot, sorted by name.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (!it->path().filename().string().starts_with('.')) entries.push_back(*it);
  require(!error, "cannot read the folder ", folder.string(), ": ", error.message());
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.path().filename() < b.path().filename(); });
  return entries;
}

}  // namespace

Image decode_image(std::span<const std::byte> bytes, const std::string& where, const DecodeOptions& options) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool jpeg = text.starts_with("\xFF\xD8\xFF"), png = text.starts_with("\x89PNG\r\n\x1A\n");
  require(jpeg || png, where, ": neither JPEG nor PNG", bytes.empty() ? " but empty" : other_format(text));
  const int orientation = jpeg ? jpeg_orientation(bytes) : png_orientation(bytes);
  DecodeOptions stored = options;
  if (is_turned(orientation)) std::swap(stored.cover_height, stored.cover_width);
  return upright(jpeg ? decode_jpeg(bytes, where, stored) : decode_png(bytes, where, stored), orientation);
}

std::vector<std::byte> read_image_bytes(const fs::path& path) {
  return read_bytes(path, kMaxFileBytes);
}

Image read_image(const fs::path& path, const DecodeOptions& options) {
  return decode_image(read_image_bytes(path), path.string(), options);
}

Tensor to_floats(const Image& image, float scale, float shift) {
  const Tensor floats(Shape{image.height, image.width, 3});
  FOVEA_ASSERT(floats.count() == static_cast<int64_t>(image.pixels.size()));
  for (int64_t i = 0; i < floats.count(); ++i)
    floats.data()[i] = static_cast<float>(image.pixels[static_cast<size_t>(i)]) * scale + shift;
  return floats;
}

Tensor resize(const Tensor& image, int64_t height, int64_t width) {
  check_image("resize", image);
  require(height > 0 && width > 0 && height <= kMaxPixels / width, "resize: to ", height, " x ", width,
          ", wanted at least 1 x 1 and at most ", kMaxPixels, " pixels");
  return interpolate(image, places_between(image.size(0), height, 0, height),
                     places_between(image.size(1), width, 0, width));
}

Tensor resize_and_crop(const Tensor& image, int64_t height, int64_t width) {
  check_image("resize", image);
  require(height > 0 && width > 0 && height <= kMaxPixels / width, "resize: to ", height, " x ", width,
          ", wanted at least 1 x 1 and at most ", kMaxPixels, " pixels");
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(image.size(0)),
                                static_cast<double>(width) / static_cast<double>(image.size(1)));
  const auto places = [&](int axis, int64_t wanted) {
    const int64_t covering =
        std::max<int64_t>(wanted, std::llround(scale * static_cast<double>(image.size(axis))));
    return places_between(image.size(axis), covering, (covering - wanted) / 2, wanted);
  };
  return interpolate(image, places(0, height), places(1, width));
}

Tensor resize_shortest(const Tensor& image, int64_t shortest) {
  check_image("resize", image);
  const int64_t height = image.size(0), width = image.size(1), least = std::min(height, width);
  const auto scaled = [&](int64_t size) {
    return std::max<int64_t>(1, (size * shortest + least / 2) / least);
  };
  require(shortest > 0 && shortest <= kMaxPixels, "resize: to a shorter side of ", shortest,
          ", wanted 1 or more");
  return resize(image, scaled(height), scaled(width));
}

Tensor centre_crop(const Tensor& image, int64_t height, int64_t width) {
  check_image("centre_crop", image);
  require(height > 0 && width > 0 && height <= image.size(0) && width <= image.size(1),
          "centre_crop: ", height, " x ", width, " of an image of ", image.size(0), " x ", image.size(1),
          "; resize it first or cut out less");
  return cut_out(image.contiguous(), (image.size(0) - height) / 2, (image.size(1) - width) / 2, height, width,
                 false);
}

Tensor random_crop(const Tensor& image, const RandomCrop& options, Rng& rng) {
  check_image("random_crop", image);
  const auto& [height, width, padding, flip] = options;
  require(padding >= 0 && padding <= kMaxPixels, "random_crop: padding of ", padding, ", wanted 0 or more");
  const int64_t rows = image.size(0) + 2 * padding - height, columns = image.size(1) + 2 * padding - width;
  require(height > 0 && width > 0 && rows >= 0 && columns >= 0, "random_crop: ", height, " x ", width,
          " of an image of ", image.size(0), " x ", image.size(1), " with ", padding,
          " of padding; pad it more or cut out less");
  const int64_t top = rng.below(rows + 1) - padding, left = rng.below(columns + 1) - padding;
  const bool flipped = rng.below(2) == 1;
  return cut_out(image.contiguous(), top, left, height, width, flip && flipped);
}

bool is_picture_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

ImageFolder list_image_folder(const fs::path& folder) {
  ImageFolder result;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    if (std::error_code ignored; !entry.is_directory(ignored)) continue;
    const auto label = static_cast<int32_t>(result.classes.size());
    const size_t before = result.items.size();
    for (const fs::directory_entry& file : entries_of(entry.path())) {
      std::error_code unreadable;
      if (is_picture_name(file.path()) && !file.is_directory(unreadable))
        result.items.push_back({file.path(), label});
      else
        ++result.ignored;
    }
    require(result.items.size() > before, entry.path().string(),
            " contains no pictures; wanted .jpg, .jpeg or .png files of one class");
    result.classes.push_back(entry.path().filename().string());
  }
  require(!result.classes.empty(), folder.string(),
          " contains no sub-folders; wanted one for every class, with its pictures");
  return result;
}

}  // namespace fovea::data
