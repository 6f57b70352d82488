// Labelled pictures of one size, from the files that people have: IDX pairs, folders of classes, and tar
// archives of such folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::data {

// How a picture is made fit for a network.
struct PictureForm {
  int64_t height = 0, width = 0;
  int64_t channels = 3;  // 1: grey
};

struct Pictures {
  PictureForm form;
  std::vector<uint8_t> pixels;  // [count, height, width, channels]
  std::vector<int32_t> labels;  // [count]
  std::vector<std::string> classes;

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  std::span<const uint8_t> picture(int64_t i) const;
};

// paths: an IDX file of pictures and one of their labels; or one folder with a sub-folder for every class, or
// an uncompressed tar of such folders, whose pictures are brought to size x size: the shorter side resized,
// the middle cut out. size 0: 64; IDX pictures keep theirs. Of an archive one picture per thread is in memory
// at a time. Throws Error naming the file for what cannot be used.
Pictures read_pictures(const std::vector<std::string>& paths, int64_t size);
// The same with the classes and the form of a model: for validation. Throws Error on a class it lacks.
Pictures read_pictures_as(const std::vector<std::string>& paths, const PictureForm& form,
                          const std::vector<std::string>& classes);

// One picture file in a model's form -> [height, width, channels] of bytes' values. A large picture is shrunk
// while it is decoded.
std::vector<uint8_t> read_picture_as(const std::filesystem::path& path, const PictureForm& form);
// The same of a picture file's bytes; `where` begins every error message.
std::vector<uint8_t> decode_picture_as(std::span<const std::byte> file, const std::string& where,
                                       const PictureForm& form);

// Mean and standard deviation of each channel, of values 0 to 1.
struct PixelMoments {
  std::vector<float> mean, deviation;
};
PixelMoments pixel_moments(const Pictures& pictures);
// (value / 255 - mean) / deviation -> [height, width, channels].
Tensor normalised(std::span<const uint8_t> pixels, const PictureForm& form, const PixelMoments& moments);

}  // namespace fovea::data
