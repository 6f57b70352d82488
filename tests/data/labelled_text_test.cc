#include "data/labelled_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/files.h"
#include "data/global_tokens.h"

namespace fovea::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string broken(const TestFolder& folder, const std::string& name, std::string_view bytes,
                   const LabelledOptions& options = {}) {
  const std::string path = folder.write(name, bytes);
  return complaint(folder, [&] { read_labelled(path, options); });
}

TEST(LabelledText, IsReadFromTabsWithAndWithoutNames) {
  const TestFolder folder;
  const LabelledText named =
      read_labelled(folder.write("a.tsv", "sentence\tlabel\ngood one \t1\nbad one\t0\n"));
  EXPECT_THAT(named.texts, ElementsAre("good one", "bad one"));
  EXPECT_THAT(named.labels, ElementsAre("1", "0"));
  const LabelledText plain = read_labelled(folder.write_gzip("b.tsv.gz", "0\t17\tdull\n1\t18\tfine\n"));
  EXPECT_THAT(plain.texts, ElementsAre("dull", "fine"));
  EXPECT_THAT(plain.labels, ElementsAre("0", "1"));
  const LabelledText chosen = read_labelled(folder.write("c.tsv", "dull\tneg\t17\nfine\tpos\t18\n"),
                                            {.label_column = "2", .text_column = "1"});
  EXPECT_THAT(chosen.texts, ElementsAre("dull", "fine"));
  EXPECT_THAT(chosen.labels, ElementsAre("neg", "pos"));
  const LabelledText by_name = read_labelled(folder.write("d.tsv", "kind\tbody\nham\thello\nspam\tbuy\n"),
                                             {.label_column = "kind", .text_column = "body"});
  EXPECT_THAT(by_name.labels, ElementsAre("ham", "spam"));
}

TEST(LabelledText, IsReadFromQuotedCommas) {
  const TestFolder folder;
  const LabelledText text = read_labelled(folder.write(
      "a.csv", "Text,Label\n\"a \"\"fine\"\", long\nfilm\",pos\nshort,neg\n\"\"\"q\"\"\",pos\n"));
  EXPECT_THAT(text.texts, ElementsAre("a \"fine\", long film", "short", "\"q\""));
  EXPECT_THAT(text.labels, ElementsAre("pos", "neg", "pos"));
  EXPECT_THAT(broken(folder, "b.csv", "label,text\npos,\"never\nends\n"),
              HasSubstr("b.csv, line 2: the quote that opens here never closes"));
}

TEST(LabelledText, IsReadFromLinesThatBeginWithTheirLabel) {
  const TestFolder folder;
  const LabelledText text =
      read_labelled(folder.write("a.txt", "__label__pos fine  film\n__label__neg dull\n"));
  EXPECT_THAT(text.labels, ElementsAre("pos", "neg"));
  EXPECT_THAT(text.texts, ElementsAre("fine  film", "dull"));
  EXPECT_THAT(read_labelled(folder.write("b.txt", "4 fine\n0 dull\n")).labels, ElementsAre("4", "0"));
}

