#include "data/labelled_pictures.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/fields.h"
#include "base/parallel.h"
#include "data/idx.h"
#include "data/images.h"

namespace fovea::data {
namespace {

constexpr int64_t kDefaultSize = 64, kMostSize = 1024;

size_t bytes_of(const PictureForm& form) {
  return static_cast<size_t>(form.height * form.width * form.channels);
}

// Red, green and blue to the brightness that eyes give them (Rec. 601).
float grey(const float* rgb) {
  return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

Pictures from_idx(const std::string& images, const std::string& labels) {
  LabelledImages read = read_labelled_idx(images, labels);
  Pictures pictures;
  pictures.form = {read.height, read.width, 1};
  pictures.pixels = std::move(read.pixels);
  pictures.labels = std::move(read.labels);
  require(pictures.count() > 0, images, ": no pictures");
  const int32_t most = *std::max_element(pictures.labels.begin(), pictures.labels.end());
  for (int32_t label = 0; label <= std::max(most, 1); ++label)
    pictures.classes.push_back(std::to_string(label));
  return pictures;
}

Pictures from_folder(const std::string& path, const PictureForm& form) {
  const ImageFolder folder = list_image_folder(path);
  Pictures pictures;
  pictures.form = form;
  pictures.classes = folder.classes;
  pictures.pixels.resize(folder.items.size() * bytes_of(form));
  for (const auto& item : folder.items) pictures.labels.push_back(item.label);
  parallel_for(pictures.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::vector<uint8_t> one = read_picture_as(folder.items[static_cast<size_t>(i)].path, form);
      std::copy(one.begin(), one.end(), pictures.pixels.begin() + i * static_cast<int64_t>(one.size()));
    }
  });
  return pictures;
}

}  // namespace

std::span<const uint8_t> Pictures::picture(int64_t i) const {
  return std::span(pixels).subspan(static_cast<size_t>(i) * bytes_of(form), bytes_of(form));
}

Pictures read_pictures(const std::vector<std::string>& paths, int64_t size) {
  require(paths.size() == 1 || paths.size() == 2, "pictures: got ", paths.size(),
          " paths, wanted a folder with a sub-folder for every class, or an IDX file of pictures and one of "
          "labels");
  if (paths.size() == 2) return from_idx(paths[0], paths[1]);
  require(size == 0 || (size >= 8 && size <= kMostSize), "size: got ", size, ", wanted 8 to ", kMostSize);
  const int64_t side = size > 0 ? size : kDefaultSize;
  return from_folder(paths[0], {side, side, 3});
}

Pictures read_pictures_as(const std::vector<std::string>& paths, const PictureForm& form,
                          const std::vector<std::string>& classes) {
  Pictures pictures = paths.size() == 2 ? from_idx(paths[0], paths[1]) : from_folder(paths.at(0), form);
  require(pictures.form.height == form.height && pictures.form.width == form.width &&
              pictures.form.channels == form.channels,
          paths[0], ": pictures of ", pictures.form.height, " x ", pictures.form.width, " x ",
          pictures.form.channels, ", wanted ", form.height, " x ", form.width, " x ", form.channels);
  std::vector<int32_t> places;
  const std::vector<std::string_view> known(classes.begin(), classes.end());
  for (const std::string& name : pictures.classes) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    places.push_back(found == classes.end() ? -1 : static_cast<int32_t>(found - classes.begin()));
  }
  for (int32_t& label : pictures.labels) {
    const std::string& name = pictures.classes[static_cast<size_t>(label)];
    label = places[static_cast<size_t>(label)];
    require(label >= 0, paths.back(), ": the class '", name, "' is not among the model's",
            name_hint(name, known));
  }
  pictures.classes = classes;
  return pictures;
}

std::vector<uint8_t> read_picture_as(const std::filesystem::path& path, const PictureForm& form) {
  const Tensor whole = to_floats(read_image(path), 1, 0);
  // Scaled so that it just covers the form, then its middle.
  const double scale = std::max(static_cast<double>(form.height) / static_cast<double>(whole.size(0)),
                                static_cast<double>(form.width) / static_cast<double>(whole.size(1)));
  const auto side = [&](int axis, int64_t least) {
    return std::max<int64_t>(least, std::llround(scale * static_cast<double>(whole.size(axis))));
  };
  const Tensor cut =
      centre_crop(resize(whole, side(0, form.height), side(1, form.width)), form.height, form.width)
          .contiguous();
  std::vector<uint8_t> bytes;
  bytes.reserve(bytes_of(form));
  const auto add = [&](float value) {
    bytes.push_back(static_cast<uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f)));
  };
  for (int64_t i = 0; i < form.height * form.width; ++i) {
    const float* rgb = cut.data() + 3 * i;
    if (form.channels == 1)
      add(grey(rgb));
    else
      std::for_each(rgb, rgb + 3, add);
  }
  return bytes;
}

PixelMoments pixel_moments(const Pictures& pictures) {
  const auto channels = static_cast<size_t>(pictures.form.channels);
  std::vector<double> sum(channels), squares(channels);
  for (size_t i = 0; i < pictures.pixels.size(); ++i) {
    const double value = pictures.pixels[i] / 255.0;
    sum[i % channels] += value;
    squares[i % channels] += value * value;
  }
  const double count = static_cast<double>(pictures.pixels.size()) / static_cast<double>(channels);
  PixelMoments moments;
  for (size_t c = 0; c < channels; ++c) {
    const double mean = sum[c] / count;
    moments.mean.push_back(static_cast<float>(mean));
    // Pictures of one shade have none; any other number will do for those.
    moments.deviation.push_back(
        static_cast<float>(std::max(1e-3, std::sqrt(std::max(0.0, squares[c] / count - mean * mean)))));
  }
  return moments;
}

Tensor normalised(std::span<const uint8_t> pixels, const PictureForm& form, const PixelMoments& moments) {
  Tensor image({form.height, form.width, form.channels});
  const auto channels = static_cast<size_t>(form.channels);
  for (size_t i = 0; i < pixels.size(); ++i)
    image.data()[i] =
        (static_cast<float>(pixels[i]) / 255 - moments.mean[i % channels]) / moments.deviation[i % channels];
  return image;
}

}  // namespace fovea::data
