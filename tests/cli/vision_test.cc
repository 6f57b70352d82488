// Glimpse and clip classifiers by the command line: use, drawings, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "data/png_writer.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"
#include "tasks/untrained_vision.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing_cli::Outcome;
using testing_cli::run;

class Vision : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    tasks::save_glimpse_classifier(path("ram"), tasks::untrained_glimpse_classifier());
    tasks::save_glimpse_classifier(path("soft"), tasks::untrained_glimpse_classifier("soft"));
    tasks::save_clip_classifier(path("gated"), tasks::untrained_clip_classifier());
    tasks::save_clip_classifier(path("mean"), tasks::untrained_clip_classifier("mean"));
    const std::string picture = data::encode_png(std::vector<uint8_t>(3 * 20 * 30, 90), {20, 30, 3});
    std::filesystem::create_directories(path("clip"));
    std::filesystem::create_directories(path("empty"));
    for (const char* name : {"a.png", "clip/0.png", "clip/1.png", "clip/2.png"})
      write_atomically(path(name), picture);
    std::filesystem::create_directories(path("alike/cats"));
    write_atomically(path("alike/cats/0.png"), picture);
    write_atomically(path("broken.png"), "no picture");
    write_idx();
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  // 120 pictures of 16 x 16: a bar across or a bar down.
  static void write_idx() {
    std::string images{"\0\0\x08\x03\0\0\0\x78\0\0\0\x10\0\0\0\x10", 16}, labels{"\0\0\x08\x01\0\0\0\x78", 8};
    for (int i = 0; i < 120; ++i) {
      for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 16; ++column)
          images += static_cast<char>((i % 2 ? row : column) == i / 8 ? 200 : 0);
      labels += static_cast<char>(i % 2);
    }
    write_atomically(path("images"), images);
    write_atomically(path("labels"), labels);
    labels.replace(8, 120, std::string(120, '\3'));
    write_atomically(path("threes"), labels);
  }
  // "@name" stands for the path of a file or folder made above.
  static std::string with_paths(std::string arguments) {
    for (size_t at; (at = arguments.find('@')) != std::string::npos;)
      arguments.replace(at, 1, folder_->path().string() + "/");
    return arguments;
  }
  static Outcome ask(const std::string& arguments) { return run(with_paths(arguments)); }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* Vision::folder_ = nullptr;

