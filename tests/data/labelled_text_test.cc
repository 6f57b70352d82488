#include "data/labelled_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/files.h"

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
              HasSubstr("b.csv, line 2: a quote that never closes"));
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
  EXPECT_THAT(broken(folder, "f.tsv", "a\tb\nx\ty\n", {.label_column = "3"}),
              HasSubstr("2 columns, but label column 3"));
  EXPECT_THAT(broken(folder, "g.tsv", "kind\ttext\nx\ty\n", {.label_column = "kinds"}),
              HasSubstr("no column is named 'kinds', did you mean 'kind'?"));
  EXPECT_THAT(broken(folder, "h.txt", "4 fine\n", {.label_column = "1"}), HasSubstr("has no columns"));
  const LabelledText kept =
      read_labelled(folder.write("i.tsv", "0\tone\n1\n\ttwo\n1\t\xff\n1\tthree\n"), {.skip_bad = true});
  EXPECT_THAT(kept.texts, ElementsAre("one", "three"));
  EXPECT_EQ(kept.skipped, (Skipped{.bad_utf8 = 1, .empty = 1, .wrong_columns = 1}));
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
    every.labels.push_back(std::to_string(i));
  }
  EXPECT_THAT(complaint(folder, [&] { label_set(every, "f"); }), HasSubstr("is this the column of labels?"));
  const std::vector<std::string> set{"neg", "pos"}, labels{"pos", "pso"};
  EXPECT_THAT(complaint(folder, [&] { label_places(labels, set, "valid.tsv"); }),
              HasSubstr("valid.tsv: the label 'pso' is not among the training text's, did you mean 'pos'?"));
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

}  // namespace
}  // namespace fovea::data
