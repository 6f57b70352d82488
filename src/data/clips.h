// Clips and bags: some pictures that share one label. A clip is a folder of frames; a bag is named by a list file, or
// made by the program from labelled pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/labelled_pictures.h"

namespace fovea::data {

struct Clips {
  PictureForm form;
  std::vector<uint8_t> pixels;        // [frames, height, width, channels], clip after clip
  std::vector<int64_t> starts = {0};  // clip i has frames [starts[i], starts[i + 1])
  std::vector<int32_t> labels;        // [clips]
  std::vector<std::string> classes;
  std::vector<std::string> names;  // [clips]
  // [frames]: 1 where a frame is what the label rests on; empty where that is not known.
  std::vector<uint8_t> key = {};

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  int64_t frames() const { return starts.back(); }
  int64_t length(int64_t i) const {
    return starts[static_cast<size_t>(i) + 1] - starts[static_cast<size_t>(i)];
  }
  // Bytes of one frame.
  int64_t frame_bytes() const { return form.height * form.width * form.channels; }
  std::span<const uint8_t> frame(int64_t f) const {
    return std::span(pixels).subspan(static_cast<size_t>(f * frame_bytes()),
                                     static_cast<size_t>(frame_bytes()));
  }
};

// A line of a list file: the picture of a bag.
struct ClipListRow {
  std::string clip, label, path;
  bool key = false;
};
struct ClipList {
  std::vector<ClipListRow> rows;
  bool has_keys = false;  // every row says whether the label rests on it
};
// The text of a list file: a line for each picture, `bag TAB label TAB file`, and optionally TAB and 1 where the label
// rests on that picture, else 0. Empty lines and lines that begin with # are left out. Throws Error, naming the line,
// on other columns, empty names, text that is not UTF-8, a bag with two labels, and keys in some lines only.
ClipList parse_clip_list(std::string_view text, const std::string& where);

// Clips from a list file, whose paths are relative to its folder; or from a folder with a sub-folder for each class,
// in it a sub-folder of frames for each clip, ordered by name. Pictures are brought to size x size. classes: those of a
// model; empty: as found, sorted. channels: 1 or 3. Throws Error naming the file for what cannot be used.
Clips read_clips(const std::filesystem::path& path, const PictureForm& form,
                 const std::vector<std::string>& classes = {});

// The picture files of a folder, by name. Throws Error when there is none.
std::vector<std::filesystem::path> frames_in(const std::filesystem::path& folder);

struct BagOptions {
  int64_t count = 200;
  double mean_length = 10, deviation = 2;  // of the number of pictures, at least 1
  std::string target = "9";                // class of the pictures that make a bag positive
};
// Bags of random pictures, every other one positive, which holds at least one picture of the target; the others hold
// none (Ilse et al. 2018). Classes: negative, positive. Bag i is drawn from stream i of the seed.
Clips make_bags(const Pictures& pictures, const BagOptions& options, uint64_t seed);

struct KeyFrameOptions {
  int64_t count = 200;
  int64_t length = 12;
  int64_t fragments = 6, side = 8;  // of other pictures, on each of the other frames
};
// Clips of one whole picture at a random place in time, which gives the label, among frames of fragments. Clip i is
// drawn from stream i of the seed.
Clips make_key_frame_clips(const Pictures& pictures, const KeyFrameOptions& options, uint64_t seed);

}  // namespace fovea::data
