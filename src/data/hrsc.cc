// Reads HRSC2016: parses the XML file of each picture and turns its boxes and bow points into ships.
#include "data/hrsc.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/error.h"
#include "base/parallel.h"
#include "data/bmp.h"
#include "data/bytes.h"
#include "io/json.h"

namespace fovea::data {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMostXmlBytes = uint64_t{16} << 20;
constexpr size_t kMostDepth = 32, kMostShips = 10'000, kMostFiles = 100'000;
constexpr double kFarthest = 1e5;  // pixels

// Elements and their text; attributes, comments and declarations are passed over.
class XmlWalk {
 public:
  XmlWalk(std::string_view text, const std::string& where) : rest_(text), where_(where) {}

  struct Event {
    enum class Kind { begin, end, nothing } kind = Kind::nothing;
    std::string_view name;
    std::string_view text;  // end: what stood before it, since the last tag
  };
  Event next() {
    for (;;) {
      const size_t open = rest_.find('<');
      if (open == std::string_view::npos) {
        require(names_.empty(), where_, ": cut off within <",
                names_.empty() ? "" : std::string(names_.back()), ">; wanted an annotation of HRSC2016");
        return {};
      }
      const std::string_view before = rest_.substr(0, open);
      rest_.remove_prefix(open + 1);
      if (skip("!--", "-->") || skip("?", "?>") || skip("!", ">")) continue;
      const size_t close = rest_.find('>');
      require(close != std::string_view::npos, where_,
              ": a tag without an end; wanted an annotation of HRSC2016");
      std::string_view tag = rest_.substr(0, close);
      rest_.remove_prefix(close + 1);
      if (tag.ends_with('/')) continue;  // an element without content
      if (tag.starts_with('/')) return ended(tag.substr(1), before);
      const std::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n"));
      require(!name.empty() && names_.size() < kMostDepth, where_,
              ": an element without a name, or more than ", kMostDepth, " within each other");
      names_.push_back(name);
      return {Event::Kind::begin, name, {}};
    }
  }

 private:
  bool skip(std::string_view begin, std::string_view end) {
    if (!rest_.starts_with(begin)) return false;
    const size_t at = rest_.find(end, begin.size());
    require(at != std::string_view::npos, where_, ": <", std::string(begin), " without its end");
    rest_.remove_prefix(at + end.size());
    return true;
  }
  Event ended(std::string_view name, std::string_view text) {
    name = name.substr(0, name.find_first_of(" \t\r\n"));
    require(!names_.empty() && names_.back() == name, where_, ": </",
            in_quotes(std::string(name.substr(0, 64))), " closes no element that is open");
    names_.pop_back();
    return {Event::Kind::end, name, text};
  }

  std::string_view rest_;
  const std::string& where_;
  std::vector<std::string_view> names_;
};

// The numbers of one object, as they come.
struct Object {
  std::optional<double> cx, cy, w, h, angle, header_x, header_y;

  std::optional<double>* member(std::string_view name) {
    if (name == "mbox_cx") return &cx;
    if (name == "mbox_cy") return &cy;
    if (name == "mbox_w") return &w;
    if (name == "mbox_h") return &h;
    if (name == "mbox_ang") return &angle;
    if (name == "header_x") return &header_x;
    if (name == "header_y") return &header_y;
    return nullptr;
  }
};

double parse_number(std::string_view text, std::string_view name, const std::string& where) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && std::abs(value) <= kFarthest, where,
          ": ", std::string(name), " is ", in_quotes(std::string(text.substr(0, 64))),
          ", wanted a number from -100000 to 100000");
  return value;
}

