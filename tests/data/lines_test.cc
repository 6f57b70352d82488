// Where texts come from: files, pipes, FIFOs; and what is none of these.
#include "data/lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "data/corpus.h"
#include "data/files.h"

namespace fovea::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A pipe with someone who writes into it until it is closed, and the path that process substitution gives it.
class Pipe {
 public:
  explicit Pipe(std::string piece, int64_t times = 1) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    reading_ = ends[0];
    writer_ = std::thread([=, this, to = ends[1]] {
      for (int64_t i = 0; i < times && !done_; ++i)
        if (write(to, piece.data(), piece.size()) < 0) break;
      close(to);
    });
  }
  ~Pipe() {
    done_ = true;
    std::string rest(1 << 20, '\0');
    while (read(reading_, rest.data(), rest.size()) > 0) continue;
    writer_.join();
    close(reading_);
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(reading_); }

 private:
  int reading_ = -1;
  std::atomic<bool> done_ = false;
  std::thread writer_;
};

TEST(Lines, ComeFromAPipeLikeFromAFile) {
  EXPECT_THAT(read_lines(Pipe("one\ntwo\n", 1).path()), ElementsAre("one", "two"));
  EXPECT_THAT(read_lines(Pipe("", 1).path()), ElementsAre());
  EXPECT_THAT(read_lines("/dev/null"), ElementsAre());
}

TEST(Lines, ComeFromAFifoThatIsWritten) {
  const TestFolder folder;
  const std::string path = folder.path("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (const char* text : {"one\ntwo", ""}) {
    std::thread writer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(120));
      std::ofstream(path) << text;
    });
    const std::vector<std::string> lines = read_lines(path);
    writer.join();
    EXPECT_EQ(lines.size(), *text == '\0' ? 0u : 2u);
  }
}

TEST(Lines, DoNotComeFromADirectoryOrADevice) {
  const TestFolder folder;
  const auto refused = [&](const std::string& path) { return complaint(folder, [&] { read_lines(path); }); };
  std::filesystem::create_directory(folder.path("texts"));
  EXPECT_EQ(refused(folder.path("texts")), "cannot read texts: a directory, wanted a file or a pipe");
  EXPECT_EQ(refused("/dev/zero"), "cannot read /dev/zero: a device, wanted a file or a pipe");
  std::filesystem::create_symlink("loop", folder.path("loop"));
  EXPECT_EQ(refused(folder.path("loop")), "cannot open loop: Too many levels of symbolic links");
}

TEST(Lines, AStreamWithoutEndIsGivenUp) {
  const TestFolder folder;
  const Pipe zeros(std::string(1 << 16, '\0'), 1 << 20);
  EXPECT_THAT(complaint(folder, [&] { read_parallel_tsv(zeros.path(), {.skip_bad = true}); }),
              HasSubstr("line 1: no end of the line within 256 MiB; is this a text?"));
  const Pipe endless("a line\n", int64_t{1} << 40);
  LineReader reader(endless.path(), kMaxLineBytes, 1 << 20);
  EXPECT_THAT(complaint(folder,
                        [&] {
                          for (std::string line; reader.next(line);) continue;
                        }),
              HasSubstr("more than 1 MiB of text"));
}

TEST(Lines, OfOldTextsEndInCarriageReturns) {
  const TestFolder folder;
  EXPECT_THAT(read_lines(folder.write("mac.txt", "one\rtwo\r\rfour")), ElementsAre("one", "two", "", "four"));
  EXPECT_THAT(read_lines(folder.write_gzip("mac.txt.gz", "one\rtwo\r")), ElementsAre("one", "two"));
  // A carriage return among lines that end otherwise is a character like others.
  EXPECT_THAT(read_lines(folder.write("unix.txt", "o\rne\ntwo\r\n")), ElementsAre("o\rne", "two"));
  EXPECT_THAT(read_lines(folder.write("last.txt", "one\r")), ElementsAre("one"));
}

}  // namespace
}  // namespace fovea::data
