// Reads caption files (rows of a picture and a caption, COCO JSON), lists of pictures, and the pictures that they name
// from a folder or tar archive.
#include "data/captions.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/fields.h"
#include "data/images.h"
#include "data/rows.h"
#include "data/text.h"
#include "io/file.h"
#include "io/json.h"

namespace fovea::data {
namespace {

constexpr size_t kLongestCaption = 64 * 1024;
constexpr uint64_t kLargestJson = uint64_t{1} << 30, kLargestPicture = uint64_t{256} << 20;

// Captions by picture, in the order in which pictures are first named.
class Gathered {
 public:
  // place: of the line or entry, for messages.
  void add(const std::string& name, std::string_view caption, const std::string& place) {
    const std::vector<std::string_view> words = split_words(caption);
    require(!words.empty(), place, ": an empty caption of ", in_quotes(name), "; correct or remove it");
    const auto [found, fresh] = places_.try_emplace(name, pictures_.size());
    if (fresh) pictures_.push_back({name, {}});
    std::string text;  // on one line
    for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
    pictures_[found->second].captions.push_back(std::move(text));
  }
  std::vector<CaptionedPicture> take(const std::string& where) {
    require(!pictures_.empty(), where,
            ": no captions; wanted a picture's name and a caption on each line, or COCO's JSON");
    return std::move(pictures_);
  }

 private:
  std::vector<CaptionedPicture> pictures_;
  std::unordered_map<std::string, size_t> places_;
};

// "dog.jpg#3" -> "dog.jpg".
std::string without_number(const std::string& name) {
  const size_t mark = name.rfind('#');
  const bool numbered = mark != std::string::npos && mark + 1 < name.size() &&
                        std::all_of(name.begin() + static_cast<int64_t>(mark) + 1, name.end(),
                                    [](char c) { return c >= '0' && c <= '9'; });
  return numbered ? name.substr(0, mark) : name;
}

// A first line that names the columns: "image,caption".
bool names_columns(const Row& row) {
  const std::string second = lowercase(strip(row.fields[1]));
  return !is_picture_name(without_number(row.fields[0])) &&
         (second == "caption" || second == "captions" || second == "comment" || second == "text" ||
          second == "sentence");
}

std::vector<CaptionedPicture> read_rows(const std::string& path) {
  RowReader reader(path, kLongestCaption);
  Gathered gathered;
  Row row;
  for (bool first = true; reader.next(row); first = false) {
    require(row.fault == RowFault::none, row.fault_text);
    require(
        reader.has_columns(), row.place,
        ": no tab between a picture's name and its caption; a file with commas must end in .csv, COCO's in .json");
    require(row.fields.size() == 2, row.place, ": ", row.fields.size(),
            " columns, wanted 2: a picture's name and a caption");
    if (first && names_columns(row)) continue;
    const std::string name = without_number(std::string(strip(row.fields[0])));
    require(!name.empty(), row.place, ": no picture's name before the caption");
    gathered.add(name, row.fields[1], row.place);
  }
  return gathered.take(path);
}

using LargeJson = nlohmann::json;

const LargeJson& list_of(const LargeJson& all, const char* name, const std::string& where) {
  const auto found = all.is_object() ? all.find(name) : all.end();
  require(all.is_object() && found != all.end() && found->is_array(), where, ": no list '", name,
          "'; wanted COCO's captions: an object with the lists 'images' and 'annotations'");
  return *found;
}

const LargeJson& part_of(const LargeJson& entry, const char* name, const std::string& place) {
  const auto found = entry.is_object() ? entry.find(name) : entry.end();
  require(entry.is_object() && found != entry.end(), place, ": no '", name, "'");
  return *found;
}

int64_t number_of(const LargeJson& entry, const char* name, const std::string& place) {
  const LargeJson& value = part_of(entry, name, place);
  require(value.is_number_integer(), place, ": '", name, "' is no whole number");
  return value.get<int64_t>();
}

const std::string& text_of(const LargeJson& entry, const char* name, const std::string& place) {
  const LargeJson& value = part_of(entry, name, place);
  require(value.is_string(), place, ": '", name, "' is no text");
  return value.get_ref<const std::string&>();
}

}  // namespace

std::vector<CaptionedPicture> parse_coco_captions(std::string_view text, const std::string& where) {
  const LargeJson all = parse_large_json(text, where);
  std::unordered_map<int64_t, std::string> names;
  size_t number = 0;
  for (const LargeJson& image : list_of(all, "images", where)) {
    const std::string place = message(where, ": images[", number++, "]");
    const std::string& name = text_of(image, "file_name", place);
    require(!strip(name).empty(), place, ": an empty 'file_name'");
    const int64_t id = number_of(image, "id", place);
    require(names.try_emplace(id, name).second, place, ": the id ", id, " appears twice");
  }
  Gathered gathered;
  number = 0;
  for (const LargeJson& annotation : list_of(all, "annotations", where)) {
    const std::string place = message(where, ": annotations[", number++, "]");
    const int64_t id = number_of(annotation, "image_id", place);
    const auto name = names.find(id);
    require(name != names.end(), place, ": image_id ", id, " is not among 'images'");
    const std::string& caption = text_of(annotation, "caption", place);
    require(caption.size() <= kLongestCaption, place, ": a caption of ", caption.size(),
            " bytes, wanted at most ", kLongestCaption);
    gathered.add(name->second, caption, place);
  }
  return gathered.take(where);
}

std::vector<CaptionedPicture> read_captions(const std::string& path) {
  if (lowercase(std::filesystem::path(path).extension().string()) != ".json") return read_rows(path);
  return parse_coco_captions(read_text(path, kLargestJson), path);
}

std::vector<std::string> read_picture_list(const std::string& path) {
  LineReader reader(path, 4096);
  std::vector<std::string> names;
  std::unordered_set<std::string> known;
  for (std::string line; reader.next(line);) {
    require(reader.fault() == LineFault::none, reader.fault_text());
    std::string name(strip(line));
    if (name.empty()) continue;
    require(known.insert(name).second, reader.place(), ": ", in_quotes(name), " appears twice");
    names.push_back(std::move(name));
  }
  require(!names.empty(), path, ": no names; wanted a picture's name on each line");
  return names;
}

std::string caption_words(std::string_view caption) {
  const std::string lower = lowercase(caption);
  const auto outer = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x80 && std::ispunct(byte) != 0;
  };
  std::string text;
  for (std::string_view word : split_words(lower)) {
    while (!word.empty() && outer(word.front())) word.remove_prefix(1);
    while (!word.empty() && outer(word.back())) word.remove_suffix(1);
    if (!word.empty()) text.append(text.empty() ? "" : " ").append(word);
  }
  return text;
}

