#include "tasks/picture_files.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "data/images.h"
#include "data/png_writer.h"
#include "io/file.h"

namespace fovea::tasks {

uint64_t fingerprint_of(const data::Pictures& pictures) {
  DataFingerprint print;
  for (const uint8_t value : pictures.pixels) print.add(uint64_t{value});
  for (const int32_t label : pictures.labels) print.add(static_cast<uint64_t>(label));
  return print.value();
}

void note_left_out(const std::vector<std::string>& paths, RunObserver& observer) {
  if (paths.size() != 1 || !is_folder(paths[0])) return;
  const int64_t ignored = data::list_image_folder(paths[0]).ignored;
  if (ignored > 0)
    observer.on_note(
        message("note: ", ignored, " of the files in ", paths[0],
                " are not read: their names do not end in .jpg, .jpeg or .png, or they are folders"));
}

void require_two_classes(const data::Pictures& pictures, const std::string& path) {
  const std::set<int32_t> seen(pictures.labels.begin(), pictures.labels.end());
  std::vector<std::string> classes;
  for (const int32_t label : seen) classes.push_back(pictures.classes[static_cast<size_t>(label)]);
  require_classes(classes, "picture", path);
}

void save_examples(const std::filesystem::path& folder, const data::Pictures& pictures) {
  constexpr int64_t kExamples = 10;
  make_directories(folder);
  for (int64_t i = 0; i < std::min(kExamples, pictures.count()); ++i)
    write_atomically(folder / message(i, ".png"), data::encode_png(pictures.picture(i), pictures.form));
}

std::vector<uint8_t> in_colour(std::span<const uint8_t> pixels, int64_t channels) {
  std::vector<uint8_t> colour;
  for (const uint8_t value : pixels) colour.insert(colour.end(), channels == 1 ? 3u : 1u, value);
  return colour;
}

}  // namespace fovea::tasks