Ship ship_of(const Object& object, size_t number, const std::string& where) {
  require(
      object.cx && object.cy && object.w && object.h && object.angle && object.header_x && object.header_y,
      where, ": object ", number,
      " lacks one of mbox_cx, mbox_cy, mbox_w, mbox_h, mbox_ang, header_x and header_y");
  require(*object.w > 0 && *object.h > 0, where, ": object ", number, " is ", *object.w, " x ", *object.h,
          " pixels, wanted more than 0");
  Ship ship{*object.cx, *object.cy, *object.w, *object.h, *object.angle};
  // A box may be given with its long side across.
  if (ship.width > ship.length) {
    std::swap(ship.length, ship.width);
    ship.heading += std::numbers::pi / 2;
  }
  const Point front = bow(ship), back = stern(ship);
  const auto far = [&](const Point& p) { return std::hypot(p.x - *object.header_x, p.y - *object.header_y); };
  if (far(back) < far(front)) ship.heading += std::numbers::pi;
  ship.heading = std::remainder(ship.heading, 2 * std::numbers::pi);
  return ship;
}

fs::path picture_of(const fs::path& folder, const std::string& stem) {
  for (const fs::path& in : {folder / "AllImages", folder / "images", folder})
    for (const char* ending : {".bmp", ".png", ".jpg", ".jpeg"})
      if (fs::path path = in / (stem + ending); fs::is_regular_file(path)) return path;
  fail(folder.string(), ": no picture ", stem, ".bmp, .png or .jpg for its annotation; wanted it in ",
       (folder / "AllImages").string(), " or beside it");
}

}  // namespace

std::vector<Ship> parse_hrsc(std::string_view xml, const std::string& where) {
  std::vector<Ship> ships;
  XmlWalk walk(xml, where);
  std::optional<Object> object;
  bool annotation = false;
  for (XmlWalk::Event event = walk.next(); event.kind != XmlWalk::Event::Kind::nothing; event = walk.next()) {
    const bool begins = event.kind == XmlWalk::Event::Kind::begin;
    annotation |= event.name == "HRSC_Image" || event.name == "HRSC_Objects";
    if (event.name == "HRSC_Object") {
      require(begins != object.has_value(), where, ": an HRSC_Object within another");
      if (begins) {
        object.emplace();
        continue;
      }
      require(ships.size() < kMostShips, where, ": more than ", kMostShips, " ships");
      ships.push_back(ship_of(*object, ships.size() + 1, where));
      object.reset();
    } else if (object && !begins) {
      if (std::optional<double>* value = object->member(event.name))
        *value = parse_number(event.text, event.name, where);
    }
  }
  require(annotation, where, ": no annotation of HRSC2016; wanted an element HRSC_Image with HRSC_Objects");
  return ships;
}

std::vector<ShipScene> read_hrsc(const fs::path& folder, int64_t size) {
  require(fs::is_directory(folder), folder.string(),
          ": no such folder; wanted one with Annotations and AllImages "
          "(HRSC2016), or the word scenes");
  const fs::path annotations = fs::is_directory(folder / "Annotations") ? folder / "Annotations" : folder;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(annotations))
    if (entry.path().extension() == ".xml") files.push_back(entry.path());
  require(!files.empty(), annotations.string(), " contains no .xml files; wanted HRSC2016's annotations");
  require(files.size() <= kMostFiles, annotations.string(), " contains ", files.size(),
          " annotations, wanted at most ", kMostFiles);
  std::sort(files.begin(), files.end());
  std::vector<ShipScene> scenes(files.size());
  parallel_for(static_cast<int64_t>(files.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const fs::path& file = files[static_cast<size_t>(i)];
      const std::vector<std::byte> xml = read_bytes(file, kMostXmlBytes);
      ShipScene scene;
      scene.ships = parse_hrsc({reinterpret_cast<const char*>(xml.data()), xml.size()}, file.string());
      const fs::path picture = picture_of(folder, file.stem().string());
      const std::vector<std::byte> bytes = read_image_bytes(picture);
      scene.image =
          is_bmp(bytes) ? decode_bmp(bytes, picture.string()) : decode_image(bytes, picture.string());
      scenes[static_cast<size_t>(i)] = fitted(scene, size);
    }
  });
  return scenes;
}

}  // namespace fovea::data