TEST(LabelledText, NamesFileAndLineOfWhatItCannotUse) {
  const TestFolder folder;
  EXPECT_THAT(broken(folder, "a.tsv", "0\tone\n1\n"), HasSubstr("a.tsv, line 2: 1 columns, wanted 2"));
  EXPECT_THAT(broken(folder, "b.tsv", "0\tone\n\ttwo\n"), HasSubstr("b.tsv, line 2: an empty label"));
  EXPECT_THAT(broken(folder, "c.tsv", "0\tone\n1\t \n"), HasSubstr("c.tsv, line 2: an empty text"));
  EXPECT_THAT(broken(folder, "c.txt", "__label__\na one\n"), HasSubstr("c.txt, line 1: an empty"));
  EXPECT_THAT(broken(folder, "d.tsv", "0\tone\n1\t\xff\n"), HasSubstr("d.tsv, line 2: not UTF-8"));
  EXPECT_THAT(broken(folder, "e.tsv", ""), HasSubstr("e.tsv: no lines"));
  EXPECT_THAT(broken(folder, "e2.tsv", "label\ttext\n"), HasSubstr("e2.tsv: no lines below the header"));
  EXPECT_THAT(broken(folder, "f.tsv", "a\tb\nx\ty\n", {.label_column = "3"}),
              HasSubstr("f.tsv: 2 columns, but label column 3"));
  EXPECT_THAT(broken(folder, "g.tsv", "kind\ttext\nx\ty\n", {.label_column = "kinds"}),
              HasSubstr("no column is named 'kinds', did you mean 'kind'?"));
  EXPECT_THAT(broken(folder, "h.txt", "4 fine\n", {.label_column = "1"}), HasSubstr("has no columns"));
  EXPECT_THAT(broken(folder, "l.tsv", "label\ttext\n1\tone\n1e39\ttwo\n", {.form = LabelForm::number}),
              HasSubstr("which is too large for a 32-bit float"));
  EXPECT_THAT(broken(folder, "m.tsv", "0\tone\n1\t \n"), HasSubstr("--skip-bad"));
  EXPECT_THAT(broken(folder, "m.tsv", "0\tone\n1\t \n", {.skip_hint = "; correct it"}),
              testing::EndsWith("m.tsv, line 2: an empty text; correct it"));
  const LabelledText kept =
      read_labelled(folder.write("i.tsv", "0\tone\n1\n\ttwo\n1\t\xff\n1\tthree\n"), {.skip_bad = true});
  EXPECT_THAT(kept.texts, ElementsAre("one", "three"));
  EXPECT_EQ(kept.skipped, (Skipped{.bad_utf8 = 1, .empty = 1, .wrong_columns = 1}));
}

// Where a file has no columns, the first words of its lines are labels: not those of JSON, and not those of any text.
TEST(LabelledText, FirstWordsThatAreNoLabelsAreRefused) {
  const TestFolder folder;
  const std::string json = "{\"text\": \"fine\", \"label\": 1}\n";
  EXPECT_THAT(broken(folder, "a.jsonl", json + json),
              HasSubstr("a.jsonl: the first line looks like JSON, wanted a label"));
  EXPECT_THAT(broken(folder, "a.json", "[" + json), HasSubstr("looks like JSON"));
  std::string text, labelled, marked;
  for (int i = 0; i < 60; ++i) {
    const std::string rest = " man walks a dog number " + std::to_string(i) + "\n";
    text += (i % 3 == 0 ? "word" + std::to_string(i) : "a") + rest;
    labelled += "kind" + std::to_string(i % 12) + rest;
    marked += "__label__word" + std::to_string(i) + rest;
  }
  EXPECT_THAT(
      broken(folder, "b.txt", text),
      HasSubstr(
          "b.txt: the first word of each line is taken as its label, but 20 of these 21 words occur only once; "
          "wanted a label and a text on each line, separated by a tab"));
  EXPECT_EQ(read_labelled(folder.write("c.txt", labelled)).size(), 60);
  EXPECT_EQ(read_labelled(folder.write("d.txt", marked)).size(), 60) << "said to be labels";
}

// The rows that stand below a header; "" as note stands for a file that has none.
struct HeaderCase {
  const char* file;
  std::vector<std::string> labels;
  const char* note;
};

