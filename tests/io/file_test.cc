#include "io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "io/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Files larger than `bytes` cannot be written while this lives: a full disk that needs no mount.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    rlimit limit = previous_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_{};
  sighandler_t previous_handler_;
};

TEST(File, MissingFileNamesThePathAndTheReason) {
  EXPECT_EQ(error_of([] { read_text("/no/such/file"); }),
            "cannot open /no/such/file: No such file or directory");
}

TEST(File, DirectoryIsNoFile) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_of([&] { read_text(directory.path()); }), HasSubstr("a directory, wanted a file"));
}

TEST(File, FifosAndDevicesAreRefusedWithoutWaiting) {
  const TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { read_text(directory / "fifo"); }), HasSubstr("fifo: not a regular file"));
  EXPECT_EQ(error_of([] { read_text("/dev/zero"); }), "cannot read /dev/zero: not a regular file");
}

TEST(File, ALoopOfLinksIsOneLine) {
  const TemporaryDirectory directory;
  fs::create_symlink("loop", directory / "loop");
  EXPECT_FALSE(path_exists(directory / "none"));
  EXPECT_FALSE(is_folder(directory / "none"));
  EXPECT_TRUE(is_folder(directory.path()));
  for (const auto& asking : {path_exists, is_folder})
    EXPECT_THAT(error_of([&] { asking(directory / "loop"); }),
                HasSubstr("loop: Too many levels of symbolic links"));
  EXPECT_THAT(error_of([&] { read_text(directory / "loop"); }),
              HasSubstr("Too many levels of symbolic links"));
}

TEST(File, EmptyFileReadsAsEmptyText) {
  const TemporaryDirectory directory;
  write_atomically(directory / "empty", "");
  EXPECT_EQ(read_text(directory / "empty"), "");
}

TEST(File, LongerThanTheLimitIsRefused) {
  const TemporaryDirectory directory;
  write_atomically(directory / "text", "12345");
  EXPECT_EQ(read_text(directory / "text", 5), "12345");
  EXPECT_THAT(error_of([&] { read_text(directory / "text", 4); }), HasSubstr("5 bytes, wanted at most 4"));
}

TEST(WriteAtomically, ReplacesTheContentAndLeavesNothingElse) {
  const TemporaryDirectory directory;
  write_atomically(directory / "text", "one");
  write_atomically(directory / "text", "two");
  EXPECT_EQ(read_text(directory / "text"), "two");
  EXPECT_EQ(entry_count(directory.path()), 1u);
}

TEST(WriteAtomically, FullDiskGivesOneErrorAndKeepsTheOldContent) {
  const TemporaryDirectory directory;
  write_atomically(directory / "text", "old");
  std::string error;
  {
    const FileSizeLimit limit(64);
    error = error_of([&] { write_atomically(directory / "text", std::string(1000, 'x')); });
  }
  EXPECT_THAT(error, HasSubstr("cannot write"));
  EXPECT_THAT(error, HasSubstr("what was there before is untouched"));
  EXPECT_EQ(read_text(directory / "text"), "old");
  EXPECT_EQ(entry_count(directory.path()), 1u);
}

TEST(WriteAtomically, MissingDirectoryIsOneError) {
  EXPECT_THAT(error_of([] { write_atomically("/no/such/directory/file", "x"); }), HasSubstr("No such file"));
}

TEST(DirectorySet, AppearsWholeOnCommit) {
  const TemporaryDirectory directory;
  {
    DirectorySet set(directory / "sets/first");
    write_atomically(set.path() / "a", "1");
    write_atomically(set.path() / "b", "2");
    EXPECT_FALSE(fs::exists(directory / "sets/first"));
    set.commit();
  }
  EXPECT_EQ(read_text(directory / "sets/first/a"), "1");
  EXPECT_EQ(read_text(directory / "sets/first/b"), "2");
  EXPECT_EQ(entry_count(directory / "sets"), 1u);
}

TEST(DirectorySet, LeavesNothingWithoutCommit) {
  const TemporaryDirectory directory;
  {
    DirectorySet set(directory / "set");
    write_atomically(set.path() / "a", "1");
  }
  EXPECT_EQ(entry_count(directory.path()), 0u);
}

TEST(DirectorySet, FullDiskLeavesTheEarlierSet) {
  const TemporaryDirectory directory;
  {
    DirectorySet set(directory / "one");
    write_atomically(set.path() / "a", "1");
    set.commit();
  }
  {
    const FileSizeLimit limit(64);
    DirectorySet set(directory / "two");
    EXPECT_THROW(write_atomically(set.path() / "a", std::string(1000, 'x')), Error);
  }
  EXPECT_EQ(read_text(directory / "one/a"), "1");
  EXPECT_EQ(entry_count(directory.path()), 1u);
}

TEST(DirectorySet, FileInTheWayOfTheParentIsOneError) {
  const TemporaryDirectory directory;
  write_atomically(directory / "file", "x");
  EXPECT_THAT(error_of([&] { DirectorySet set(directory / "file/set"); }),
              HasSubstr("cannot make the directory"));
}

TEST(ReplaceLink, PointsAtTheLatestTarget) {
  const TemporaryDirectory directory;
  replace_link(directory / "last", "one");
  replace_link(directory / "last", "two");
  EXPECT_EQ(fs::read_symlink(directory / "last"), "two");
  EXPECT_EQ(entry_count(directory.path()), 1u);
}

TEST(DirectoryLock, LetsOneInAtATime) {
  const TemporaryDirectory directory;
  {
    const DirectoryLock first(directory.path());
    EXPECT_THAT(error_of([&] { DirectoryLock second(directory.path()); }),
                HasSubstr("another process is working"));
  }
  EXPECT_EQ(error_of([&] { DirectoryLock third(directory.path()); }), "no error");
}

TEST(RemoveLeftovers, RemovesOnlyTemporaryNames) {
  const TemporaryDirectory directory;
  write_atomically(directory / "mine", "x");
  fs::create_directory(directory / ".fovea-tmp-1-0-step-000100");
  write_atomically(directory / ".fovea-tmp-1-0-step-000100/model.safetensors", "x");
  write_atomically(directory / ".fovea-tmp-1-1-text", "x");
  remove_leftovers(directory.path());
  EXPECT_EQ(entry_count(directory.path()), 1u);
}

}  // namespace
}  // namespace fovea
