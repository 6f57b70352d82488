// Reads clips from folders of frames and bags from list files, and makes bags and clips with key frames from labelled
// pictures.
#include "data/clips.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/fields.h"
#include "base/parallel.h"
#include "data/images.h"
#include "data/scenes.h"
#include "data/text.h"
#include "io/file.h"
#include "io/json.h"

namespace fovea::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostListBytes = uint64_t{256} << 20;

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  for (size_t begin = 0;;) {
    const size_t tab = line.find('\t', begin);
    columns.push_back(line.substr(begin, tab - begin));
    if (tab == std::string_view::npos) return columns;
    begin = tab + 1;
  }
}

// By name as people count: "frame 9" before "frame 10". Names that differ in leading zeros alone keep a fixed order.
bool comes_before(const fs::path& a, const fs::path& b) {
  const std::string x = a.filename().string(), y = b.filename().string();
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // The digits from `at` on without leading zeros; `at` moves behind them.
  const auto take_number = [&](const std::string& text, size_t& at) {
    while (at < text.size() && text[at] == '0') ++at;
    const size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return std::string_view(text).substr(begin, at - begin);
  };
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    if (is_digit(x[i]) && is_digit(y[j])) {
      const std::string_view m = take_number(x, i), n = take_number(y, j);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
    } else if (x[i] != y[j]) {
      return x[i] < y[j];
    } else {
      ++i, ++j;
    }
  }
  if (i < x.size() || j < y.size()) return j < y.size();
  return x < y;
}

ClipListRow row_of(std::string_view line, const std::string& place, bool& keyed) {
  require(is_utf8(line), place, ": not UTF-8");
  const std::vector<std::string_view> columns = columns_of(line);
  require(
      columns.size() == 3 || columns.size() == 4, place, ": got ", columns.size(),
      " columns between tabs, wanted 3 or 4: bag, label, picture file, and optionally 1 where the label rests on "
      "the picture, else 0");
  for (size_t c = 0; c < 3; ++c) require(!strip(columns[c]).empty(), place, ": column ", c + 1, " is empty");
  keyed = columns.size() == 4;
  require(!keyed || columns[3] == "0" || columns[3] == "1", place, ": got ",
          in_quotes(keyed ? columns[3] : ""), " in column 4, wanted 0 or 1");
  return {std::string(columns[0]), std::string(columns[1]), std::string(columns[2]),
          keyed && columns[3] == "1"};
}

// Whether a row names columns, as tables that programs write begin.
bool names_columns(std::string_view line) {
  const std::vector<std::string_view> columns = columns_of(line);
  if (columns.size() < 3 || columns[2].find_first_of("./") != std::string_view::npos) return false;
  const std::string label = lowercase(strip(columns[1]));
  return label == "label" || label == "class";
}

// A clip before its pictures are read.
struct NamedClip {
  std::string name, label;
  std::vector<fs::path> files;
  std::vector<uint8_t> key;
};

std::vector<NamedClip> clips_of_list(const fs::path& path) {
  // An archive, or an IDX file without its labels, is given in place of a list.
  const bool large = fs::is_regular_file(path) && fs::file_size(path) > kMostListBytes;
  const std::string text = large ? "" : read_text(path, kMostListBytes);
  require(
      !large && text.find('\0') == std::string::npos, path.string(),
      ": not a list file; wanted a list file, a folder of clips (unpack an archive first), or two IDX files, "
      "pictures and labels");
  const ClipList list = parse_clip_list(text, path.string());
  std::vector<NamedClip> clips;
  std::map<std::string, size_t> places;
  for (const ClipListRow& row : list.rows) {
    const auto [found, fresh] = places.emplace(row.clip, clips.size());
    if (fresh) clips.push_back({row.clip, row.label, {}, {}});
    NamedClip& clip = clips[found->second];
    clip.files.push_back(path.parent_path() / row.path);
    if (list.has_keys) clip.key.push_back(row.key);
  }
  return clips;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !entry.path().filename().string().starts_with('.'))
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<NamedClip> clips_of_folder(const fs::path& path) {
  std::vector<NamedClip> clips;
  for (const fs::path& label : folders_in(path))
    for (const fs::path& clip : folders_in(label))
      clips.push_back(
          {(label.filename() / clip.filename()).string(), label.filename().string(), frames_in(clip), {}});
  require(!clips.empty(), path.string(),
          ": no clips; wanted a folder for each class, in it a folder of .jpg or .png frames for each clip");
  return clips;
}

