#include "data/clips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/error_of.h"
#include "base/parallel.h"
#include "data/png_writer.h"
#include "io/file.h"
#include "io/temporary_directory.h"

namespace fovea::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ClipList, HasALineForEachPicture) {
  const ClipList list =
      parse_clip_list("\xef\xbb\xbf# bags\na\tyes\t1.png\t0\r\n\na\tyes\t2.png\t1\nb\tno\t3.png\t0", "x");
  ASSERT_EQ(list.rows.size(), 3u);
  EXPECT_TRUE(list.has_keys);
  EXPECT_EQ(list.rows[1].path, "2.png");
  EXPECT_TRUE(list.rows[1].key);
  EXPECT_EQ(list.rows[2].label, "no");
  EXPECT_FALSE(parse_clip_list("a\tyes\t1.png\n", "x").has_keys);
}

TEST(ClipList, AFirstLineThatNamesTheColumnsIsSkipped) {
  for (const char* header : {"bag\tlabel\tfile\n", "Bag\tClass\tpicture\tkey\n"}) {
    const bool keyed = std::string(header).find("key") != std::string::npos;
    const ClipList list =
        parse_clip_list(header + std::string(keyed ? "a\tx\t1.png\t0\n" : "a\tx\t1.png\n"), "list");
    ASSERT_EQ(list.rows.size(), 1u);
    EXPECT_EQ(list.rows[0].path, "1.png");
  }
  EXPECT_EQ(parse_clip_list("a\tlabel\tlabel.png\n", "list").rows.size(), 1u);
}

TEST(ClipList, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_THAT(error_of([] { parse_clip_list("", "x.tsv"); }), HasSubstr("x.tsv: no lines"));
  EXPECT_THAT(error_of([] { parse_clip_list("a\tyes\t1.png\nb no 2.png\n", "x.tsv"); }),
              HasSubstr("x.tsv, line 2: got 1 columns"));
  EXPECT_THAT(error_of([] { parse_clip_list("a\t \t1.png\n", "x"); }), HasSubstr("column 2 is empty"));
  EXPECT_THAT(error_of([] { parse_clip_list("a\tyes\t1.png\nb\tno\t2.png\t1\n", "x"); }),
              HasSubstr("4 columns, where the lines before have 3"));
  EXPECT_THAT(error_of([] { parse_clip_list("a\tyes\t1.png\t2\n", "x"); }), HasSubstr("wanted 0 or 1"));
  EXPECT_THAT(error_of([] { parse_clip_list("a\tyes\t1.png\na\tno\t2.png\n", "x"); }),
              HasSubstr("before it had 'yes'"));
  EXPECT_THAT(error_of([] { parse_clip_list("a\tyes\t\xff.png\n", "x"); }), HasSubstr("not UTF-8"));
}

void write_picture(const std::filesystem::path& path, uint8_t grey) {
  std::filesystem::create_directories(path.parent_path());
  write_atomically(path, encode_png(std::vector<uint8_t>(20 * 20, grey), {20, 20, 1}));
}

TEST(Clips, AreReadFromListsAndFolders) {
  const TemporaryDirectory folder;
  for (const char* name : {"up/one/b.png", "up/one/a.png", "down/two/a.png", "down/three/a.png"})
    write_picture(folder / "set" / name, name[0] == 'u' ? 200 : 50);
  write_picture(folder / "set/up/one/a.png", 100);
  const PictureForm form{16, 16, 1};
  const Clips clips = read_clips(folder / "set", form);
  EXPECT_THAT(clips.classes, ElementsAre("down", "up"));
  EXPECT_THAT(clips.names, ElementsAre("down/three", "down/two", "up/one"));
  EXPECT_THAT(clips.starts, ElementsAre(0, 1, 2, 4));
  EXPECT_EQ(clips.frame(2)[0], 100) << "frames are ordered by name";
  EXPECT_EQ(clips.frame(3)[0], 200);
  EXPECT_TRUE(clips.key.empty());

  write_atomically(
      folder / "list.tsv",
      "x\tup\tset/up/one/b.png\t1\ny\tdown\tset/down/two/a.png\t0\nx\tup\tset/down/two/a.png\t0\n");
  const Clips listed = read_clips(folder / "list.tsv", form, {"up", "down", "left"});
  EXPECT_THAT(listed.names, ElementsAre("x", "y"));
  EXPECT_THAT(listed.labels, ElementsAre(0, 1));
  EXPECT_THAT(listed.starts, ElementsAre(0, 2, 3));
  EXPECT_THAT(listed.key, ElementsAre(1, 0, 0));
  EXPECT_EQ(listed.frame(1)[0], 50);

  EXPECT_THAT(error_of([&] {
                read_clips(folder / "list.tsv", form, {"upp", "down"});
              }),
              HasSubstr("did you mean 'upp'"));
  write_atomically(folder / "gone.tsv", "x\tup\tnowhere.png\ny\tdown\tset/down/two/a.png\n");
  EXPECT_THAT(error_of([&] { read_clips(folder / "gone.tsv", form); }), HasSubstr("nowhere.png"));
  write_atomically(folder / "one.tsv", "x\tup\tset/up/one/b.png\n");
  EXPECT_THAT(error_of([&] { read_clips(folder / "one.tsv", form); }),
              HasSubstr("wanted at least two labels"));
  std::filesystem::create_directories(folder / "set/up/empty");
  EXPECT_THAT(error_of([&] { read_clips(folder / "set", form); }), HasSubstr("empty: no frames"));
}

