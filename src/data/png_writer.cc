#include "data/png_writer.h"

#include <png.h>

#include "base/error.h"

namespace fovea::data {

std::string encode_png(std::span<const uint8_t> pixels, const PictureForm& form) {
  require((form.channels == 1 || form.channels == 3) &&
              static_cast<int64_t>(pixels.size()) == form.height * form.width * form.channels,
          "encode_png: got ", pixels.size(), " bytes for ", form.height, " x ", form.width, " pixels of ",
          form.channels, " channels");
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(form.width);
  image.height = static_cast<png_uint_32>(form.height);
  image.format = form.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  const auto write = [&](void* to, png_alloc_size_t& bytes) {
    require(png_image_write_to_memory(&image, to, &bytes, 0, pixels.data(), 0, nullptr) != 0,
            "encode_png: ", image.message);
  };
  png_alloc_size_t bytes = 0;
  write(nullptr, bytes);
  std::string file(bytes, '\0');
  write(file.data(), bytes);
  file.resize(bytes);
  return file;
}

}  // namespace fovea::data
