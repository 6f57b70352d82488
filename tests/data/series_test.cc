// Files of number sequences: tables over time, .ts cases, points in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "data/series_cases.h"
#include "data/series_table.h"
#include "data/time_features.h"

namespace fovea::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

SeriesTable table_of(const std::string& text, const SeriesTableOptions& options = {}) {
  return parse_series_table(text, "t.csv", options);
}

TEST(SeriesTable, ReadsColumnsAndTimes) {
  const SeriesTable table =
      table_of("date,a,\"b, c\"\n2016-07-01 00:00:00,1,2\n2016-07-01 01:00:00,-3e1, 4.5\n\n");
  EXPECT_THAT(table.columns, ElementsAre("a", "b, c"));
  EXPECT_EQ(table.time_column, "date");
  EXPECT_THAT(table.values, ElementsAre(1, 2, -30, 4.5));
  EXPECT_EQ(table.times[1] - table.times[0], 3600);
}

TEST(SeriesTable, TakesSemicolonsTabsAndTheColumnsAskedFor) {
  EXPECT_THAT(table_of("a;b\n1;2\n").values, ElementsAre(1, 2));
  EXPECT_THAT(table_of("a\tb\n1\t2\n").values, ElementsAre(1, 2));
  EXPECT_THAT(table_of("a,b,note\n1,2,x\n", {.columns = {"b", "a"}}).values, ElementsAre(2, 1));
  EXPECT_THAT(with_columns(table_of("a,b\n1,2\n3,4\n"), {"b"}, "t").values, ElementsAre(2, 4));
}

TEST(SeriesTable, NamesFileLineAndColumnOfWhatIsWrong) {
  EXPECT_THAT(error_of([] { table_of("a,b\n1,2\n3\n"); }), HasSubstr("t.csv, line 3: 1 fields, wanted 2"));
  EXPECT_THAT(error_of([] { table_of("a,b\n1,x\n"); }),
              HasSubstr("t.csv, line 2, column 'b': got 'x', wanted a number"));
  EXPECT_THAT(error_of([] { table_of("a,b\n1,\n"); }),
              HasSubstr("t.csv, line 2, column 'b': the value is missing"));
  EXPECT_THAT(error_of([] { table_of("1,2\n3,4\n"); }), HasSubstr("wanted a header"));
  EXPECT_THAT(error_of([] { table_of("a,a\n3,4\n"); }), HasSubstr("two columns are named 'a'"));
  EXPECT_THAT(error_of([] { table_of("a\n1e39\n"); }), HasSubstr("wanted a number"));
  EXPECT_THAT(error_of([] { table_of("d,a\n2016-07-01,1\n2016-07-01,2\n"); }), HasSubstr("is not later"));
  EXPECT_THAT(error_of([] { table_of("d,a\n2016-07-01,1\n2016-07-32,2\n"); }), HasSubstr("wanted a time"));
  EXPECT_THAT(error_of([] { table_of("load,oil\n1,2\n", {.columns = {"lood"}}); }),
              HasSubstr("did you mean 'load'"));
  EXPECT_THAT(error_of([] { table_of(""); }), HasSubstr("is empty"));
  EXPECT_THAT(error_of([] { table_of("a\n"); }), HasSubstr("no rows"));
}

TEST(SeriesTable, FillsMissingValuesWithTheLastOneWhereAsked) {
  EXPECT_THAT(table_of("a,b\n?,1\n5,NaN\n,3\n", {.missing = Missing::last}).values,
              ElementsAre(5, 1, 5, 1, 5, 3));
  EXPECT_THAT(error_of([] { table_of("a,b\n?,1\n", {.missing = Missing::last}); }),
              HasSubstr("has no values"));
}

TEST(TimeFeatures, ReadsTimesAndWritesThemBack) {
  EXPECT_EQ(parse_time("1970-01-01"), 0);
  EXPECT_EQ(parse_time("1970/01/02T00:00:05.25Z"), 86405);
  EXPECT_EQ(parse_time("1969-12-31 23:59:59"), -1);
  EXPECT_EQ(time_text(*parse_time("2016-07-01 13:05:59")), "2016-07-01 13:05:59");
  EXPECT_EQ(time_text(-1), "1969-12-31 23:59:59");
  for (const char* bad : {"", "2016", "2016-13-01", "2016-02-30", "2016-01-01 24:00", "2016-01-01 1:00", "x"})
    EXPECT_FALSE(parse_time(bad)) << bad;
}