TEST(LabelledText, AHeaderRowIsNoClass) {
  const TestFolder folder;
  std::string repeated = "kind\tcaption\n", once = "ham\tword\n";
  std::vector<std::string> kinds;
  for (int i = 0; i < 20; ++i) {
    kinds.emplace_back(i % 2 == 0 ? "spam" : "eggs");
    repeated += kinds.back() + "\tsome words number " + std::to_string(i) + "\n";
    once += kinds.back() + "\tword" + std::to_string(i) + "\n";
  }
  const std::vector<HeaderCase> cases{
      {"y\ttext\n1\tgood\n0\tbad\n",
       {"1", "0"},
       "label is column 1 \"y\", text is column 2 \"text\"; first row is a header"},
      {"target\ttweet\n4\tso good\n0\tso bad\n", {"4", "0"}, "first row is a header"},
      // Names that are on no list, over labels that are numbers.
      {"gold\tutt\n1\tgood\n0\tbad\n1\tfine\n",
       {"1", "0", "1"},
       "column 1 \"gold\", text is column 2 \"utt\"; first row"},
      // One known name is enough, where the label is on no other row.
      {"kind\tbody\nham\thello\nspam\tbuy\n", {"ham", "spam"}, "first row is a header"},
      {repeated.c_str(), kinds, "label is column 1 \"kind\", text is column 2 \"caption\"; first row"},
      // Small files in which each label stands once have none; nor has a class of one word at the top.
      {"pos\tgreat\nneg\tawful\nso-so\tfine\n", {"pos", "neg", "so-so"}, "no header row"},
      {"pos\tgreat\nneg\tawful\nneg\tbad\n", {"pos", "neg", "neg"}, "no header row"},
      {"topic\ttext\ntopic\tother\n", {"topic"}, "first row is a header"},
      // A first row that looks like data: its label comes again, or its text is a sentence.
      {"rain\twet\nsun\tdry\nrain\tvery wet\n", {"rain", "sun", "rain"}, "no header row"},
      {"rain\tit is wet\n1\tdry\n2\twet\n", {"rain", "1", "2"}, "no header row"}};
  for (const HeaderCase& one : cases) {
    const LabelledText text = read_labelled(folder.write("a.tsv", one.file));
    EXPECT_EQ(text.labels, one.labels) << one.file;
    EXPECT_THAT(text.columns.note("a.tsv"), HasSubstr(one.note)) << one.file;
  }
  EXPECT_EQ(read_labelled(folder.write("b.tsv", once)).size(), 21);
  // The same in the other forms of files.
  for (const char* rows : {"y,text\n1,good\n0,bad\n", "\xEF\xBB\xBFy,text\r\n1,good\r\n0,bad\r\n",
                           "y,text\r1,good\r0,bad\r", "\"y\",\"text\"\n\"1\",good\n0,\"bad\"\n"}) {
    EXPECT_THAT(read_labelled(folder.write("c.csv", rows)).labels, ElementsAre("1", "0")) << rows;
    EXPECT_THAT(read_labelled(folder.write_gzip("c.csv.gz", rows)).texts, ElementsAre("good", "bad"));
  }
  const LabelledText lines =
      read_labelled(folder.write("d.txt", "label text\n__label__1 good\n__label__0 bad\n"));
  EXPECT_THAT(lines.labels, ElementsAre("1", "0"));
  EXPECT_EQ(lines.columns.note("d.txt"), "d.txt: each line begins with its label");
}

TEST(LabelledText, ColumnsAreChosenByNameThenByWhatTheyHold) {
  const TestFolder folder;
  const auto note = [&](const char* rows) {
    return read_labelled(folder.write("a.tsv", rows)).columns.note("a");
  };
  EXPECT_EQ(
      note("id\ttext\tsource\tlabel\n1\tgood\tweb\tpos\n2\tbad\tweb\tneg\n"),
      "a: label is column 4 \"label\", text is column 2 \"text\"; first row is a header; 2 other columns "
      "are not used");
  // A table's index and a column of one value are no labels.
  EXPECT_EQ(note("\tlang\tgold\ttext\n0\ten\tpos\ta good one\n1\ten\tneg\ta bad one\n2\ten\tneg\tbad\n"),
            "a: label is column 3 \"gold\", text is column 4 \"text\"; first row is a header; 2 other "
            "columns are not "
            "used");
  EXPECT_EQ(note("a good film\tpos\na dull film\tneg\na bad film\tneg\n"),
            "a: label is column 2, text is column 1; no header row");
  EXPECT_EQ(note("7\tpos\tgood\n8\tneg\tawful\n9\tneg\tquite bad\n"),
            "a: label is column 2, text is column 3; no header row; 1 other column is not used");
}