// Draws clips of any lengths: draw(clip, rng) fills one clip, and they are joined in order.
template <class Draw>
Clips gather(const PictureForm& form, int64_t count, uint64_t seed, Draw draw) {
  std::vector<Clips> drawn(static_cast<size_t>(count));
  const Rng streams(seed);
  parallel_for(count, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      drawn[static_cast<size_t>(i)].form = form;
      draw(i, drawn[static_cast<size_t>(i)], streams.split(static_cast<uint64_t>(i)));
    }
  });
  Clips all{.form = form, .pixels = {}, .labels = {}, .classes = {}, .names = {}};
  for (const Clips& one : drawn) {
    all.pixels.insert(all.pixels.end(), one.pixels.begin(), one.pixels.end());
    all.key.insert(all.key.end(), one.key.begin(), one.key.end());
    all.starts.push_back(all.starts.back() + static_cast<int64_t>(one.key.size()));
    all.labels.push_back(one.labels[0]);
    all.names.push_back(message("made ", all.names.size()));
  }
  return all;
}

void append(std::span<const uint8_t> picture, bool key, Clips& clip) {
  clip.pixels.insert(clip.pixels.end(), picture.begin(), picture.end());
  clip.key.push_back(key);
}

}  // namespace

ClipList parse_clip_list(std::string_view text, const std::string& where) {
  ClipList list;
  std::map<std::string, std::string> labels;
  int64_t line_number = 0;
  bool first = true;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (strip(line).empty() || line.starts_with('#')) continue;
    const std::string place = message(where, ", line ", line_number);
    bool keyed = false;
    if (std::exchange(first, false) && names_columns(line)) continue;
    ClipListRow row = row_of(line, place, keyed);
    require(list.rows.empty() || keyed == list.has_keys, place, ": ", keyed ? "4" : "3",
            " columns, where the lines before have ", keyed ? "3" : "4");
    list.has_keys = keyed;
    const auto [found, fresh] = labels.emplace(row.clip, row.label);
    require(found->second == row.label, place, ": the bag ", in_quotes(row.clip), " has the label ",
            in_quotes(row.label), ", before it had ", in_quotes(found->second));
    list.rows.push_back(std::move(row));
  }
  require(!list.rows.empty(), where,
          ": no lines; wanted a line for each picture: bag, tab, label, tab, file");
  return list;
}

std::vector<fs::path> frames_in(const fs::path& folder) {
  std::vector<fs::path> frames;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_picture_name(entry.path()) && !entry.path().filename().string().starts_with('.'))
      frames.push_back(entry.path());
  require(!frames.empty(), folder.string(), ": no frames; wanted .jpg, .jpeg or .png files");
  std::sort(frames.begin(), frames.end(), comes_before);
  return frames;
}

Clips read_clips(const fs::path& path, const PictureForm& form, const std::vector<std::string>& classes) {
  const std::vector<NamedClip> named = is_folder(path) ? clips_of_folder(path) : clips_of_list(path);
  Clips clips{.form = form, .pixels = {}, .labels = {}, .classes = classes, .names = {}};
  if (classes.empty()) {
    std::set<std::string> found;
    for (const NamedClip& clip : named) found.insert(clip.label);
    clips.classes.assign(found.begin(), found.end());
    require(clips.classes.size() > 1, path.string(), ": all clips have the label ", in_quotes(named[0].label),
            "; wanted at least two labels");
  }
  const std::vector<std::string_view> known(clips.classes.begin(), clips.classes.end());
  std::vector<const fs::path*> files;
  for (const NamedClip& clip : named) {
    const auto found = std::find(known.begin(), known.end(), clip.label);
    require(found != known.end(), path.string(), ": the label ", in_quotes(clip.label),
            " is not among the model's", name_hint(clip.label, known));
    clips.labels.push_back(static_cast<int32_t>(found - known.begin()));
    clips.names.push_back(clip.name);
    clips.key.insert(clips.key.end(), clip.key.begin(), clip.key.end());
    for (const fs::path& file : clip.files) files.push_back(&file);
    clips.starts.push_back(static_cast<int64_t>(files.size()));
  }
  const auto bytes = static_cast<size_t>(clips.frame_bytes());
  clips.pixels.resize(files.size() * bytes);
  parallel_for(static_cast<int64_t>(files.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      const std::vector<uint8_t> one = read_picture_as(*files[static_cast<size_t>(f)], form);
      std::copy(one.begin(), one.end(), clips.pixels.begin() + f * static_cast<int64_t>(bytes));
    }
  });
  return clips;
}

