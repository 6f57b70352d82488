// IDX files, as MNIST and its like come in: bytes with sizes in front, plain or gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace fovea::data {

// An array of bytes: [sizes[0], sizes[1], ...], the last size running fastest.
struct IdxArray {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> values;
};

// The most values of an array.
inline constexpr int64_t kMaxIdxValues = int64_t{1} << 30;

// Throws Error, beginning with `where`, on what is no IDX of unsigned bytes, cut off, or too long.
IdxArray parse_idx(std::span<const std::byte> bytes, const std::string& where);
IdxArray read_idx(const std::filesystem::path& path);

// Pictures of one size and one channel, and the class of each.
struct LabelledImages {
  int64_t count = 0, height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [count, height, width]
  std::vector<int32_t> labels;  // [count]
};
// Throws Error when the numbers of pictures and labels differ.
LabelledImages read_labelled_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace fovea::data
