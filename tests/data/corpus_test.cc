#include "data/corpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "data/files.h"

namespace fovea::data {
namespace {

using Lines = std::vector<std::string>;

TEST(LineReader, EndsLinesAtNewlineWithOrWithoutReturn) {
  const TestFolder folder;
  EXPECT_EQ(read_lines(folder.write("a", "one\r\ntwo\n\nfour")), (Lines{"one", "two", "", "four"}));
  EXPECT_EQ(read_lines(folder.write("b", "one\n")), (Lines{"one"}));
  EXPECT_EQ(read_lines(folder.write("c", "")), Lines{});
  EXPECT_EQ(read_lines(folder.write("d", "\n")), Lines{""});
  EXPECT_EQ(read_lines(folder.write("e", "\xEF\xBB\xBFmark\nb")), (Lines{"mark", "b"}));
  EXPECT_EQ(read_lines(folder.write("f", "\x1f")), Lines{"\x1f"});
}

std::string many_lines() {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += "line " + std::to_string(i) + " 我喜欢食物\n";
  return text;
}

TEST(LineReader, ReadsGzipAsItIs) {
  const TestFolder folder;
  const std::string text = many_lines();
  const Lines plain = read_lines(folder.write("plain", text));
  EXPECT_EQ(plain.size(), 30000u);
  EXPECT_EQ(read_lines(folder.write_gzip("packed.gz", text)), plain);
  folder.write_gzip("two.gz", text.substr(0, 1000));
  EXPECT_EQ(read_lines(folder.write_gzip("two.gz", text.substr(1000), "ab")), plain);
  EXPECT_EQ(read_lines(folder.write_gzip("empty.gz", "")), Lines{});
}

TEST(LineReader, RefusesDamagedGzip) {
  const TestFolder folder;
  folder.write_gzip("whole.gz", many_lines());
  std::string bytes;
  {
    std::ifstream file(folder.path("whole.gz"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  folder.write("short.gz", bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(complaint(folder, [&] { read_lines(folder.path("short.gz")); }),
            "cannot unpack short.gz: the gzip file is cut short");
  bytes[bytes.size() - 6] ^= 0x55;  // its check sum
  folder.write("damaged.gz", bytes);
  EXPECT_EQ(complaint(folder, [&] { read_lines(folder.path("damaged.gz")); }),
            "cannot unpack damaged.gz: the gzip file is damaged");
}

TEST(LineReader, GivesALineAsSoonAsItIsWritten) {
  const TestFolder folder;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LineReader reader("/dev/fd/" + std::to_string(ends[0]));
  std::string line;
  for (const std::string text : {"first\n", "second\n"}) {
    ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line + "\n", text);
  }
  close(ends[1]);
  EXPECT_FALSE(reader.next(line));
  close(ends[0]);
}

TEST(LineReader, MarksLinesThatCannotBeUsed) {
  const TestFolder folder;
  const std::string longest(100, 'x');
  LineReader reader(
      folder.write("a", longest + "\n" + longest + "y\r\nbad \xFF\n" + longest + longest + "\nlast"), 100);
  std::string line;
  const auto next = [&] {
    EXPECT_TRUE(reader.next(line));
    return reader.fault();
  };
  EXPECT_EQ(next(), LineFault::none);
  EXPECT_EQ(line, longest);
  EXPECT_EQ(next(), LineFault::too_long);
  EXPECT_EQ(line, "");
  EXPECT_EQ(next(), LineFault::bad_utf8);
  EXPECT_TRUE(reader.fault_text().ends_with("a, line 3: not UTF-8 at byte 5 (0xff)")) << reader.fault_text();
  EXPECT_EQ(next(), LineFault::too_long);
  EXPECT_EQ(next(), LineFault::none);
  EXPECT_EQ(line, "last");
  EXPECT_EQ(reader.line_number(), 5);
  EXPECT_FALSE(reader.next(line));
}

TEST(LineReader, SaysWhyAFileCannotBeRead) {
  const TestFolder folder;
  EXPECT_EQ(complaint(folder, [&] { read_lines(folder.path("absent")); }),
            "cannot open absent: No such file or directory");
  std::filesystem::create_directory(folder.path("folder"));
  EXPECT_EQ(complaint(folder, [&] { read_lines(folder.path("folder")); }),
            "cannot read folder: a directory, wanted a file or a pipe");
}

TEST(Parallel, PairsLinesOfTwoFiles) {
  const TestFolder folder;
  const ParallelText text = read_parallel(folder.write("a.zh", "我喜欢食物\n你好\n"),
                                          folder.write_gzip("a.en.gz", "i like food\nhello"));
  EXPECT_EQ(text.source, (Lines{"我喜欢食物", "你好"}));
  EXPECT_EQ(text.target, (Lines{"i like food", "hello"}));
  EXPECT_EQ(text.skipped.total(), 0);
}

TEST(Parallel, NamesFileAndLineOfWhatIsWrong) {
  const TestFolder folder;
  const std::string good = folder.write("good", "a\nb\nc\n");
  const auto read = [&](const std::string& bytes, CorpusOptions options = {}) {
    folder.write("other", bytes);
    return complaint(folder, [&] { read_parallel(good, folder.path("other"), options); });
  };
  const std::string hint = "; correct it, or drop such lines with --skip-bad";
  EXPECT_EQ(read("x\ny\nz\n"), "no error");
  EXPECT_EQ(read("x\n\xC3(\nz\n"), "other, line 2: not UTF-8 at byte 1 (0xc3)" + hint);
  EXPECT_EQ(read("x\ny\n \n"), "other, line 3: empty" + hint);
  EXPECT_EQ(read("x\ny\nzzzzz\n", {.max_line_bytes = 4}), "other, line 3: longer than 4 bytes" + hint);
  EXPECT_EQ(read("x\ny\n"), "good, line 3: no line to pair it with, good has 3 lines and other has 2");
  EXPECT_EQ(read("x\ny\nz\nu\nv"),
            "other, line 4: no line to pair it with, good has 3 lines and other has 5");
  EXPECT_EQ(read("x\n", {.skip_bad = true}),
            "good, line 2: no line to pair it with, good has 3 lines and other has 1");
  EXPECT_EQ(read("\n\n \n", {.skip_bad = true}), "good and other: no usable pair; 3 pairs dropped: 3 empty");
}

TEST(Parallel, SkipBadDropsAndCounts) {
  const TestFolder folder;
  const ParallelText text =
      read_parallel(folder.write("s", "a\n\nc\nd\xFF\neeeeeeeee\nf\n"),
                    folder.write("t", "A\nB\n\nD\nE\nF\n"), {.skip_bad = true, .max_line_bytes = 8});
  EXPECT_EQ(text.source, (Lines{"a", "f"}));
  EXPECT_EQ(text.target, (Lines{"A", "F"}));
  EXPECT_EQ(text.skipped, (Skipped{.bad_utf8 = 1, .empty = 2, .too_long = 1}));
  EXPECT_EQ(text.skipped.text(), "4 pairs dropped: 2 empty, 1 not UTF-8, 1 too long");
}

TEST(Tsv, TakesTwoColumns) {
  const TestFolder folder;
  const std::string path = folder.write("a.tsv", "Hi.\t嗨。\tsomeone\nRun.\t跑。\tsomeone else\n");
  const ParallelText text = read_parallel_tsv(path, {.source_column = 2, .target_column = 1});
  EXPECT_EQ(text.source, (Lines{"嗨。", "跑。"}));
  EXPECT_EQ(text.target, (Lines{"Hi.", "Run."}));
}

TEST(Tsv, NamesTheLineWithWrongColumns) {
  const TestFolder folder;
  const std::string hint = "; correct it, or drop such lines with --skip-bad";
  const auto read = [&](const std::string& bytes, CorpusOptions options = {}) {
    folder.write("a.tsv", bytes);
    return complaint(folder, [&] { read_parallel_tsv(folder.path("a.tsv"), options); });
  };
  EXPECT_EQ(read("a\tb\nc\n"), "a.tsv, line 2: 1 tab-separated column, wanted 2 as in the first line" + hint);
  EXPECT_EQ(read("a\tb\nc\td\te\n"),
            "a.tsv, line 2: 3 tab-separated columns, wanted 2 as in the first line" + hint);
  EXPECT_EQ(read("a b\n"), "a.tsv, line 1: 1 tab-separated column, wanted at least 2" + hint);
  EXPECT_EQ(read("a\t\n"), "a.tsv, line 1, column 2: empty" + hint);
  EXPECT_EQ(read(""), "a.tsv: no lines");
  EXPECT_EQ(read("a\tb\n", {.target_column = 1}),
            "columns 1 and 1 requested as source and target, wanted two different ones counted from 1");
  folder.write("a.tsv", "a\tb\nc\n\tx\nd\te\n");
  const ParallelText text = read_parallel_tsv(folder.path("a.tsv"), {.skip_bad = true});
  EXPECT_EQ(text.source, (Lines{"a", "d"}));
  EXPECT_EQ(text.skipped, (Skipped{.empty = 1, .wrong_columns = 1}));
}

}  // namespace
}  // namespace fovea::data