Clips make_bags(const Pictures& pictures, const BagOptions& options, uint64_t seed) {
  const auto target = std::find(pictures.classes.begin(), pictures.classes.end(), options.target);
  require(target != pictures.classes.end(), "target: ", in_quotes(options.target),
          " is not a class of the pictures",
          name_hint(options.target, {pictures.classes.begin(), pictures.classes.end()}));
  const auto wanted = static_cast<int32_t>(target - pictures.classes.begin());
  std::vector<int64_t> positive, negative;
  for (int64_t i = 0; i < pictures.count(); ++i)
    (pictures.labels[static_cast<size_t>(i)] == wanted ? positive : negative).push_back(i);
  require(!positive.empty() && !negative.empty(), "target: the class ", in_quotes(options.target), " has ",
          positive.size(), " of ", pictures.count(), " pictures; bags need pictures of it and of others");
  const auto one_of = [](const std::vector<int64_t>& list, Rng& rng) {
    return list[static_cast<size_t>(rng.below(static_cast<int64_t>(list.size())))];
  };
  Clips bags = gather(pictures.form, options.count, seed, [&](int64_t bag, Clips& out, Rng rng) {
    const bool is_positive = bag % 2 == 1;
    const int64_t length =
        std::max<int64_t>(1, std::llround(options.mean_length + options.deviation * double{rng.normal()}));
    std::vector<int64_t> chosen;
    bool holds = false;
    for (int64_t k = 0; k < length; ++k) {
      chosen.push_back(is_positive ? rng.below(pictures.count()) : one_of(negative, rng));
      holds |= pictures.labels[static_cast<size_t>(chosen.back())] == wanted;
    }
    if (is_positive && !holds) chosen[static_cast<size_t>(rng.below(length))] = one_of(positive, rng);
    for (const int64_t i : chosen)
      append(pictures.picture(i), pictures.labels[static_cast<size_t>(i)] == wanted, out);
    out.labels = {is_positive ? 1 : 0};
  });
  bags.classes = {"negative", "positive"};
  return bags;
}

Clips make_key_frame_clips(const Pictures& pictures, const KeyFrameOptions& options, uint64_t seed) {
  Scene scene{.kind = SceneKind::cluttered,
              .size = std::max(pictures.form.height, pictures.form.width),
              .fragments = options.fragments,
              .side = options.side};
  require(pictures.form.height == pictures.form.width, "clips are made of square pictures; got ",
          pictures.form.height, " x ", pictures.form.width);
  scene_form(scene, pictures.form);
  Clips clips = gather(pictures.form, options.count, seed, [&](int64_t, Clips& out, Rng rng) {
    const int64_t place = rng.below(options.length), key = rng.below(pictures.count());
    std::vector<uint8_t> frame(static_cast<size_t>(out.frame_bytes()));
    for (int64_t t = 0; t < options.length; ++t) {
      if (t == place) {
        append(pictures.picture(key), true, out);
        continue;
      }
      draw_fragments(pictures, scene, rng.split(static_cast<uint64_t>(t)), frame);
      append(frame, false, out);
    }
    out.labels = {pictures.labels[static_cast<size_t>(key)]};
  });
  clips.classes = pictures.classes;
  return clips;
}

}  // namespace fovea::data
