// Pictures for tests, and their bytes as JPEG and PNG.
#pragma once

#include <cstdio>
#include <cstdlib>

// jpeglib.h speaks of FILE.
#include <jpeglib.h>
#include <png.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "data/images.h"

namespace fovea::data {

// Smooth colours, so that JPEG loses little.
inline Image smooth_picture(int64_t height, int64_t width) {
  Image image{height, width, std::vector<uint8_t>(static_cast<size_t>(height * width * 3))};
  for (int64_t h = 0; h < height; ++h)
    for (int64_t w = 0; w < width; ++w) {
      uint8_t* pixel = image.pixels.data() + (h * width + w) * 3;
      pixel[0] = static_cast<uint8_t>(255 * h / height);
      pixel[1] = static_cast<uint8_t>(255 * w / width);
      pixel[2] = static_cast<uint8_t>(100 + 50 * (h + w) / (height + width));
    }
  return image;
}

struct JpegOptions {
  int channels = 3;  // 1: the green alone; 4: inks
  bool progressive = false;
};

inline std::string jpeg_bytes(const Image& image, JpegOptions options = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = options.channels;
  info.in_color_space = options.channels == 1 ? JCS_GRAYSCALE : options.channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row(static_cast<size_t>(image.width * options.channels));
  while (info.next_scanline < info.image_height) {
    for (int64_t w = 0; w < image.width; ++w) {
      const uint8_t* pixel = image.pixels.data() + (info.next_scanline * image.width + w) * 3;
      uint8_t* to = row.data() + w * options.channels;
      if (options.channels == 1) {
        to[0] = pixel[1];
        continue;
      }
      for (int c = 0; c < 3; ++c) to[c] = pixel[c];
      if (options.channels == 4) to[3] = 255;  // as Adobe stores it: no black at all
    }
    uint8_t* from = row.data();
    jpeg_write_scanlines(&info, &from, 1);
  }
  jpeg_finish_compress(&info);
  std::string result(reinterpret_cast<char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return result;
}

// pixels: rows of `format` (PNG_FORMAT_RGB, PNG_FORMAT_RGBA, PNG_FORMAT_GRAY).
inline std::string png_bytes(int64_t height, int64_t width, const std::vector<uint8_t>& pixels,
                             uint32_t format = PNG_FORMAT_RGB) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

}  // namespace fovea::data
