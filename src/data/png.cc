// PNG through libpng's plain interface, which reports errors by return value.
#include <png.h>

#include "data/image_formats.h"

namespace fovea::data {
namespace {

struct Reader {
  png_image image{};
  Reader() { image.version = PNG_IMAGE_VERSION; }
  ~Reader() { png_image_free(&image); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
};

}  // namespace

Image decode_png(std::span<const std::byte> bytes, const std::string& where, int64_t max_pixels) {
  Reader reader;
  require(png_image_begin_read_from_memory(&reader.image, bytes.data(), bytes.size()) != 0, where,
          ": damaged PNG: ", reader.image.message);
  Image image{reader.image.height, reader.image.width, {}};
  check_pixels(image, where, max_pixels);
  image.pixels.resize(static_cast<size_t>(image.height * image.width * 3));
  reader.image.format = PNG_FORMAT_RGB;
  const png_color white{255, 255, 255};
  require(png_image_finish_read(&reader.image, &white, image.pixels.data(), 0, nullptr) != 0, where,
          ": damaged PNG: ", reader.image.message);
  return image;
}

}  // namespace fovea::data
