#include "data/captions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/files.h"
#include "data/images.h"

namespace fovea::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string shown(const std::vector<CaptionedPicture>& pictures) {
  std::string text;
  for (const CaptionedPicture& picture : pictures) {
    text += picture.name + ":";
    for (const std::string& caption : picture.captions) text += " [" + caption + "]";
    text += "\n";
  }
  return text;
}

TEST(Captions, FlickrTokensAreGatheredByPicture) {
  const TestFolder folder;
  const std::string path =
      folder.write("tokens.txt",
                   "b.jpg#0\tA dog .\nb.jpg#1\tTwo  dogs\na.jpg#0\tsnow\nb.jpg#4\tmore #2\n"
                   "c.jpg.1#0\tpeople waiting\n");
  EXPECT_EQ(shown(read_captions(path)),
            "b.jpg: [A dog .] [Two dogs] [more #2]\na.jpg: [snow]\nc.jpg.1: [people waiting]\n");
}

TEST(Captions, TwoColumnsBetweenTabsOrCommas) {
  const TestFolder folder;
  EXPECT_EQ(shown(read_captions(folder.write("a.tsv", "a.jpg\tone\nb.png\ttwo\na.jpg\tthree\n"))),
            "a.jpg: [one] [three]\nb.png: [two]\n");
  EXPECT_EQ(shown(read_captions(folder.write("a.csv", "image,caption\na.jpg,\"one, two\"\na.jpg,three\n"))),
            "a.jpg: [one, two] [three]\n");
}

TEST(Captions, CocoJsonJoinsAnnotationsToPictures) {
  const TestFolder folder;
  const std::string path =
      folder.write("captions.json", R"({"info": {}, "images": [{"id": 7, "file_name": "x.jpg"},
    {"id": 9, "file_name": "y.jpg"}, {"id": 11, "file_name": "z.jpg"}],
    "annotations": [{"image_id": 9, "id": 1, "caption": "a\ncat"}, {"image_id": 7, "id": 2, "caption": "a dog"},
    {"image_id": 9, "id": 3, "caption": "the cat "}]})");
  EXPECT_EQ(shown(read_captions(path)), "y.jpg: [a cat] [the cat]\nx.jpg: [a dog]\n");
}

TEST(Captions, WhatCannotBeUsedIsNamed) {
  const TestFolder folder;
  const auto fault = [&](const char* name, const char* text) {
    const std::string path = folder.write(name, text);
    return complaint(folder, [&] { read_captions(path); });
  };
  EXPECT_EQ(
      fault("a.txt", "image,caption\na.jpg,one\n"),
      "a.txt, line 1: no tab between a picture's name and its caption; a file with commas must end in .csv, COCO's "
      "in .json");
  EXPECT_EQ(fault("b.txt", "a.jpg\tone\nb.jpg\ttwo\tthree\n"),
            "b.txt, line 2: 3 columns, wanted 2: a picture's name and a caption");
  EXPECT_EQ(fault("c.txt", "a.jpg#0\tone\na.jpg#1\t  \n"),
            "c.txt, line 2: an empty caption of 'a.jpg'; correct or remove it");
  EXPECT_EQ(fault("d.txt", "\tone\n"), "d.txt, line 1: no picture's name before the caption");
  EXPECT_THAT(fault("e.txt", "a.jpg\tone\xff\n"), HasSubstr("e.txt, line 1: not UTF-8"));
  EXPECT_THAT(fault("f.txt", ""), HasSubstr("f.txt: no captions"));
  EXPECT_THAT(fault("a.json", "{"), HasSubstr("a.json: no valid JSON"));
  EXPECT_THAT(fault("b.json", R"({"images": []})"), HasSubstr("b.json: no list 'annotations'"));
  EXPECT_THAT(fault("c.json", R"([1])"), HasSubstr("c.json: no list 'images'"));
  EXPECT_EQ(
      fault("d.json",
            R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 2, "caption": "x"}]})"),
      "d.json: annotations[0]: image_id 2 is not among 'images'");
  EXPECT_EQ(
      fault("e.json",
            R"({"images": [{"id": 1, "file_name": "a"}, {"id": 1, "file_name": "b"}], "annotations": []})"),
      "e.json: images[1]: the id 1 appears twice");
  EXPECT_EQ(fault("f.json", R"({"images": [{"id": "1", "file_name": "a"}], "annotations": []})"),
            "f.json: images[0]: 'id' is no whole number");
}

TEST(Captions, AListNamesEachPictureOnce) {
  const TestFolder folder;
  EXPECT_THAT(read_picture_list(folder.write("a", "x.jpg\r\n\ny.jpg \n")), ElementsAre("x.jpg", "y.jpg"));
  EXPECT_EQ(complaint(folder, [&] { read_picture_list(folder.write("b", "x.jpg\ny.jpg\nx.jpg\n")); }),
            "b, line 3: 'x.jpg' appears twice");
  EXPECT_THAT(complaint(folder, [&] { read_picture_list(folder.write("c", "\n")); }),
              HasSubstr("c: no names"));
}

TEST(Captions, WordsHaveNeitherCaseNorPunctuation) {
  EXPECT_EQ(caption_words("A dog 's T-shirt , wet ( \"very\" ) !"), "a dog s t-shirt wet very");
  EXPECT_EQ(caption_words(" . "), "");
  EXPECT_EQ(caption_words("ÉCOLE, don't"), "école don't");
}

TEST(PictureFiles, AFolderGivesOnlyItsOwnFiles) {
  const TestFolder folder;
  folder.write("secret", "x");
  std::filesystem::create_directories(folder.path("pictures/more"));
  folder.write("pictures/a.jpg", "A");
  folder.write("pictures/more/b.jpg", "B");
  const PictureFiles files(folder.path("pictures"));
  EXPECT_TRUE(files.contains("a.jpg"));
  EXPECT_TRUE(files.contains("more/b.jpg"));
  EXPECT_FALSE(files.contains("b.jpg"));
  EXPECT_EQ(files.read("a.jpg").size(), 1u);
  for (const char* name : {"../secret", "more/../../secret", "/etc/passwd"})
    EXPECT_THAT(complaint(folder, [&] { files.read(name); }), HasSubstr("leads out of the folder")) << name;
}

TEST(PictureFiles, ATarIsAskedByNameWithOrWithoutItsFolders) {
  const TestFolder folder;
  std::filesystem::create_directories(folder.path("one"));
  std::filesystem::create_directories(folder.path("two"));
  folder.write("one/a.jpg", "A");
  folder.write("one/same.jpg", "1");
  folder.write("two/same.jpg", "22");
  ASSERT_EQ(std::system(("cd " + folder.path("") + " && tar cf all.tar one two").c_str()), 0);
  const PictureFiles files(folder.path("all.tar"));
  EXPECT_EQ(files.read("a.jpg").size(), 1u);
  EXPECT_EQ(files.read("two/same.jpg").size(), 2u);
  EXPECT_FALSE(files.contains("same.jpg"));
  EXPECT_EQ(complaint(folder, [&] { files.read("same.jpg"); }),
            "all.tar: no picture 'same.jpg'; several folders have a file of that name");
  EXPECT_EQ(complaint(folder, [&] { files.read("b.jpg"); }), "all.tar: no picture 'b.jpg'");
}

}  // namespace
}  // namespace fovea::data