TEST_F(Vision, WhatDoesNotApplyIsRefusedInOneLine) {
  const std::pair<const char*, const char*> table[] = {
      {"translate @ram", "is a glimpse classifier (ram); translate needs a translator"},
      {"classify @ram", "is a glimpse classifier: name pictures"},
      {"classify @gated", "is a clip classifier: name folders of frames"},
      {"classify @ram @a.png --weights", "--weights works for text models only"},
      {"classify @gated @clip --weights", "--weights works for text models only"},
      {"classify @soft @a.png --rollouts 3", "--rollouts needs a model that draws its path (ram)"},
      {"classify @gated @clip --rollouts 3", "--rollouts needs a glimpse classifier"},
      {"classify @ram @a.png --rollouts -2", "--rollouts: got -2"},
      {"classify @ram @clip", "is a folder; wanted a picture file"},
      {"classify @ram --test @images", "give the file of pictures and the file of their labels"},
      {"explain @ram @clip", "is a folder; wanted a picture file"},
      {"explain @ram @a.png --kind encoder", "--kind does not apply"},
      {"explain @gated @a.png --beam 2", "--beam does not apply"},
      {"explain @gated @empty", "no frames"},
      {"explain @mean @clip", "without attention"},
      {"explain @gated @broken.png", "broken.png"},
      {"classify @gated --test @images @labels", "wanted a list file or a folder of clips"},
      {"train glimpse --out @x", "--train and --out are needed"},
      {"train glimpse --train @alike --out @x", "every picture has the class 'cats', wanted at least two"},
      {"train image --train @images @threes --out @x",
       "every picture has the class '3', wanted at least two"},
      {"train glimpse --train @images @threes --out @x", "threes: every picture has the class '3'"},
      {"train image --train @alike --out @x", "every picture has the class 'cats', wanted at least two"},
      {"train glimpse --train @images @labels --out @x --grid 3",
       "'grid' is an option of --model soft; the model is ram"},
      {"train glimpse --train @images @labels --out @x --model soft --copies 3",
       "'copies' is an option of --model ram; the model is soft"},
      {"train glimpse --train @images @labels --out @x --scene clutered", "scene"},
      {"train glimpse --train @images @labels --out @x --fragments 3", "fragments needs --scene cluttered"},
      {"train glimpse --train @images @labels --out @x --scene translated --size 9", "wanted at least 16"},
      {"train glimpse --train @images @labels --out @x --core gru", "core 'gru', wanted rnn or lstm"},
      {"train glimpse --train @images --out @x", "give the file of pictures and the file of their labels"},
      {"train clip --train @images @labels --out @x --pooling sum", "unknown pooling 'sum'"},
      {"train clip --train @images @labels --out @x --size 30", "size does not apply"},
      {"train clip --train @images @labels --out @x --grey", "grey does not apply"},
      {"train clip --train @clip --out @x --clips 30", "clips does not apply"},
      {"train clip --train @images --out @x",
       "not a list file; wanted a list file, a folder of clips (unpack an archive first), or two IDX files"},
      {"train glimpse --train @images @labels --out @x --deviation 0", "deviation is 0, wanted 0.0001 to 10"},
      {"train clip --train @images @labels --out @x --target 7", "'7' is not a class"},
  };
  for (const auto& [arguments, said] : table) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = ask(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(said));
    // A training says first what it reads.
    const auto lines = std::count(outcome.err.begin(), outcome.err.end(), '\n');
    EXPECT_LE(lines, std::string(arguments).starts_with("train") ? 2 : 1) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("x")));
}

TEST_F(Vision, WhatAppliesIsDone) {
  for (const char* arguments :
       {"classify @ram @a.png --scores", "classify @ram @a.png --rollouts 3 --json",
        "classify @soft @a.png --compute int8", "classify @gated @clip @a.png --scores",
        "classify @mean @clip --json", "explain @ram @a.png", "explain @ram @a.png --out @x.png",
        "explain @soft @a.png --out @x.html", "explain @gated @clip", "explain @gated @clip --out @x.svg",
        "explain @gated @a.png --out @x.json", "info @ram", "info @gated"}) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = ask(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out, "");
  }
  EXPECT_THAT(ask("info @gated").out, HasSubstr("folder-of-frames"));
}

// The options that a pooling with scores has, and what is said to be next.
TEST_F(Vision, ClipsAreTrainedWithAnyPoolingAndSelection) {
  const std::string train =
      "train clip --train @images @labels --clips 4 --target 1 --filters 2 --steps 1 --threads 1 ";
  for (const char* options : {"--pooling additive --selection top_k(2)", "--pooling dot --selection hard",
                              "--selection identity", "--pooling gated --selection sparsemax --hidden 8"}) {
    SCOPED_TRACE(options);
    std::string quoted = options;
    for (const char bracket : {'(', ')'})
      if (const size_t at = quoted.find(bracket); at != std::string::npos) quoted.insert(at, "\\");
    const Outcome outcome = ask(train + quoted + " --out @clips" + std::to_string(quoted.size()));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("next: fovea explain"));
  }
  const Outcome mean = ask(train + "--pooling mean --out @clips-mean");
  EXPECT_EQ(mean.status, 0) << mean.err;
  EXPECT_THAT(mean.out, HasSubstr("next: fovea classify"));
  EXPECT_THAT(ask(train + "--pooling mean --selection hard --out @x").err,
              HasSubstr("for a pooling without scores; choose gated, additive or dot"));
}

}  // namespace
}  // namespace fovea
