#include "io/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"

namespace fovea {
namespace {

using testing::HasSubstr;

class RecordFileTest : public testing::Test {
 protected:
  RecordFileTest()
      : path_(std::filesystem::temp_directory_path() / ("fovea-records-" + std::to_string(getpid()))) {
    std::filesystem::remove(path_);
  }
  ~RecordFileTest() override { std::filesystem::remove(path_); }

  static std::vector<std::byte> record(int value) { return std::vector<std::byte>(100, std::byte(value)); }
  static RecordKey key(int value) { return record_key(record(value)); }
  static RecordForm form() { return {.content = "numbers", .bytes = 100, .hint = "; choose another file"}; }
  std::string fault(const RecordForm& wanted) {
    try {
      RecordFile file(path_, wanted);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  void overwrite(uint64_t offset, char value) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(value);
  }
  void fill(int first, int last) {
    RecordFile file(path_, form());
    for (int i = first; i <= last; ++i) file.add(key(i), record(i));
    file.release();
  }
  bool holds(const RecordFile& file, int value) {
    std::vector<std::byte> found(100);
    file.read(key(value), found);
    return found == record(value);
  }

  std::filesystem::path path_;
};

TEST_F(RecordFileTest, KeepsWhatWasAdded) {
  fill(1, 3);
  fill(2, 5);  // two of them known already
  RecordFile file(path_, form());
  EXPECT_EQ(file.size(), 5);
  EXPECT_EQ(file.damaged(), 0);
  for (int i = 1; i <= 5; ++i) EXPECT_TRUE(holds(file, i)) << i;
  EXPECT_FALSE(file.contains(key(6)));
}

TEST_F(RecordFileTest, AKilledWriterLosesOneRecordAtMost) {
  fill(1, 3);
  const auto whole = std::filesystem::file_size(path_);
  for (const uint64_t cut : {1, 50, 123}) {
    std::filesystem::resize_file(path_, whole - cut);
    {
      RecordFile file(path_, form());
      EXPECT_EQ(file.size(), 2);
      EXPECT_TRUE(holds(file, 2));
      EXPECT_FALSE(file.contains(key(3)));
    }
    fill(3, 3);
    EXPECT_EQ(std::filesystem::file_size(path_), whole);
  }
}

TEST_F(RecordFileTest, AFileThatGotNoRecordIsRemoved) {
  { const RecordFile file(path_, form()); }
  EXPECT_FALSE(std::filesystem::exists(path_));
  { RecordFile(path_, form()).add(key(1), record(1)); }
  EXPECT_TRUE(std::filesystem::exists(path_));
  { const RecordFile file(path_, form()); }
  EXPECT_EQ(RecordFile(path_, form()).size(), 1);
}

// A disk that was full when the file was made leaves a part of the header.
TEST_F(RecordFileTest, AnUnfinishedHeaderIsWrittenAgain) {
  fill(1, 1);
  for (const uint64_t bytes : {0u, 1u, 20u, 512u, 1023u}) {
    std::filesystem::resize_file(path_, bytes);
    fill(1, 2);
    RecordFile file(path_, form());
    EXPECT_EQ(file.size(), 2) << bytes;
  }
  std::filesystem::resize_file(path_, 512);
  RecordForm other = form();
  other.content = "words";
  EXPECT_THAT(fault(other), HasSubstr("not a file of records that Fovea wrote"));
}

TEST_F(RecordFileTest, ADamagedRecordIsWrittenAgainInItsPlace) {
  fill(1, 3);
  const auto whole = std::filesystem::file_size(path_);
  overwrite(1024 + 124 + 60, 'x');  // within the second record
  {
    RecordFile file(path_, form());
    EXPECT_EQ(file.damaged(), 1);
    EXPECT_FALSE(file.contains(key(2)));
    EXPECT_TRUE(holds(file, 1));
    EXPECT_TRUE(holds(file, 3));
  }
  fill(2, 2);
  EXPECT_EQ(std::filesystem::file_size(path_), whole);
  RecordFile file(path_, form());
  EXPECT_EQ(file.damaged(), 0);
  EXPECT_TRUE(holds(file, 2));
}

TEST_F(RecordFileTest, DamageWhileInUseIsFound) {
  fill(1, 2);
  const RecordFile file(path_, form());
  overwrite(1024 + 30, 'x');
  std::vector<std::byte> found(100);
  EXPECT_THROW(file.read(key(1), found), Error);
  EXPECT_TRUE(holds(file, 2));
}

TEST_F(RecordFileTest, RecordsOfAnotherKindAreRefused) {
  fill(1, 1);
  EXPECT_THAT(fault({.content = "letters", .bytes = 100, .hint = "; choose another file"}),
              HasSubstr("contains 'numbers', wanted 'letters'; choose another file"));
  EXPECT_THAT(fault({.content = "numbers", .bytes = 101}), HasSubstr("contains 'numbers'"));
  std::ofstream(path_) << "something else";
  EXPECT_THAT(fault(form()), HasSubstr("not a file of records that Fovea wrote; choose another file"));
}

TEST_F(RecordFileTest, OneWriterAtATime) {
  RecordFile file(path_, form());
  EXPECT_THAT(fault(form()), HasSubstr("another process is writing"));
  file.release();
  EXPECT_EQ(fault(form()), "no error");
}

}  // namespace
}  // namespace fovea
