#include "data/bmp.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace fovea::data {
namespace {

// Of the two headers: the file's (14 bytes) and the picture's (at least 40).
constexpr size_t kHeaderBytes = 54;

uint32_t number(std::span<const std::byte> file, size_t offset, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= std::to_integer<uint32_t>(file[offset + i]) << (8 * i);
  return value;
}

}  // namespace

bool is_bmp(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{'B'} && file[1] == std::byte{'M'};
}

Image decode_bmp(std::span<const std::byte> file, const std::string& where) {
  require(is_bmp(file) && file.size() >= kHeaderBytes, where, ": no bitmap, or cut off");
  const uint64_t begin = number(file, 10, 4), bits = number(file, 28, 2);
  const auto width = static_cast<int32_t>(number(file, 18, 4)),
             signed_height = static_cast<int32_t>(number(file, 22, 4));
  require(number(file, 14, 4) >= 40 && number(file, 30, 4) == 0 && (bits == 24 || bits == 32), where,
          ": a bitmap with compression or of ", bits, " bits a pixel; wanted 24 or 32 bits, not compressed");
  const bool from_below = signed_height > 0;
  const int64_t height = from_below ? int64_t{signed_height} : -int64_t{signed_height};
  require(width > 0 && height > 0 && height <= kMaxPixels / width, where, ": a bitmap of ", width, " x ",
          height, " pixels; wanted 1 to ", kMaxPixels, " of them");
  const uint64_t pixel = bits / 8, line = (static_cast<uint64_t>(width) * pixel + 3) / 4 * 4;
  require(begin >= kHeaderBytes && begin <= file.size() &&
              (file.size() - begin) / line >= static_cast<uint64_t>(height),
          where, ": cut off; ", file.size(), " bytes for ", width, " x ", height, " pixels");
  Image image{height, width, std::vector<uint8_t>(static_cast<size_t>(3 * height * width))};
  uint8_t* to = image.pixels.data();
  for (int64_t y = 0; y < height; ++y) {
    const std::byte* from =
        file.data() + begin + static_cast<uint64_t>(from_below ? height - 1 - y : y) * line;
    for (int64_t x = 0; x < width; ++x, from += pixel)
      for (const int c : {2, 1, 0}) *to++ = std::to_integer<uint8_t>(from[c]);  // stored blue first
  }
  return image;
}

}  // namespace fovea::data
