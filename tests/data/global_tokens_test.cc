#include "data/global_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/wordpiece.h"

namespace fovea::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

//                                  0        1        2        3        4       5       6    7    8    9
const std::vector<std::string> kTokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "wine",
                                       "##ry",  ",",     ".",     "£",     "##."};

class GlobalTokensTest : public testing::Test {
 protected:
  std::unique_ptr<MarkedTokenizer> tokenizer = make_wordpiece(kTokens, {}, "test");
  const std::vector<int32_t> ids{2, 4, 6, 4, 5, 9, 3, 1, 3};

  std::vector<int64_t> places(const std::string& choice) {
    return GlobalTokens(choice, *tokenizer).places(ids);
  }
  std::string error_of(const std::string& choice) {
    try {
      GlobalTokens(choice, *tokenizer);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(GlobalTokensTest, AreChosenByWhatTheyAre) {
  EXPECT_THAT(places("first"), ElementsAre(0));
  EXPECT_THAT(GlobalTokens::first().places(ids), ElementsAre(0));
  EXPECT_THAT(places("[SEP]"), ElementsAre(6, 8));
  EXPECT_THAT(places("wine"), ElementsAre(1, 3));
  EXPECT_THAT(places("ry"), ElementsAre(4));
  EXPECT_THAT(places("punctuation"), ElementsAre(2, 5));
  EXPECT_THAT(places("punctuation first  wine"), ElementsAre(0, 1, 2, 3, 5));
}

// As `fovea explain` shows them.
TEST_F(GlobalTokensTest, MarksCanBeNamedAsTheTokenizerWritesThem) {
  std::vector<std::string> tokens = kTokens;
  tokens[2] = "<s>";
  tokens[3] = "</s>";
  tokenizer = make_wordpiece(tokens, {.begin = "<s>", .end = "</s>"}, "test");
  EXPECT_THAT(places("</s>"), ElementsAre(6, 8));
  EXPECT_THAT(places("[SEP]"), ElementsAre(6, 8));
  EXPECT_THAT(places("<s> wine"), ElementsAre(0, 1, 3));
  EXPECT_THAT(error_of("[UNK]"), HasSubstr("no token '[UNK]'"));
}

TEST_F(GlobalTokensTest, OfAnEmptyTextThereAreNone) {
  EXPECT_THAT(GlobalTokens("first [SEP]", *tokenizer).places({}), IsEmpty());
  EXPECT_THAT(GlobalTokens().places(ids), IsEmpty());
  EXPECT_TRUE(GlobalTokens().empty());
  EXPECT_FALSE(GlobalTokens::first().empty());
}

TEST_F(GlobalTokensTest, RefusesWhatTheVocabularyLacks) {
  EXPECT_THAT(error_of("beer"), HasSubstr("the vocabulary has no token 'beer'"));
  EXPECT_THAT(error_of("first winery"), HasSubstr("no token 'winery'"));  // two tokens
  EXPECT_THAT(error_of("  "), HasSubstr("an empty list"));
}

}  // namespace
}  // namespace fovea::data
