// Captions of pictures, read from the files in which collections keep them, and the pictures they describe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tar.h"

namespace fovea::data {

struct CaptionedPicture {
  std::string name;                   // of its file, as the captions' file has it
  std::vector<std::string> captions;  // as they were written; never empty
};

// Reads captions and gathers them by picture, in the order in which pictures are first named:
//   COCO's JSON       a file that ends in .json, with `images` (id, file_name) and `annotations` (image_id,
//                     caption); pictures without a caption are left out
//   Flickr's tokens   name.jpg#0 <tab> caption
//   two columns       name and caption, between tabs, or between commas where the file ends in .csv; a first
//                     line that names the columns is passed over
// Throws Error naming file and line for what cannot be used.
std::vector<CaptionedPicture> read_captions(const std::string& path);
// COCO's JSON alone; `where` begins every message.
std::vector<CaptionedPicture> parse_coco_captions(std::string_view text, const std::string& where);

// The names of a list, one a line, as Flickr8k's split files have them; blank lines are passed over. Throws
// Error on a name that appears twice and on a list without names.
std::vector<std::string> read_picture_list(const std::string& path);

// The words of a caption as captioning counts them: lower case, without the punctuation at their ends, joined
// by single spaces. "A dog 's T-shirt , wet !" -> "a dog s t-shirt wet".
std::string caption_words(std::string_view caption);

// The files of a collection: a folder, or an uncompressed tar.
class PictureFiles {
 public:
  explicit PictureFiles(const std::filesystem::path& path);
  // A member is found by its whole name, or by its name without folders.
  bool contains(const std::string& name) const;
  // The picture file's bytes. Throws Error, naming collection and picture, when there is none of that name.
  // Safe to call from several threads.
  std::vector<std::byte> read(const std::string& name) const;
  // "images.tar, dog.jpg": how messages name a picture.
  std::string place(const std::string& name) const;

 private:
  const TarMember* member(const std::string& name) const;
  std::filesystem::path file_of(const std::string& name) const;

  std::filesystem::path path_;
  std::unique_ptr<TarFile> tar_;                                       // null: a folder
  std::map<std::string, const TarMember*, std::less<>> by_file_name_;  // null: the name of several members
};

}  // namespace fovea::data