TEST(Clips, FramesAreInTheOrderOfTheirNumbers) {
  const TemporaryDirectory folder;
  for (const char* name : {"f10.png", "f9.png", "f2.png", "f1.png", "f02.png", "f2b.png", "e99.png", "f.png"})
    write_picture(folder / name, 1);
  std::vector<std::string> names;
  for (const auto& frame : frames_in(folder.path())) names.push_back(frame.filename().string());
  EXPECT_THAT(names,
              ElementsAre("e99.png", "f.png", "f1.png", "f02.png", "f2.png", "f2b.png", "f9.png", "f10.png"));
}

// Pictures of 10 classes, filled with 10 times their class.
Pictures digits(int count) {
  Pictures pictures{.form = {12, 12, 1}, .pixels = {}, .labels = {}, .classes = {}};
  for (int i = 0; i < 10; ++i) pictures.classes.push_back(std::to_string(i));
  for (int i = 0; i < count; ++i) {
    pictures.labels.push_back(i % 10);
    pictures.pixels.insert(pictures.pixels.end(), 144, static_cast<uint8_t>(10 + 20 * (i % 10)));
  }
  return pictures;
}

TEST(Bags, ArePositiveWhenTheyHoldTheTarget) {
  const Clips bags = make_bags(digits(200), {.count = 300}, 7);
  EXPECT_EQ(bags.count(), 300);
  EXPECT_THAT(bags.classes, ElementsAre("negative", "positive"));
  double lengths = 0;
  for (int64_t b = 0; b < 300; ++b) {
    bool holds = false;
    for (int64_t f = bags.starts[static_cast<size_t>(b)]; f < bags.starts[static_cast<size_t>(b) + 1]; ++f) {
      const bool nine = bags.frame(f)[0] == 190;
      EXPECT_EQ(bags.key[static_cast<size_t>(f)], nine);
      holds |= nine;
    }
    EXPECT_EQ(bags.labels[static_cast<size_t>(b)], holds);
    EXPECT_EQ(holds, b % 2 == 1);
    lengths += static_cast<double>(bags.length(b));
  }
  EXPECT_NEAR(lengths / 300, 10, 0.5);
  EXPECT_EQ(make_bags(digits(200), {.count = 300}, 7).pixels, bags.pixels);
  EXPECT_NE(make_bags(digits(200), {.count = 300}, 8).pixels, bags.pixels);
  EXPECT_THAT(error_of([] { make_bags(digits(200), {.target = "ten"}, 1); }),
              HasSubstr("'ten' is not a class"));
  EXPECT_THAT(error_of([] { make_bags(digits(5), {}, 1); }), HasSubstr("has 0 of 5 pictures"));
}

TEST(KeyFrameClips, HaveOneWholePictureAtARandomPlace) {
  const Clips clips = make_key_frame_clips(digits(50), {.count = 40, .length = 6, .side = 4}, 3);
  std::vector<int64_t> places;
  for (int64_t c = 0; c < 40; ++c) {
    ASSERT_EQ(clips.length(c), 6);
    int64_t keys = 0;
    for (int64_t t = 0; t < 6; ++t) {
      const int64_t f = clips.starts[static_cast<size_t>(c)] + t;
      if (clips.key[static_cast<size_t>(f)] == 0) continue;
      ++keys;
      places.push_back(t);
      EXPECT_EQ(clips.frame(f)[0], 10 + 20 * clips.labels[static_cast<size_t>(c)]);
    }
    EXPECT_EQ(keys, 1);
  }
  EXPECT_EQ(*std::min_element(places.begin(), places.end()), 0);
  EXPECT_EQ(*std::max_element(places.begin(), places.end()), 5);
  set_num_threads(3);
  EXPECT_EQ(make_key_frame_clips(digits(50), {.count = 40, .length = 6, .side = 4}, 3).pixels, clips.pixels);
  set_num_threads(0);
}

}  // namespace
}  // namespace fovea::data
