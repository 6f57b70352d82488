// IDX files and tar archives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>

#include "base/error_of.h"
#include "data/files.h"
#include "data/idx.h"
#include "data/tar.h"

namespace fovea::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string idx(std::vector<uint32_t> sizes, const std::string& values, char type = 8) {
  std::string bytes{'\0', '\0', type, static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes)
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(size >> shift));
  return bytes + values;
}

IdxArray parse(const std::string& bytes) {
  return parse_idx(std::as_bytes(std::span(bytes)), "file");
}

TEST(Idx, SizesAndValuesAreRead) {
  const IdxArray array = parse(idx({2, 3}, "abcdef"));
  EXPECT_THAT(array.sizes, ElementsAre(2, 3));
  EXPECT_THAT(array.values, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  EXPECT_TRUE(parse(idx({0, 3}, "")).values.empty());
}

TEST(Idx, PlainAndGzipAreTheSame) {
  const TestFolder folder;
  const std::string bytes = idx({5}, "12345");
  EXPECT_EQ(read_idx(folder.write("plain", bytes)).values,
            read_idx(folder.write_gzip("packed.gz", bytes)).values);
}

TEST(Idx, WhatIsCutOffOrTooLongOrNoIdxIsRefused) {
  const std::string whole = idx({2, 3}, "abcdef");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(error_of([&] { parse(whole.substr(0, size)); }), ::testing::StartsWith("file: ")) << size;
  EXPECT_EQ(error_of([&] { parse(whole.substr(0, 15)); }), "file: cut off: 3 of 6 values");
  EXPECT_EQ(error_of([&] { parse(whole + "g"); }), "file: bytes after the last of 6 values");
  EXPECT_EQ(error_of([&] { parse(idx({1}, "a", 13)); }),
            "file: an IDX file of type 13, wanted 8 (unsigned bytes)");
  EXPECT_EQ(error_of([&] { parse("text, no array"); }), "file: no IDX file");
  EXPECT_THAT(error_of([&] {
                parse(idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, ""));
              }),
              HasSubstr("more than"));
  // A promise of a gigabyte takes no more memory than what has come.
  EXPECT_EQ(error_of([&] { parse(idx({1u << 30}, "abc")); }), "file: cut off: 3 of 1073741824 values");
}

TEST(Idx, ADamagedGzipIsRefused) {
  const TestFolder folder;
  folder.write_gzip("whole.gz", idx({3000}, std::string(3000, 'x')));
  std::ifstream in(folder.path("whole.gz"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  bytes.resize(bytes.size() - 9);
  const std::string cut = folder.write("cut.gz", bytes);
  EXPECT_THAT(complaint(folder, [&] { read_idx(cut); }), ::testing::StartsWith("cut.gz: "));
  EXPECT_THAT(complaint(folder, [&] { read_idx(folder.path("none.gz")); }), HasSubstr("cannot open none.gz"));
}

TEST(Idx, AFifoIsRefusedInsteadOfWaitedFor) {
  const TestFolder folder;
  const std::string path = folder.path("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(complaint(folder, [&] { read_idx(path); }), HasSubstr("not a regular file"));
}

TEST(Idx, PicturesAndLabelsMustBeAsMany) {
  const TestFolder folder;
  const std::string images = folder.write("images", idx({2, 1, 2}, "abcd"));
  const std::string labels = folder.write("labels", idx({2}, {'\x07', '\x09'}));
  const LabelledImages read = read_labelled_idx(images, labels);
  EXPECT_EQ(read.count, 2);
  EXPECT_EQ(read.width, 2);
  EXPECT_THAT(read.labels, ElementsAre(7, 9));
  const std::string three = folder.write("three", idx({3}, "abc"));
  EXPECT_EQ(complaint(folder, [&] { read_labelled_idx(images, three); }),
            "images contains 2 pictures and three 3 labels");
  EXPECT_THAT(complaint(folder, [&] { read_labelled_idx(labels, images); }), HasSubstr("wanted 3"));
}

// A header block, its content and what fills the last block.
std::string member(const std::string& name, const std::string& content, char type = '0',
                   const std::string& prefix = "") {
  std::string header(512, '\0');
  header.replace(0, std::min<size_t>(name.size(), 100), name.substr(0, 100));
  char number[16];
  std::snprintf(number, sizeof number, "%011zo", content.size());
  header.replace(124, 11, number);
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  header.replace(345, prefix.size(), prefix);
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(number, sizeof number, "%06o", sum);
  header.replace(148, 6, number);
  header[154] = '\0';
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

const std::string kEnd(1024, '\0');

std::vector<TarMember> list(const std::string& bytes) {
  return list_tar(
      bytes.size(),
      [&](uint64_t offset, std::span<std::byte> to) {
        FOVEA_ASSERT(offset + to.size() <= bytes.size());
        std::memcpy(to.data(), bytes.data() + offset, to.size());
      },
      "archive");
}

TEST(Tar, MembersAreFoundWhereTheyLie) {
  const TestFolder folder;
  const std::string path = folder.write(
      "a.tar", member("images/", "", '5') + member("./images/a.jpg", "first") + member("link", "", '2') +
                   member("b.jpg", std::string(600, 'b'), '0', "deep/down") +
                   member("images/a.jpg", "second") + kEnd);
  const TarFile tar(path);
  std::vector<std::string> names;
  for (const TarMember& one : tar.members()) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("images/a.jpg", "deep/down/b.jpg", "images/a.jpg"));
  ASSERT_NE(tar.find("images/a.jpg"), nullptr);
  const std::vector<std::byte> bytes = tar.read(*tar.find("images/a.jpg"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "second");
  EXPECT_EQ(tar.read(*tar.find("deep/down/b.jpg")).size(), 600u);
  EXPECT_EQ(tar.find("nothing"), nullptr);
  EXPECT_THAT(complaint(folder, [&] { tar.read(*tar.find("deep/down/b.jpg"), 100); }),
              HasSubstr("has 600 bytes, wanted at most 100"));
}

TEST(Tar, LongNamesOfGnuAndPaxAreRead) {
  const std::string deep = std::string(150, 'd') + "/" + std::string(40, 'f');
  std::string record = " path=" + deep + "\n";
  record = std::to_string(record.size() + 3) + record;
  // The size in a pax record counts, not the header's.
  const std::string large =
      member("pax", "10 size=3\n", 'x') + member("large", "") + "abc" + std::string(509, '\0');
  const auto members = list(member("././@LongLink", deep + '\0', 'L') + member("short", "1") +
                            member("pax", record, 'x') + member("short", "2") + large + kEnd);
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[0].name, deep);
  EXPECT_EQ(members[1].name, deep);
  EXPECT_EQ(members[2].name, "large");
  EXPECT_EQ(members[2].bytes, 3u);
  EXPECT_EQ(list(member("plain", "x") + kEnd)[0].name, "plain");
}

TEST(Tar, WhatIsCutOffOrNoTarIsRefused) {
  const std::string whole = member("a", "content") + member("b", std::string(1000, 'b')) + kEnd;
  for (size_t size = 0; size < whole.size() - 512; size += 7)
    EXPECT_THAT(error_of([&] { list(whole.substr(0, size)); }), ::testing::StartsWith("archive: ")) << size;
  EXPECT_THAT(error_of([&] { list("\x1f\x8b" + std::string(1000, 'z')); }), HasSubstr("is it compressed?"));
  std::string changed = whole;
  changed[3] ^= 1;
  EXPECT_EQ(error_of([&] { list(changed); }),
            "archive: no tar header at byte 0; is it compressed? wanted a plain tar");
}

}  // namespace
}  // namespace fovea::data
