#include "data/exif.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace fovea::data {
namespace {

constexpr int kAsItIs = 1;

// Whole numbers out of bytes, in either order. Reading outside gives 0, which is no orientation and no tag.
struct Numbers {
  std::span<const std::byte> bytes;
  bool big_endian = true;

  uint32_t read(size_t at, size_t size) const {
    if (size > bytes.size() || at > bytes.size() - size) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i)
      value = value << 8 | std::to_integer<uint32_t>(bytes[big_endian ? at + i : at + size - 1 - i]);
    return value;
  }
  uint32_t two(size_t at) const { return read(at, 2); }
  uint32_t four(size_t at) const { return read(at, 4); }
};

bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

}  // namespace

int exif_orientation(std::span<const std::byte> exif) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3, kLong = 4;
  constexpr size_t kEntryBytes = 12;
  const bool big = begins_with(exif, std::string_view("MM\0*", 4));
  if (!big && !begins_with(exif, std::string_view("II*\0", 4))) return kAsItIs;
  const Numbers numbers{exif, big};
  const size_t directory = numbers.four(4);
  const uint32_t entries = numbers.two(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + i * kEntryBytes;
    if (at + kEntryBytes > exif.size()) break;
    if (numbers.two(at) != kOrientation) continue;
    const uint32_t type = numbers.two(at + 2);
    const uint32_t value = type == kShort ? numbers.two(at + 8) : type == kLong ? numbers.four(at + 8) : 0;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : kAsItIs;
  }
  return kAsItIs;
}

int jpeg_orientation(std::span<const std::byte> file) {
  constexpr uint32_t kApp1 = 0xE1, kStartOfScan = 0xDA, kEndOfImage = 0xD9;
  constexpr std::string_view kExif("Exif\0\0", 6);
  const Numbers numbers{file};
  for (size_t at = 2; at + 4 <= file.size();) {
    if (numbers.read(at, 1) != 0xFF) break;
    const uint32_t marker = numbers.read(at + 1, 1);
    if (marker == 0xFF) {  // filling
      ++at;
      continue;
    }
    if (marker == kStartOfScan || marker == kEndOfImage) break;
    const size_t length = numbers.two(at + 2);  // with its own two bytes
    if (length < 2 || length > file.size() - at - 2) break;
    const auto content = file.subspan(at + 4, length - 2);
    if (marker == kApp1 && begins_with(content, kExif))
      return exif_orientation(content.subspan(kExif.size()));
    at += 2 + length;
  }
  return kAsItIs;
}

int png_orientation(std::span<const std::byte> file) {
  constexpr size_t kAroundContent = 12;  // length, name and check sum
  const Numbers numbers{file};
  for (size_t at = 8; at + kAroundContent <= file.size();) {
    const size_t length = numbers.four(at);
    if (length > file.size() - at - kAroundContent) break;
    if (begins_with(file.subspan(at + 4), "eXIf")) return exif_orientation(file.subspan(at + 8, length));
    at += kAroundContent + length;
  }
  return kAsItIs;
}

Image upright(Image image, int orientation) {
  FOVEA_ASSERT(orientation >= 1 && orientation <= 8);
  if (orientation == kAsItIs) return image;
  const int64_t height = image.height, width = image.width;
  const bool turned = is_turned(orientation);
  // Where row 0 and column 0 of the result are taken from, and which way they run.
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image result{turned ? width : height, turned ? height : width, std::vector<uint8_t>(image.pixels.size())};
  uint8_t* to = result.pixels.data();
  for (int64_t r = 0; r < result.height; ++r)
    for (int64_t c = 0; c < result.width; ++c, to += 3) {
      const int64_t down = turned ? c : r, across = turned ? r : c;
      const int64_t row = from_bottom ? height - 1 - down : down;
      const int64_t column = from_right ? width - 1 - across : across;
      std::memcpy(to, image.pixels.data() + (row * width + column) * 3, 3);
    }
  return result;
}

}  // namespace fovea::data
