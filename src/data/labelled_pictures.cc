// Reads labelled pictures from IDX pairs, folders of classes and tar archives into arrays of one size.
#include "data/labelled_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/fields.h"
#include "base/parallel.h"
#include "base/stop_check.h"
#include "data/idx.h"
#include "data/images.h"
#include "data/tar.h"
#include "io/file.h"
#include "io/json.h"

namespace fovea::data {
namespace {

constexpr int64_t kDefaultSize = 64, kMostSize = 1024;
constexpr uint64_t kMostPictureBytes = uint64_t{256} << 20;

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

std::vector<uint8_t> fit(std::span<const std::byte> file, const std::string& where, const PictureForm& form) {
  const Image image = decode_image(file, where, {.cover_height = form.height, .cover_width = form.width});
  const Tensor cut = resize_and_crop(to_floats(image, 1, 0), form.height, form.width);
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

// Pictures whose classes are known; make(i) gives the pixels of the i-th. On all threads.
Pictures gather(std::vector<std::string> classes, std::vector<int32_t> labels, const PictureForm& form,
                FunctionRef<std::vector<uint8_t>(size_t)> make) {
  Pictures pictures{.form = form, .pixels = {}, .labels = std::move(labels), .classes = std::move(classes)};
  pictures.pixels.resize(pictures.labels.size() * bytes_of(form));
  parallel_for(pictures.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      check_stop();
      const std::vector<uint8_t> one = make(static_cast<size_t>(i));
      std::copy(one.begin(), one.end(), pictures.pixels.begin() + i * static_cast<int64_t>(one.size()));
    }
  });
  return pictures;
}

Pictures from_folder(const std::string& path, const PictureForm& form) {
  const ImageFolder folder = list_image_folder(path);
  std::vector<int32_t> labels;
  for (const auto& item : folder.items) labels.push_back(item.label);
  return gather(folder.classes, std::move(labels), form,
                [&](size_t i) { return read_picture_as(folder.items[i].path, form); });
}

// A picture in an archive, and the folder it lies in.
struct Packed {
  std::string folder, name;
  const TarMember* member;
};

// By class, then by name, as list_image_folder() has them.
std::vector<Packed> pictures_in(const TarFile& tar, const std::string& path) {
  std::vector<Packed> found;
  std::string above;  // the folder that holds the classes' folders
  for (const TarMember& member : tar.members()) {
    const std::filesystem::path name = member.name, folder = name.parent_path();
    if (!is_picture_name(name) || name.filename().string().starts_with('.') ||
        folder.filename().string().starts_with('.'))
      continue;
    require(!folder.filename().empty(), path, ": ", in_quotes(member.name),
            " lies in no folder; wanted a folder for every class, with its pictures");
    if (found.empty()) above = folder.parent_path().string();
    require(folder.parent_path() == above, path, ": pictures in ",
            in_quotes(found.empty() ? "" : above + "/"), " and in ",
            in_quotes(folder.parent_path().string() + "/"),
            ", wanted the folders of the classes side by side");
    found.push_back({folder.filename().string(), name.filename().string(), &member});
  }
  require(!found.empty(), path,
          " contains no pictures; wanted a folder for every class, with its .jpg, .jpeg or .png files");
  std::stable_sort(found.begin(), found.end(), [](const Packed& a, const Packed& b) {
    return std::tie(a.folder, a.name) < std::tie(b.folder, b.name);
  });
  return found;
}

Pictures from_tar(const std::string& path, const PictureForm& form) {
  const TarFile tar(path);
  const std::vector<Packed> found = pictures_in(tar, path);
  std::vector<std::string> classes;
  std::vector<int32_t> labels;
  for (const Packed& one : found) {
    if (classes.empty() || classes.back() != one.folder) classes.push_back(one.folder);
    labels.push_back(static_cast<int32_t>(classes.size()) - 1);
  }
  return gather(std::move(classes), std::move(labels), form, [&](size_t i) {
    return fit(tar.read(*found[i].member, kMostPictureBytes), path + ", " + found[i].member->name, form);
  });
}

// One file alone: an archive, or one of the two that IDX has.
void refuse_idx_alone(const std::string& path) {
  const ByteFile file(path);
  std::array<std::byte, 4> first{};
  file.read(0, std::span(first).first(std::min<uint64_t>(first.size(), file.size())));
  const auto is = [&](size_t i, int value) { return first[i] == static_cast<std::byte>(value); };
  require(!(is(0, 0) && is(1, 0) && is(2, 8)), path,
          ": an IDX file; give the file of pictures and the file of their labels, in this order");
  require(
      !(is(0, 0x1f) && is(1, 0x8b)), path,
      ": a compressed file; wanted a plain tar, or two IDX files (gzip or not): pictures and their labels");
}

Pictures from_one(const std::string& path, const PictureForm& form) {
  if (is_folder(path)) return from_folder(path, form);
  refuse_idx_alone(path);
  return from_tar(path, form);
}

}  // namespace

std::span<const uint8_t> Pictures::picture(int64_t i) const {
  return std::span(pixels).subspan(static_cast<size_t>(i) * bytes_of(form), bytes_of(form));
}

Pictures read_pictures(const std::vector<std::string>& paths, int64_t size) {
  require(
      paths.size() == 1 || paths.size() == 2, "pictures: got ", paths.size(),
      " paths, wanted a folder with a sub-folder for every class, a tar of such folders, or an IDX file of "
      "pictures and one of labels");
  if (paths.size() == 2) return from_idx(paths[0], paths[1]);
  require(size == 0 || (size >= 8 && size <= kMostSize), "size: got ", size, ", wanted 8 to ", kMostSize);
  const int64_t side = size > 0 ? size : kDefaultSize;
  return from_one(paths[0], {side, side, 3});
}

Pictures read_pictures_as(const std::vector<std::string>& paths, const PictureForm& form,
                          const std::vector<std::string>& classes) {
  Pictures pictures = paths.size() == 2 ? from_idx(paths[0], paths[1]) : from_one(paths.at(0), form);
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
  return fit(read_image_bytes(path), path.string(), form);
}

std::vector<uint8_t> decode_picture_as(std::span<const std::byte> file, const std::string& where,
                                       const PictureForm& form) {
  return fit(file, where, form);
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
