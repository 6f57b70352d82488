// Files of number sequences: tables over time, .ts cases, points in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/error_of.h"
#include "data/series_cases.h"
#include "data/series_table.h"
#include "data/time_features.h"

namespace fovea::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_THAT(
      error_of([] { table_of("a,b\n1,\n"); }),
      HasSubstr("t.csv, line 2, column 'b': the value is missing; fill it, or train with --missing last"));
  EXPECT_THAT(error_of([] { table_of("1,2\n3,4\n"); }), HasSubstr("wanted a header"));
  EXPECT_THAT(error_of([] { table_of("a,a\n3,4\n"); }), HasSubstr("two columns are named 'a'"));
  EXPECT_THAT(error_of([] { table_of("a\n1e39\n"); }),
              HasSubstr("t.csv, line 2, column 'a': got '1e39', which is too large for a 32-bit float"));
  EXPECT_THAT(error_of([] { table_of("a\n-1e400\n"); }), HasSubstr("too large for a 32-bit float"));
  EXPECT_THAT(error_of([] { table_of("a\ninf\n"); }), HasSubstr("got 'inf', wanted a number"));
  EXPECT_THAT(error_of([] { table_of("d,a\n2016-07-01,1\n2016-07-01,2\n"); }), HasSubstr("is not later"));
  EXPECT_THAT(error_of([] { table_of("d,a\n2016-07-01,1\n2016-07-32,2\n"); }), HasSubstr("wanted a time"));
  EXPECT_THAT(error_of([] { table_of("load,oil\n1,2\n", {.columns = {"lood"}}); }),
              HasSubstr("did you mean 'load'"));
  EXPECT_THAT(error_of([] { table_of(""); }), HasSubstr("is empty"));
  EXPECT_THAT(error_of([] { table_of("a\n"); }), HasSubstr("no rows"));
}

TEST(SeriesTable, AQuoteOpensAndClosesAFieldOrIsRefused) {
  EXPECT_THAT(table_of("a,b\n\"1.5\",2\n3, \"4\"\n").values, ElementsAre(1.5, 2, 3, 4));
  EXPECT_THAT(table_of("\"a \"\"x\"\", y\",\"\",b\n1,,2\n").columns, ElementsAre("a \"x\", y", "b"));
  EXPECT_THAT(error_of([] { table_of("a,b\n1,2\n1\"2,3\n"); }),
              HasSubstr("t.csv, line 3: got '1\"2', wanted quotes around the whole field or none"));
  EXPECT_THAT(error_of([] { table_of("a,b\n3,\"1.5\n"); }),
              HasSubstr("t.csv, line 2: got '\"1.5', whose quote does not close in its line"));
  EXPECT_THAT(error_of([] { table_of("a,b\n\"1\"2,3\n"); }),
              HasSubstr("t.csv, line 2: got '2,3' after a closing quote"));
  EXPECT_THAT(error_of([] { table_of("a\"b,c\n1,2\n"); }), HasSubstr("t.csv, line 1: got 'a\"b'"));
}

TEST(SeriesTable, RemembersTheLineOfEachRow) {
  const SeriesTable table = table_of("a,b\n\n1,2\n\n3,4\n");
  EXPECT_THAT(table.lines, ElementsAre(3, 5));
  EXPECT_THAT(with_columns(table, {"b"}, "t").lines, ElementsAre(3, 5));
}

TEST(SeriesTable, AColumnWithoutANameIsAnIndexOrHoldsTheTimes) {
  const SeriesTable times = table_of(",a\n2016-07-01,1\n2016-07-02,2\n");
  EXPECT_EQ(times.time_column, "time");
  EXPECT_THAT(times.values, ElementsAre(1, 2));
  // What training calls that column finds it again.
  EXPECT_EQ(table_of(",a\n2016-07-01,1\n", {.time_column = "time"}).times.size(), 1u);
  const SeriesTable index = table_of(",date,a\n0,2016-07-01,1\n1,2016-07-02,2\n");
  EXPECT_THAT(index.columns, ElementsAre("a"));
  EXPECT_EQ(index.time_column, "date");
  EXPECT_EQ(index.times.size(), 2u);
  EXPECT_THAT(table_of(",a\n0,5\n1,6\n").values, ElementsAre(5, 6));
}