TEST(LabelledText, AFileSortedByLabelHasItsColumnsFoundBelowItsFirstThousandRows) {
  const TestFolder folder;
  std::string two, three;
  for (int i = 0; i < 3000; ++i) {
    const std::string label = i < 1500 ? "0" : "1", text = "film number " + std::to_string(i) + " was seen";
    two += label + "\t" + text + "\n";
    three += label + "\t" + std::to_string(i % 7) + "_x\t" + text + "\n";
  }
  for (const std::string& bytes : {two, three}) {
    const LabelledText read = read_labelled(folder.write("sorted.tsv", bytes));
    ASSERT_EQ(read.size(), 3000);
    EXPECT_EQ(read.labels[0], "0");
    EXPECT_EQ(read.labels[2999], "1");
    EXPECT_EQ(read.texts[2999], "film number 2999 was seen");
  }
}

TEST(LabelledText, ASecondTextIsRefusedUnlessOneIsChosen) {
  const TestFolder folder;
  const char* pairs =
      "label\tsentence1\tsentence2\n1\tit rains a lot today\tthe street is wet now\n"
      "0\tthe sun is out today\tit is night right now\n";
  EXPECT_EQ(broken(folder, "a.tsv", pairs),
            "a.tsv: column 2 \"sentence1\" and column 3 \"sentence2\" both contain texts; "
            "choose one with --text-column, or read both as a pair with --pairs");
  // Their names say so even where they are too short to look like sentences.
  EXPECT_THAT(broken(folder, "names.tsv", "label\tpremise\thypothesis\n1\train\twet\n0\tsun\tnight\n"),
              HasSubstr("column 2 \"premise\" and column 3 \"hypothesis\" both contain texts"));
  const LabelledText text = read_labelled(folder.path("a.tsv"), {.text_column = "sentence1"});
  EXPECT_THAT(text.texts, ElementsAre("it rains a lot today", "the sun is out today"));
  EXPECT_THAT(text.labels, ElementsAre("1", "0"));
  EXPECT_THAT(broken(folder, "b.csv",
                     "3,Wall St. bears claw back,\"Short sellers, see green again today\"\n"
                     "4,Oil prices soar to record,Tearaway prices are menacing the market\n"),
              HasSubstr("column 2 and column 3 both contain texts"));
}

TEST(LabelledText, AFileThatGoesWithAnotherHasItsColumns) {
  const TestFolder folder;
  const LabelledText train =
      read_labelled(folder.write("train.tsv", "gold\tutt\n1\tgood one\n0\tbad one\n1\tfine\n"));
  // Of two rows, neither labels nor texts would tell; the names do.
  const LabelledText valid =
      read_labelled(folder.write("valid.tsv", "gold\tutt\npos\tgood\n"), {.like = &train.columns});
  EXPECT_THAT(valid.texts, ElementsAre("good"));
  const LabelledText turned =
      read_labelled(folder.write("turned.tsv", "text\tlabel\ngood\t1\n"), {.like = &train.columns});
  EXPECT_THAT(turned.labels, ElementsAre("1"));
}

TEST(LabelledText, AWrongQuoteCostsItsOwnRowAndIsNamed) {
  const TestFolder folder;
  const char* rows = "label,text\npos,\"good\nneg,\"bad\"\npos,fine\n";
  EXPECT_EQ(broken(folder, "a.csv", rows),
            "a.csv, line 2: the quote that opens here closes on line 3 before 'bad\"', wanted a comma or the "
            "end of "
            "the row after it; a quote within quotes is written twice; correct it, or drop such lines with "
            "--skip-bad");
  const LabelledText kept = read_labelled(folder.path("a.csv"), {.skip_bad = true});
  EXPECT_THAT(kept.texts, ElementsAre("bad", "fine"));
  EXPECT_EQ(kept.skipped, (Skipped{.bad_quotes = 1}));
  EXPECT_THAT(broken(folder, "b.csv", "label,text\npos,\"a\nb\",\"c\n"),
              HasSubstr("b.csv, line 3: the quote that opens here never closes"));
  const LabelledText open =
      read_labelled(folder.write("c.csv", "pos,a b\nneg,\"c d\npos,e f\nneg,g h\n"), {.skip_bad = true});
  EXPECT_THAT(open.texts, ElementsAre("a b", "e f", "g h"));
  // A quote inside a field that has none around it is a character like others.
  EXPECT_THAT(read_labelled(folder.write("d.csv", "pos,5\" wide\nneg,\"6\" , \n"), {.skip_bad = true}).texts,
              ElementsAre("5\" wide"));
}

