#include "io/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/file.h"
#include "io/temporary_directory.h"

namespace fovea {
namespace {

using ::testing::HasSubstr;

struct Inner {
  float rate = 0.1f;
  static constexpr auto fields() { return std::tuple{Field{"rate", &Inner::rate, "learning rate"}}; }
};

struct Options {
  int64_t steps = 600;
  int32_t heads = 8;
  bool nesterov = false;
  std::string schedule = "cosine";
  std::vector<int64_t> milestones = {10, 20};
  std::optional<double> clip;
  uint64_t seed = 1;
  Inner inner;
  static constexpr auto fields() {
    return std::tuple{Field{"steps", &Options::steps, "training steps"},
                      Field{"heads", &Options::heads, "attention heads"},
                      Field{"nesterov", &Options::nesterov, "look ahead"},
                      Field{"schedule", &Options::schedule, "shape of the learning rate"},
                      Field{"milestones", &Options::milestones, "steps at which the rate drops"},
                      Field{"clip", &Options::clip, "largest gradient norm"},
                      Field{"seed", &Options::seed, "names the draws"},
                      Field{"inner", &Options::inner, "an options struct inside"}};
  }
};

std::string load_error(const std::string& text) {
  try {
    Options options;
    fields_from_json(parse_json(text, "config.json"), options, "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Fields, SaveInTheOrderOfDeclaration) {
  EXPECT_EQ(fields_to_json(Options{}).dump(),
            R"({"steps":600,"heads":8,"nesterov":false,"schedule":"cosine","milestones":[10,20],"clip":null,)"
            R"("seed":1,"inner":{"rate":0.1}})");
}

TEST(Fields, LoadWhatWasSaved) {
  Options written;
  written.steps = -5;
  written.clip = 0.25;
  written.seed = ~uint64_t{0};
  written.milestones = {};
  written.inner.rate = 1e-7f;
  Options read;
  fields_from_json(parse_json(fields_to_json(written).dump(), "x"), read, "x");
  EXPECT_EQ(fields_to_json(read), fields_to_json(written));
  EXPECT_EQ(read.inner.rate, 1e-7f);
  EXPECT_EQ(read.seed, ~uint64_t{0});
}

TEST(Fields, LeaveWhatIsNotNamed) {
  Options options;
  fields_from_json(parse_json(R"({"steps": 3})", "x"), options, "x");
  EXPECT_EQ(options.steps, 3);
  EXPECT_EQ(options.heads, 8);
}

TEST(Fields, UnknownNameGivesTheNearest) {
  EXPECT_EQ(load_error(R"({"stesp": 3})"), "config.json: unknown option 'stesp', did you mean 'steps'?");
  EXPECT_THAT(load_error(R"({"completely_else": 3})"), HasSubstr("known: steps, heads"));
}

TEST(Fields, WrongKindSaysWhatWasGotAndWanted) {
  EXPECT_EQ(load_error(R"({"steps": "many"})"), R"(config.json: steps: got '"many"', wanted a whole number)");
  EXPECT_EQ(load_error(R"({"steps": 1.5})"), "config.json: steps: got '1.5', wanted a whole number");
  EXPECT_EQ(load_error(R"({"heads": 3000000000})"),
            "config.json: heads: got 3000000000, wanted at most 2147483647");
  EXPECT_EQ(load_error(R"({"seed": -1})"), "config.json: seed: got -1, wanted at least 0");
  EXPECT_EQ(load_error(R"({"nesterov": 1})"), "config.json: nesterov: got '1', wanted true or false");
  EXPECT_EQ(load_error(R"({"milestones": [1, "x"]})"),
            R"(config.json: milestones[1]: got '"x"', wanted a whole number)");
  EXPECT_EQ(load_error(R"({"inner": {"rat": 1}})"),
            "config.json: inner: unknown option 'rat', did you mean 'rate'?");
  EXPECT_THAT(load_error(R"({"inner": {"rate": 1e39}})"), HasSubstr("wanted a smaller number"));
  EXPECT_EQ(load_error("[]"), "config.json: got '[]', wanted an object of named options");
}

TEST(Json, HostileTextIsRefused) {
  EXPECT_THAT(load_error(R"({"steps": 1, "steps": 2})"), HasSubstr("duplicate name 'steps'"));
  EXPECT_THAT(load_error(std::string(100000, '[')), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(load_error(std::string("{}\0{}", 5)), HasSubstr("zero byte"));
  EXPECT_THAT(load_error("{\"\xff\": 1}"), HasSubstr("no valid JSON"));
  EXPECT_THAT(load_error("{} {}"), HasSubstr("no valid JSON"));
  EXPECT_THAT(load_error(""), HasSubstr("no valid JSON"));
}

TEST(Json, SavesAndLoads) {
  const TemporaryDirectory directory;
  save_json(directory / "config.json", fields_to_json(Options{}));
  EXPECT_EQ(load_json(directory / "config.json"), fields_to_json(Options{}));
}

TEST(InQuotes, IsOneShortLine) {
  EXPECT_EQ(in_quotes("a\nb"), "'a?b'");
  EXPECT_LE(in_quotes(std::string(1000, 'x')).size(), 90u);
}

TEST(FlagName, ReadsWithDashes) {
  EXPECT_EQ(flag_name("save_every"), "--save-every");
}

}  // namespace
}  // namespace fovea