PictureFiles::PictureFiles(const std::filesystem::path& path) : path_(path) {
  if (is_folder(path)) return;
  tar_ = std::make_unique<TarFile>(path);
  for (const TarMember& member : tar_->members()) {
    const std::string name = std::filesystem::path(member.name).filename().string();
    const auto [place, fresh] = by_file_name_.try_emplace(name, &member);
    if (!fresh && place->second != nullptr && place->second->name != member.name) place->second = nullptr;
  }
}

const TarMember* PictureFiles::member(const std::string& name) const {
  if (const TarMember* whole = tar_->find(name)) return whole;
  const auto found = by_file_name_.find(name);
  return found == by_file_name_.end() ? nullptr : found->second;
}

std::filesystem::path PictureFiles::file_of(const std::string& name) const {
  const std::filesystem::path relative = std::filesystem::path(name).lexically_normal();
  require(relative.is_relative() && !relative.empty() && *relative.begin() != "..", path_.string(),
          ": the name ", in_quotes(name), " leads out of the folder");
  return path_ / relative;
}

bool PictureFiles::contains(const std::string& name) const {
  return tar_ != nullptr ? member(name) != nullptr : path_exists(file_of(name));
}

std::string PictureFiles::place(const std::string& name) const {
  return tar_ != nullptr ? path_.string() + ", " + name : file_of(name).string();
}

std::vector<std::byte> PictureFiles::read(const std::string& name) const {
  if (tar_ == nullptr) return read_image_bytes(file_of(name));
  const TarMember* const found = member(name);
  require(found != nullptr, path_.string(), ": no picture ", in_quotes(name),
          by_file_name_.contains(name) ? "; several folders have a file of that name" : "");
  return tar_->read(*found, kLargestPicture);
}

}  // namespace fovea::data