TEST(LabelSet, NumbersThatMeasureAreNotClasses) {
  const TestFolder folder;
  const auto refused = [&](int count, int repeats, double unit) {
    LabelledText text;
    for (int i = 0; i < count * repeats; ++i) {
      text.texts.emplace_back("t");
      std::string label = std::to_string(unit * (i % count));
      if (unit == std::floor(unit)) label.erase(label.find('.'));
      text.labels.push_back(label);
    }
    return complaint(folder, [&] { label_set(text, "f.tsv"); });
  };
  EXPECT_THAT(refused(50, 10, 0.1),
              HasSubstr("f.tsv: the labels are 50 different numbers, such as '0.000000' and"));
  EXPECT_THAT(refused(50, 2, 1), HasSubstr("predict numbers with --task regression"));
  EXPECT_THAT(refused(150, 10, 7), HasSubstr("choose another column with --label-column"));
  EXPECT_EQ(refused(10, 2, 0.5), "no error");  // half stars
  EXPECT_EQ(refused(150, 10, 1), "no error");  // numbered classes
}

TEST(LabelSet, IsInOrderAndRefusesWhatCannotBeLabels) {
  const TestFolder folder;
  EXPECT_THAT(label_set({{"a", "b", "c"}, {"10", "9", "10"}, {}}, "f"), ElementsAre("9", "10"));
  EXPECT_THAT(label_set({{"a", "b", "c"}, {"pos", "10", "neg"}, {}}, "f"), ElementsAre("10", "neg", "pos"));
  EXPECT_THAT(complaint(folder,
                        [] {
                          label_set({{"a", "b"}, {"x", "x"}, {}}, "f");
                        }),
              HasSubstr("every text has the label 'x', wanted at least two"));
  EXPECT_THAT(complaint(folder,
                        [] {
                          label_set({{"a"}, {std::string("x\n\0y", 4)}, {}}, "f");
                        }),
              HasSubstr("the label 'x??y', wanted"));
  LabelledText every;
  for (int i = 0; i < 2000; ++i) {
    every.texts.emplace_back("t");
    every.labels.push_back("id" + std::to_string(i));
  }
  EXPECT_THAT(complaint(folder, [&] { label_set(every, "f"); }), HasSubstr("is this the column of labels?"));
  const std::vector<std::string> set{"neg", "pos"}, labels{"pos", "pso"};
  EXPECT_THAT(complaint(folder, [&] { label_places(labels, set, "valid.tsv"); }),
              HasSubstr("valid.tsv: the label 'pso' is not among the training text's, did you mean 'pos'?"));
  EXPECT_THAT(complaint(folder, [&] { label_places(labels, every.labels, "valid.tsv"); }),
              HasSubstr("is not among the training text's; it has 2000, such as 'id0'"));
}

TEST(Sentences, EndWhereMarksAndSpacesSay) {
  EXPECT_THAT(split_sentences("One two. Three (four!) \"Five?\" six 3.5 seven"),
              ElementsAre("One two.", "Three (four!)", "\"Five?\"", "six 3.5 seven"));
  EXPECT_THAT(split_sentences("你好。“吃了吗？”吃了！！再见"),
              ElementsAre("你好。", "“吃了吗？”", "吃了！！", "再见"));
  EXPECT_THAT(split_sentences(" a... b\nc "), ElementsAre("a...", "b", "c"));
  EXPECT_THAT(split_sentences("  \n "), IsEmpty());
}

