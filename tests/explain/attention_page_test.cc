#include "explain/attention_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

AttentionRecord hostile_record() {
  const std::string text = "</script><script>alert(1)</script> \"'&amp; <!-- 食物";
  AttentionRecord record;
  record.model = "bahdanau";
  record.source_text = record.target_text = text;
  record.source = {{text, "</s>"}, {text, "</s>"}, {0, 1}};
  record.target = record.source;
  record.fed = {{"<s>", text}, {"<s>", text}, {0, 1}};
  record.layers = {{AttentionKind::cross, 0, {{2, 2, {0.123456f, 0.876544f, 0, 1}}}}};
  return record;
}

// What stands between the data's tags.
std::string data_of(const std::string& page) {
  const std::string open = "id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(AttentionPage, CarriesHostileTextAsDataThatCannotEndItsElement) {
  const AttentionRecord record = hostile_record();
  const std::string page = attention_page({&record, 1}, record.source_text);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/script&gt;"));
  const Json data = parse_json(data_of(page), "data");
  EXPECT_EQ(data["records"][0]["source"]["text"], record.source_text);
}

TEST(AttentionPage, NeedsNoNetworkAndNeverMakesMarkupOfText) {
  const AttentionRecord record = hostile_record();
  const std::string page = attention_page({&record, 1}, "a title");
  for (const char* word : {"https:", "src=", "@import", "innerHTML", "insertAdjacentHTML", "document.write",
                           "outerHTML", "eval(", "fetch(", "FOVEA_"})
    EXPECT_THAT(page, Not(HasSubstr(word)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(AttentionJson, KeepsEveryWeightAndRoundsForThePage) {
  const AttentionRecord record = hostile_record();
  const Json whole = attention_json(record), rounded = attention_json(record, 4);
  EXPECT_EQ(whole["kinds"][0]["layers"][0]["heads"][0][0][0].get<float>(), 0.123456f);
  EXPECT_EQ(rounded["kinds"][0]["layers"][0]["heads"][0][0][0].dump(), "0.1235");
  EXPECT_EQ(whole["kinds"][0]["rows"], "target");
  EXPECT_FALSE(whole["kinds"][0].contains("rollout"));
  EXPECT_EQ(whole["source"]["word_of"], Json::parse("[0, 1]"));
  EXPECT_FALSE(whole["source"].contains("global"));
  EXPECT_FALSE(whole.contains("notes"));
}

TEST(AttentionJson, SaysWhichTokensAreGlobal) {
  AttentionRecord record = hostile_record();
  record.source.global = {1};
  record.notes = {"a note"};
  const Json json = attention_json(record);
  EXPECT_EQ(json["source"]["global"], Json::parse("[1]"));
  EXPECT_EQ(json["notes"], Json::parse(R"(["a note"])"));
}

}  // namespace
}  // namespace fovea