TEST(TimeFeatures, LieBetweenMinusAndPlusOneHalf) {
  const int64_t times[] = {*parse_time("2016-12-31 23:59"), *parse_time("2024-01-01 00:00")};
  const auto names = parse_time_features("minute, hour,weekday,day,yearday,month");
  // A Saturday, the last minute of a leap year; a Monday.
  EXPECT_THAT(time_features(times, names),
              testing::Pointwise(testing::FloatNear(1e-6f),
                                 std::vector<float>{0.5f, 0.5f, 5 / 6.0f - 0.5f, 0.5f, 0.5f, 0.5f, -0.5f,
                                                    -0.5f, -0.5f, -0.5f, -0.5f, -0.5f}));
  EXPECT_THAT(error_of([] { parse_time_features("hours"); }), HasSubstr("did you mean 'hour'"));
  EXPECT_THAT(error_of([] { parse_time_features("hour,hour"); }), HasSubstr("twice"));
}

constexpr const char* kHeader =
    "# a comment\n@problemName x\n@timeStamps false\n@dimensions 2\n@classLabel true up down\n@data\n";

SeriesCases cases_of(const std::string& text, const CaseOptions& options = {}) {
  return parse_series_cases(text, "c.ts", options);
}

TEST(SeriesCases, ReadsSeveralFeaturesAndLengths) {
  const SeriesCases cases = cases_of(std::string(kHeader) + "1,2,3:4,5,6:up\n7:8:down\n");
  EXPECT_EQ(cases.features, 2);
  EXPECT_THAT(cases.classes, ElementsAre("up", "down"));
  EXPECT_THAT(cases.labels, ElementsAre(0, 1));
  EXPECT_THAT(cases.starts, ElementsAre(0, 3, 4));
  EXPECT_THAT(cases.values, ElementsAre(1, 4, 2, 5, 3, 6, 7, 8));
  const SeriesCases numbers = cases_of("@targetLabel true\n@univariate true\n@data\n1,2:0.5\n");
  EXPECT_EQ(numbers.target, CaseTarget::number);
  EXPECT_THAT(numbers.numbers, ElementsAre(0.5));
}

TEST(SeriesCases, NamesFileAndLineOfWhatIsWrong) {
  const auto fails = [](const std::string& data) { return error_of([&] { cases_of(kHeader + data); }); };
  EXPECT_THAT(fails("1,2:3:up\n"), HasSubstr("c.ts, line 7: feature 2 has 1 steps, wanted 2"));
  EXPECT_THAT(fails("1:2,3:up\n"), HasSubstr("c.ts, line 7: feature 2 has more steps than the 1"));
  EXPECT_THAT(fails("1:2:up\n1:up\n"), HasSubstr("c.ts, line 8: 1 features, wanted 2 and a label"));
  EXPECT_THAT(fails("1:2:upp\n"), HasSubstr("c.ts, line 7: unknown label 'upp', did you mean 'up'"));
  EXPECT_THAT(fails("1:x:up\n"), HasSubstr("c.ts, line 7, feature 2, step 1: got 'x', wanted a number"));
  EXPECT_THAT(fails("1:?:up\n"), HasSubstr("the value is missing"));
  EXPECT_THAT(fails(""), HasSubstr("no cases"));
  EXPECT_THAT(error_of([] { cases_of("1,2:up\n"); }),
              HasSubstr("c.ts, line 1: got '1,2:up', wanted a header"));
  EXPECT_THAT(error_of([] { cases_of("@timeStamps true\n@data\n"); }), HasSubstr("time stamps"));
  EXPECT_THAT(error_of([] { cases_of("@dimensions 1e9\n@data\n"); }), HasSubstr("number of features"));
  EXPECT_THAT(error_of([] { cases_of("@classLabel true a\n@data\n"); }), HasSubstr("at least 2"));
  EXPECT_THAT(error_of([] { cases_of("@classLabel maybe\n@data\n"); }), HasSubstr("wanted true or false"));
}

TEST(SeriesCases, MissingValuesTakeTheLastOneAndALabelMayFollowACase) {
  const std::vector<float> values = parse_case("?,1,?:2,?,3:label", 2, "line", {.missing = Missing::last});
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_THAT(std::vector<float>(values.begin() + 1, values.end()), ElementsAre(2, 1, 2, 1, 3));
  EXPECT_THAT(parse_case("1:2", 2, "line"), ElementsAre(1, 2));
  EXPECT_THAT(error_of([] { parse_case("1:2:3:4", 2, "line 3"); }), HasSubstr("line 3: 4 parts"));
}

}  // namespace
}  // namespace fovea::data
