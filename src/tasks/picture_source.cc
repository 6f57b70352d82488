#include "tasks/picture_source.h"

#include "base/error_kinds.h"
#include "data/captions.h"

namespace fovea::tasks {

PictureSource::PictureSource(std::vector<std::string> names, std::shared_ptr<const data::PictureFiles> images,
                             InputForm form)
    : names_(std::move(names)), images_(std::move(images)), form_(form) {}

PictureSource::~PictureSource() = default;

PictureSource PictureSource::files(std::vector<std::string> paths, InputForm form) {
  return {std::move(paths), nullptr, form};
}

PictureSource PictureSource::collection(const std::string& images, const std::string& list) {
  return errors_as<FileError>([&] {
    return PictureSource(data::read_picture_list(list), std::make_shared<const data::PictureFiles>(images));
  });
}

Input PictureSource::read(size_t i) const {
  if (images_ == nullptr) return read_input(names_[i], form_);
  return errors_as<FileError>([&] {
    const std::vector<std::byte> bytes = images_->read(names_[i]);
    return Input{{reinterpret_cast<const char*>(bytes.data()), bytes.size()}, names_[i]};
  });
}

}  // namespace fovea::tasks