class EncodeText : public testing::Test {
 protected:
  EncodeText() {
    const std::vector<std::string> lines{"one two three . Four"};
    const std::span<const std::string> texts[] = {lines};
    tokenizer_ = count_words(texts);
  }
  std::vector<int32_t> ids(std::string_view text, const TextEncoding& encoding) const {
    return encode_text(text, *tokenizer_, encoding);
  }
  int32_t id(std::string_view word) const { return tokenizer_->encode(word)[0]; }
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(EncodeText, LaysTokensOutAsTheFormSays) {
  EXPECT_THAT(ids("one two", {}), ElementsAre(id("one"), id("two"), kEnd));
  EXPECT_THAT(ids("one two", {.form = TextForm::marked}), ElementsAre(kBegin, id("one"), id("two"), kEnd));
  EXPECT_THAT(ids("one . two", {.form = TextForm::sentences}),
              ElementsAre(id("one"), id("."), kEnd, id("two"), kEnd));
  EXPECT_THAT(ids("ONE Four", {.lowercase = true}), ElementsAre(id("one"), kUnknown, kEnd));
}

TEST_F(EncodeText, IsNeverEmptyAndNeverTooLong) {
  for (const TextForm form : {TextForm::plain, TextForm::sentences})
    EXPECT_THAT(ids("", {.form = form}), ElementsAre(kEnd));
  EXPECT_THAT(ids(" ", {.form = TextForm::marked}), ElementsAre(kBegin, kEnd));
  EXPECT_THAT(ids("one two three", {.max_tokens = 3}), ElementsAre(id("one"), id("two"), kEnd));
  EXPECT_THAT(ids("one two three", {.form = TextForm::marked, .max_tokens = 2}), ElementsAre(kBegin, kEnd));
}

TEST_F(EncodeText, SentencesAreFoundAgain) {
  const std::vector<std::string> texts{"one . two three . ", "", "four two one"};
  const PackedSentences packed = encode_texts(texts, *tokenizer_, {.form = TextForm::sentences});
  ASSERT_EQ(packed.size(), 3);
  const std::vector<int64_t> lengths{packed.length(0), packed.length(1), packed.length(2)};
  const SentenceLengths found = sentence_lengths(packed.tokens, lengths);
  EXPECT_THAT(found.tokens, ElementsAre(3, 4, 1, 4));
  EXPECT_THAT(found.sentences, ElementsAre(2, 1, 1));
}

TEST(LabelledPairs, AreReadByNamesNumbersAndWhatColumnsHold) {
  const TestFolder folder;
  const LabelledOptions pairs{.pairs = true};
  const LabelledText named = read_labelled(
      folder.write("a.tsv", "id\tsentence1\tsentence2\tlabel\n1\tone a\ttwo b\tyes\n2\tc\td e\tno\n"), pairs);
  EXPECT_THAT(named.texts, ElementsAre("one a\ttwo b", "c\td e"));
  EXPECT_THAT(named.labels, ElementsAre("yes", "no"));
  EXPECT_EQ(
      named.columns.note("f"),
      "f: label is column 4 \"label\", texts are column 2 \"sentence1\" and column 3 \"sentence2\"; first row "
      "is a header; 1 other column is not used");
  // As MRPC has it: literal quotes, two columns of ids.
  const LabelledText mrpc =
      read_labelled(folder.write("b.tsv",
                                 "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
                                 "1\t7\t8\tHe said \"no\" .\tHe said no .\n0\t9\t10\tA b c d\tE f g h\n"),
                    pairs);
  EXPECT_THAT(mrpc.texts, ElementsAre("He said \"no\" .\tHe said no .", "A b c d\tE f g h"));
  EXPECT_THAT(mrpc.labels, ElementsAre("1", "0"));
  // As STS-B: no header, numbers.
  const LabelledText sts = read_labelled(
      folder.write(
          "c.csv",
          "A plane is taking off.,\"An air plane, off.\",5.0\nA man plays a flute.,A man eats.,1.25\n"),
      {.form = LabelForm::number, .pairs = true});
  EXPECT_THAT(sts.texts,
              ElementsAre("A plane is taking off.\tAn air plane, off.", "A man plays a flute.\tA man eats."));
  EXPECT_THAT(sts.numbers, ElementsAre(5.0f, 1.25f));
  const LabelledText chosen =
      read_labelled(folder.write("d.tsv", "x\tlong text here it is\ty\t0\nz\tanother long text\tw\t1\n"),
                    {.label_column = "4", .text_column = "3", .pairs = true, .pair_column = "1"});
  EXPECT_THAT(chosen.texts, ElementsAre("y\tx", "w\tz"));
}

TEST(LabelledPairs, NameFileAndLineOfWhatTheyCannotUse) {
  const TestFolder folder;
  const LabelledOptions pairs{.pairs = true};
  EXPECT_THAT(broken(folder, "a.tsv", "label\tsentence1\tsentence2\nx\ta\tb\ny\tc\t \n", pairs),
              HasSubstr("a.tsv, line 3: an empty text"));
  EXPECT_THAT(broken(folder, "b.tsv", "x\ta b\ny\tc d\n", pairs),
              HasSubstr("b.tsv: 2 columns, wanted a label and two texts"));
  EXPECT_THAT(broken(folder, "c.txt", "x a b\ny c d\n", pairs), HasSubstr("pairs of texts need columns"));
  EXPECT_THAT(broken(folder, "d.tsv", "x\ta\tb\n", {.text_column = "2", .pairs = true, .pair_column = "2"}),
              HasSubstr("column 2 was chosen twice"));
  EXPECT_THAT(broken(folder, "e.tsv", "x\ta b c d\te f g h\ny\ti j k l\tm n o p\n"),
              HasSubstr("read both as a pair with --pairs"));
}

TEST(LabelledNumbers, AreReadWithAndWithoutAHeader) {
  const TestFolder folder;
  const LabelledOptions numbers{.form = LabelForm::number};
  EXPECT_THAT(read_labelled(folder.write("a.tsv", "mark\tessay\n3.5\ta b c d\n-1e1\te f\n"), numbers).numbers,
              ElementsAre(3.5f, -10.0f));
  EXPECT_THAT(read_labelled(folder.write("b.tsv", "3.5\ta b c d\n4\te f\n"), numbers).numbers,
              ElementsAre(3.5f, 4.0f));
  EXPECT_THAT(broken(folder, "c.tsv", "3.5\ta b\nfour\tc d\n1\te f\n", numbers),
              HasSubstr("c.tsv, line 2: the label 'four' is not a number"));
  EXPECT_THAT(broken(folder, "d.tsv", "1\ta b\n1e99\tc d\n", numbers),
              HasSubstr("d.tsv, line 2: got the label '1e99', which is too large"));
  const LabelledText some = read_labelled(folder.write("e.tsv", "1\ta b\nx\tc d\n2\te f\n"),
                                          {.skip_bad = true, .form = LabelForm::number});
  EXPECT_THAT(some.numbers, ElementsAre(1.0f, 2.0f));
  EXPECT_EQ(some.skipped.bad_labels, 1);
}

TEST(SeveralLabels, AreCutAtTheSeparatorAndMayBeNone) {
  const TestFolder folder;
  const LabelledOptions several{.form = LabelForm::several};
  const LabelledText text =
      read_labelled(folder.write("a.tsv", "labels\ttext\nb, a,b\tone two\n\tthree four\nc\tfive\n"), several);
  ASSERT_EQ(text.several.size(), 3u);
  EXPECT_THAT(text.several[0], ElementsAre("b", "a"));
  EXPECT_THAT(text.several[1], IsEmpty());
  const auto set = label_set(text, "a.tsv", LabelForm::several);
  EXPECT_THAT(set, ElementsAre("a", "b", "c"));
  const Targets targets = targets_of(text, LabelForm::several, set, "a.tsv");
  EXPECT_THAT(targets.values, ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 1));
  const int64_t last[] = {2};
  EXPECT_THAT(targets.at(last).values, ElementsAre(0, 0, 1));
  const std::vector<std::string> fewer{"a", "b"};
  EXPECT_THAT(complaint(folder, [&] { targets_of(text, LabelForm::several, fewer, "a.tsv"); }),
              HasSubstr("a.tsv, line 4: the label 'c' is not among"));
  EXPECT_THAT(broken(folder, "b.tsv", "a,,b\tone two\nc\tthree\n", several),
              HasSubstr("b.tsv, line 1: an empty label between separators"));
  EXPECT_THAT(read_labelled(folder.write("c.tsv", "a|b\tone two\nc\tthree\n"),
                            {.form = LabelForm::several, .separator = "|"})
                  .several[0],
              ElementsAre("a", "b"));
  EXPECT_THAT(
      read_labelled(folder.write("d.txt", "__label__x __label__y good one\n__label__z bad\n"), several)
          .several[0],
      ElementsAre("x", "y"));
}

