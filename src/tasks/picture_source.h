// Where the pictures of a call come from: files that a person named, or a collection and a list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tasks/open.h"

namespace fovea::data {
class PictureFiles;
}

namespace fovea::tasks {

class PictureSource {
 public:
  // form: picture, or clip where a path may be a folder of frames.
  static PictureSource files(std::vector<std::string> paths, InputForm form = InputForm::picture);
  // images: a folder or an uncompressed tar; list: a file of names. Throws FileError when one cannot be read.
  static PictureSource collection(const std::string& images, const std::string& list);
  ~PictureSource();

  size_t size() const { return names_.size(); }
  const std::string& name(size_t i) const { return names_[i]; }
  // Throws FileError naming the picture.
  Input read(size_t i) const;

 private:
  PictureSource(std::vector<std::string> names, std::shared_ptr<const data::PictureFiles> images,
                InputForm form = InputForm::picture);
  std::vector<std::string> names_;
  std::shared_ptr<const data::PictureFiles> images_;  // null: names are paths
  InputForm form_;
};

}  // namespace fovea::tasks
