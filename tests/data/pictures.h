// Pictures for tests, and their bytes as JPEG and PNG.
#pragma once

#include <cstdio>
#include <cstdlib>

// jpeglib.h speaks of FILE.
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

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

inline std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

inline std::string png_chunk(const std::string& name, const std::string& content) {
  const std::string checked = name + content;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return big_endian(static_cast<uint32_t>(content.size())) + checked + big_endian(static_cast<uint32_t>(sum));
}

// A grey PNG of one shade, made without its pixels ever being in memory: small as a file, large as a picture.
inline std::string plain_png(int64_t height, int64_t width, char shade, bool interlaced = false) {
  const std::string row = std::string(1, '\0') + std::string(static_cast<size_t>(width), shade);
  z_stream stream{};
  deflateInit(&stream, 9);
  std::string packed, buffer(1 << 16, '\0');
  for (int64_t h = 0; h < height; ++h) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(row.data()));
    stream.avail_in = static_cast<uInt>(row.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, h + 1 == height ? Z_FINISH : Z_NO_FLUSH);
      packed.append(buffer, 0, buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  deflateEnd(&stream);
  std::string header = big_endian(static_cast<uint32_t>(width)) + big_endian(static_cast<uint32_t>(height));
  header += std::string{8, 0, 0, 0, static_cast<char>(interlaced)};
  return "\x89PNG\r\n\x1A\n" + png_chunk("IHDR", header) + png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

// EXIF data that holds an orientation alone, in either order of bytes.
inline std::string exif_bytes(int orientation, bool big) {
  const auto number = [&](uint32_t value, int size) {
    const std::string all = big_endian(value).substr(static_cast<size_t>(4 - size));
    return big ? all : std::string(all.rbegin(), all.rend());
  };
  return (big ? std::string("MM") : std::string("II")) + number(42, 2) + number(8, 4) + number(2, 2) +
         number(0x010F, 2) + number(2, 2) + number(1, 4) + number(0, 4) +  // a maker first
         number(0x0112, 2) + number(3, 2) + number(1, 4) + number(static_cast<uint32_t>(orientation), 2) +
         number(0, 2) + number(0, 4);
}

inline std::string jpeg_with_exif(const std::string& jpeg, const std::string& exif) {
  const std::string content = std::string("Exif\0\0", 6) + exif;
  return jpeg.substr(0, 2) + "\xFF\xE1" + big_endian(static_cast<uint32_t>(content.size() + 2)).substr(2) +
         content + jpeg.substr(2);
}

// Behind the header, which is 33 bytes with the signature.
inline std::string png_with_exif(const std::string& png, const std::string& exif) {
  return png.substr(0, 33) + png_chunk("eXIf", exif) + png.substr(33);
}

}  // namespace fovea::data