TEST_F(EncodeText, LaysPairsOutAndCutsTheLongerText) {
  const auto pair = [&](std::string_view text, TextEncoding encoding) {
    encoding.pairs = true;
    return encode_text_or_pair(text, *tokenizer_, encoding);
  };
  const EncodedText plain = pair("one two\tthree", {});
  EXPECT_THAT(plain.ids, ElementsAre(id("one"), id("two"), kEnd, id("three"), kEnd));
  EXPECT_EQ(plain.first, 3);
  const EncodedText marked = pair("one\ttwo three", {.form = TextForm::marked});
  EXPECT_THAT(marked.ids, ElementsAre(kBegin, id("one"), kEnd, id("two"), id("three"), kEnd));
  EXPECT_EQ(marked.first, 3);
  const EncodedText cut = pair("one\ttwo three one two three", {.max_tokens = 5});
  EXPECT_THAT(cut.ids, ElementsAre(id("one"), kEnd, id("two"), id("three"), kEnd));
  EXPECT_EQ(cut.first, 2);
  const TestFolder folder;
  for (const char* text : {"one two", "one\ttwo\tthree"})
    EXPECT_THAT(complaint(folder, [&] { pair(text, {}); }), HasSubstr("wanted a text, a tab and a text"));
}

TEST_F(EncodeText, GlobalTokensAreFoundByWhatTheyAre) {
  const auto places = [&](const std::string& rule, std::string_view text) {
    return GlobalTokens(rule, *tokenizer_).places(ids(text, {.form = TextForm::marked}));
  };
  EXPECT_THAT(places("first", "one . two"), ElementsAre(0));
  EXPECT_THAT(places("punctuation", "one . two ."), ElementsAre(2, 4));
  EXPECT_THAT(places("[SEP] two first", "one . two"), ElementsAre(0, 3, 4));
  const TestFolder folder;
  EXPECT_THAT(complaint(folder, [&] { places("five", ""); }),
              HasSubstr("global: the vocabulary has no token 'five'"));
  EXPECT_THAT(complaint(folder, [&] { places(" ", ""); }), HasSubstr("global: got an empty list"));
  EXPECT_TRUE(GlobalTokens().empty());
}

TEST(GlobalTokens, PiecesOfWordsCountByTheirSpelling) {
  const std::vector<std::string> lines(60, "good. not good, not bad! well? good.");
  const std::span<const std::string> texts[] = {lines};
  const auto pieces = train_sentencepiece(texts, {.size = 300});
  const std::vector<int32_t> ids = pieces->encode("good. not good, bad!");
  const std::vector<int64_t> marks = GlobalTokens("punctuation", *pieces).places(ids);
  ASSERT_FALSE(marks.empty());
  for (const int64_t place : marks) {
    const std::string piece = pieces->piece(ids[static_cast<size_t>(place)]);
    EXPECT_NE(piece.find_first_of(".,!?"), std::string::npos) << piece;
    EXPECT_EQ(piece.find('o'), std::string::npos) << piece;
  }
}

}  // namespace
}  // namespace fovea::data