TEST(SeriesTable, SaysWhatToDoWithNumbersTimesAndTextsItCannotUse) {
  EXPECT_THAT(error_of([] { table_of("a;b\n1;2,5\n"); }),
              HasSubstr("got '2,5', wanted a number with a decimal point, without commas"));
  EXPECT_THAT(error_of([] { table_of("day,a\n07/01/2016,1\n"); }),
              HasSubstr("column 'day': got '07/01/2016', wanted a number; times begin with the year"));
  EXPECT_THAT(error_of([] { table_of("town,a\nParis,1\n"); }),
              HasSubstr("got 'Paris', wanted a number; --target names the columns to read"));
  EXPECT_THAT(error_of([] { table_of("2016-07-01,5\n2016-07-02,6\n"); }),
              HasSubstr("got '2016-07-01', wanted a header"));
  EXPECT_THAT(error_of([] { table_of("d,a\n2016-07-02,1\n2016-07-01,2\n"); }), HasSubstr("the oldest first"));
  // Seconds are times only where a column is said to hold them, by its name or by an option.
  EXPECT_EQ(table_of("Timestamp,a\n1467331205,1\n1467331206,2\n").times[0], 1467331205);
  EXPECT_TRUE(table_of("time,a\n1,1\n2,2\n").times.empty());
  EXPECT_TRUE(table_of("t,a\n1467331205,1\n1467331206,2\n").times.empty());
  EXPECT_EQ(table_of("t,a\n1467331205,1\n1467331206,2\n", {.time_column = "t"}).times[1], 1467331206);
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
  for (const char* bad :
       {"", "2016", "2016-13-01", "2016-02-30", "2016-01-01 24:00", "2016-01-01 1", "x", "2016-1/2",
        "2016.07", "07/01/2016", "1.7.16", "2016-01-01 13:00 PM", "2016-01-01 0:30 am", "2016-01-01+02:00x",
        "2016-01-01 10:00 +2", "0000-01-01 00:00+01:00", "9999-12-31 23:00-02:00", "-2016-01-01"})
    EXPECT_FALSE(parse_time(bad)) << bad;
}

TEST(TimeFeatures, ReadsTimesAsPeopleWriteThem) {
  const auto same = [](const char* text) { return time_text(parse_time(text).value_or(0)); };
  EXPECT_EQ(same("2016-7-1 9:05"), "2016-07-01 09:05:00");
  EXPECT_EQ(same("2016.7.1"), "2016-07-01 00:00:00");
  EXPECT_EQ(same("1.7.2016 13:00"), "2016-07-01 13:00:00");
  EXPECT_EQ(same("2016-07"), "2016-07-01 00:00:00");
  EXPECT_EQ(same("2016/07/01 12:30 AM"), "2016-07-01 00:30:00");
  EXPECT_EQ(same("2016-07-01 1:30:05pm"), "2016-07-01 13:30:05");
  EXPECT_EQ(same("2016-07-01T13:00:00+02:00"), "2016-07-01 11:00:00");
  EXPECT_EQ(same("2016-07-01 23:30:00-0500"), "2016-07-02 04:30:00");
  EXPECT_EQ(parse_time_number("20160701"), parse_time("2016-07-01"));
  EXPECT_EQ(parse_time_number("1467331205"), parse_time("2016-07-01 00:00:05"));
  EXPECT_EQ(parse_time_number("1467331205999"), parse_time("2016-07-01 00:00:05"));
  for (const char* bad : {"", "5", "20161301", "-146733120", "146733120512", "1467331205x"})
    EXPECT_FALSE(parse_time_number(bad)) << bad;
}

TEST(TimeFeatures, TheNextTimesFollowTheUsualStep) {
  const auto next = [](const std::vector<const char*>& rows, int64_t steps) {
    std::vector<int64_t> times;
    for (const char* row : rows) times.push_back(*parse_time(row));
    return time_text(time_after(times.back(), step_between(times), steps));
  };
  EXPECT_EQ(next({"2016-07-01 10:00", "2016-07-01 11:00"}, 2), "2016-07-01 13:00:00");
  // A gap at the end, such as a week-end, is not the usual step.
  EXPECT_EQ(next({"2016-06-29", "2016-06-30", "2016-07-01", "2016-07-04"}, 1), "2016-07-05 00:00:00");
  EXPECT_EQ(next({"2016-11", "2016-12", "2017-01"}, 2), "2017-03-01 00:00:00");
  EXPECT_EQ(next({"2016-01-31", "2016-02-29", "2016-03-31"}, 1), "2016-04-30 00:00:00");
  EXPECT_EQ(next({"2016-02-29", "2016-03-31", "2016-04-30"}, 11), "2017-03-31 00:00:00");
  EXPECT_EQ(next({"2014-07-01", "2015-07-01", "2016-07-01"}, 1), "2017-07-01 00:00:00");
  EXPECT_EQ(next({"2016-07-01", "2016-07-08", "2016-07-15"}, 1), "2016-07-22 00:00:00");
  const int64_t gaps[] = {0, 60, 120, 300, 360};
  EXPECT_EQ(step_between(gaps).irregular, 1);
  const int64_t months[] = {*parse_time("2016-01-01"), *parse_time("2016-02-01"), *parse_time("2016-03-01")};
  EXPECT_EQ(step_between(months).irregular, 0);
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
  EXPECT_THAT(cases.lines, ElementsAre(7, 8));
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
  EXPECT_THAT(
      fails("1:1e39:up\n"),
      HasSubstr("c.ts, line 7, feature 2, step 1: got '1e39', which is too large for a 32-bit float"));
  EXPECT_THAT(error_of([] { cases_of("@targetLabel true\n@data\n1:1e39\n"); }),
              HasSubstr("got the target '1e39', which is too large for a 32-bit float"));
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
