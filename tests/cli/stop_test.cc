// Training stopped by signals at random moments, every kind of it: the right exit status each time, and a saved state
// from which the next run goes on. And training that is killed: it ends in the same bytes as a run that was not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <thread>

#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"
#include "models/captioned_pictures.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

struct Kind {
  std::string name;
  std::vector<std::string> arguments;  // after `fovea`
};

constexpr int kStops = 14;  // of each of the nineteen kinds: 266
constexpr int64_t kManySteps = 1'000'000;

// Data of all kinds, as small as they can be.
class StoppedTraining : public testing::TestWithParam<Kind> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    std::ofstream source(*folder_ / "text.src"), target(*folder_ / "text.tgt"),
        labelled(*folder_ / "text.tsv");
    labelled << "text\tlabel\n";
    std::mt19937 random(3);
    for (int i = 0; i < 200; ++i) {
      std::string line, turned;
      for (size_t words = 2 + random() % 5; words > 0; --words) {
        const std::string word(1, static_cast<char>('a' + random() % 20));
        line += (line.empty() ? "" : " ") + word + "o";
        turned = "i" + word + (turned.empty() ? "" : " ") + turned;
      }
      source << line << '\n';
      target << turned << '\n';
      labelled << line << " .\t" << (i % 2 == 0 ? "even" : "odd") << '\n';
    }
    std::string pictures("\0\0\x08\x03\0\0\0\x40\0\0\0\x10\0\0\0\x10", 16),
        labels("\0\0\x08\x01\0\0\0\x40", 8);
    for (int i = 0; i < 64; ++i) {
      labels += static_cast<char>(i % 3);
      for (int pixel = 0; pixel < 256; ++pixel) pictures += static_cast<char>(random() % 80 + i % 3 * 80);
    }
    write_atomically(*folder_ / "pictures.idx", pictures);
    write_atomically(*folder_ / "labels.idx", labels);
    std::ofstream table(*folder_ / "table.csv"), cases(*folder_ / "cases.ts"), text(*folder_ / "text.txt");
    table << "time,load,heat\n";
    for (int i = 0; i < 200; ++i)
      table << i << ',' << std::sin(0.4 * i) << ',' << std::cos(0.3 * i) + 0.01 * (random() % 10) << '\n';
    cases << "@univariate false\n@dimensions 2\n@classLabel true even odd\n@data\n";
    for (int i = 0; i < 40; ++i) {
      for (int feature = 0; feature < 2; ++feature) {
        for (int step = 0; step < 6; ++step)
          cases << (step > 0 ? "," : "") << (i + step) % 2 + 0.1 * (random() % 9);
        cases << ':';
      }
      cases << (i % 2 == 0 ? "even" : "odd") << '\n';
    }
    for (int i = 0; i < 120; ++i)
      text << "the " << (i % 3 == 0 ? "red" : "blue") << " boat "
           << (i % 2 == 0 ? "sails home" : "lies still") << (i % 6 == 5 ? " .\n\n" : " .\n");
    models::write_captioned_pictures(folder_->path(), 16);
  }
  static void TearDownTestSuite() { delete folder_; }

  std::filesystem::path out(const std::string& which = "model") const {
    return *folder_ / (which + "-" + GetParam().name);
  }

  // Starts the training, until step `steps` at most.
  pid_t start(int64_t steps, const std::filesystem::path& out, int64_t save_every = kManySteps,
              int threads = 2) const {
    std::vector<std::string> words{FOVEA_PROGRAM};
    for (const std::string& word : GetParam().arguments) {
      const size_t at = word.find("DATA/");
      words.push_back(at == 0 ? (*folder_ / word.substr(5)).string() : word);
    }
    for (const std::string& word :
         {std::string("--out"), out.string(), std::string("--preset"), std::string("tiny"),
          std::string("--steps"), std::to_string(steps), std::string("--log-every"), std::string("1"),
          std::string("--validate-every"), std::string("9"), std::string("--save-every"),
          std::to_string(save_every), std::string("--patience"), std::string("0"), std::string("--threads"),
          std::to_string(threads)})
      words.push_back(word);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      const int said = open((*folder_ / "said").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
      dup2(said, 1);
      dup2(said, 2);
      execv(argv[0], argv.data());
      _exit(127);
    }
    return child;
  }
  static std::string said() { return read_text(*folder_ / "said"); }

  // The last step that the log tells of.
  int64_t last_step() const {
    std::ifstream log(out() / "train.jsonl");
    int64_t last = 0;
    for (std::string line; std::getline(log, line);) {
      const Json json = Json::parse(line, nullptr, false);
      if (json.is_object()) last = json.value("step", last);
    }
    return last;
  }

  static TemporaryDirectory* folder_;
};
TemporaryDirectory* StoppedTraining::folder_ = nullptr;

TEST_P(StoppedTraining, SavesAndGoesOnEveryTime) {
  std::mt19937 random(11);
  constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  int64_t saved = 0;
  for (int stop = 0; stop < kStops; ++stop) {
    const int signal = kSignals[static_cast<size_t>(stop) % 3];
    const pid_t child = start(kManySteps, out());
    int status = 0;
    while (last_step() <= saved) {
      ASSERT_EQ(waitpid(child, &status, WNOHANG), 0) << "ended by itself before stop " << stop << ":\n"
                                                     << said();
      std::this_thread::sleep_for(milliseconds(2));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    kill(child, signal);
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status)) << "stop " << stop << " by signal " << signal << " ended in signal "
                                   << WTERMSIG(status) << ":\n"
                                   << said();
    ASSERT_EQ(WEXITSTATUS(status), 128 + signal) << said();
    const std::string text = said();
    const std::string sentence = "stopped after step ";
    const size_t at = text.find(sentence);
    ASSERT_NE(at, std::string::npos) << text;
    const int64_t step = std::stoll(text.substr(at + sentence.size()));
    ASSERT_GT(step, saved) << "the saved state was not gone on from";
    ASSERT_EQ(load_json(out() / "checkpoints/last/state.json").at("step"), step);
    saved = step;
  }
  const pid_t child = start(saved + 2, out());
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << said();
  EXPECT_THAT(said(), HasSubstr("trained " + std::to_string(saved + 2) + " steps"));
}

TEST_P(StoppedTraining, KilledAtAnyMomentEndsInTheSameBytes) {
  constexpr int64_t kSteps = 100;
  int status = 0;
  waitpid(start(kSteps, out("whole"), 4, 1), &status, 0);
  ASSERT_EQ(status, 0) << said();
  std::mt19937 random(5);
  const std::filesystem::path killed = out("killed");
  const auto saved = [&] {
    const std::filesystem::path state = killed / "checkpoints/last/state.json";
    try {
      return std::filesystem::exists(state) ? load_json(state).at("step").get<int64_t>() : int64_t{0};
    } catch (const Error&) {  // replaced just now
      return int64_t{0};
    }
  };
  bool interrupted = false;
  for (int64_t before = saved(), kills = 0; kills < 4 && before < kSteps - 4; before = saved(), ++kills) {
    const pid_t child = start(kSteps, killed, 4);
    pid_t ended = 0;
    while (saved() <= before && (ended = waitpid(child, &status, WNOHANG)) == 0)
      std::this_thread::sleep_for(milliseconds(1));
    if (ended != 0) break;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    interrupted |= WIFSIGNALED(status);
  }
  EXPECT_TRUE(interrupted) << "every run ended before it was killed";
  waitpid(start(kSteps, killed, 4), &status, 0);
  ASSERT_EQ(status, 0) << said();
  EXPECT_TRUE(read_text(killed / "model.safetensors") == read_text(out("whole") / "model.safetensors"));
}

Kind translate(const std::string& model) {
  Kind kind{"translate_" + model,
            {"train", "translate", "--train", "DATA/text.src", "DATA/text.tgt", "--valid", "DATA/text.src",
             "DATA/text.tgt", "--tokenizer", "words", "--model", model, "--width", "64", "--batch-tokens",
             "200", "--valid-sentences", "8"}};
  if (model != "transformer") kind.arguments.insert(kind.arguments.end(), {"--embedding", "64"});
  return kind;
}
Kind classify(const std::string& model) {
  return {"classify_" + model,
          {"train", "classify", "--train", "DATA/text.tsv", "--valid", "DATA/text.tsv", "--tokenizer",
           "words", "--model", model}};
}

Kind pictures(const std::string& task, const std::vector<std::string>& more, const std::string& name = {}) {
  Kind kind{name.empty() ? task : name,
            {"train", task, "--train", "DATA/pictures.idx", "DATA/labels.idx", "--valid", "DATA/pictures.idx",
             "DATA/labels.idx"}};
  kind.arguments.insert(kind.arguments.end(), more.begin(), more.end());
  return kind;
}
Kind caption(const std::string& attention) {
  return {"caption_" + attention,
          {"train",
           "caption",
           "--images",
           "DATA/images",
           "--captions",
           "DATA/captions.txt",
           "--split",
           "DATA/train.txt",
           "DATA/valid.txt",
           "--encoder",
           "DATA/encoder",
           "--picture-size",
           "32",
           "--blocks",
           "5",
           "--min-count",
           "1",
           "--width",
           "16",
           "--embedding",
           "8",
           "--attention",
           attention}};
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, StoppedTraining,
    testing::Values(translate("transformer"), translate("bahdanau"), translate("luong"), translate("rnn"),
                    classify("lstm"), classify("han"), classify("transformer"), pictures("image", {}),
                    pictures("image", {"--model", "vit", "--patch", "4"}, "image_vit"),
                    pictures("glimpse", {"--patch", "4", "--glimpses", "2", "--batch", "8"}),
                    pictures("glimpse", {"--model", "soft", "--grid", "3", "--patch", "4", "--batch", "8"},
                             "glimpse_soft"),
                    pictures("clip",
                             {"--clips", "12", "--test-clips", "4", "--target", "1", "--filters", "2"}),
                    caption("soft"), caption("hard"), caption("gumbel"),
                    Kind{"partition",
                         {"train", "partition", "--train", "scenes", "--valid", "scenes", "--scenes", "8",
                          "--valid-scenes", "2", "--size", "64"}},
                    Kind{"series_forecast",
                         {"train", "series", "--train", "DATA/table.csv", "--valid", "DATA/table.csv",
                          "--steps-in", "16", "--horizon", "4", "--width", "16", "--hidden", "16"}},
                    Kind{"series_cases",
                         {"train", "series", "--train", "DATA/cases.ts", "--valid", "DATA/cases.ts",
                          "--model", "lstm", "--width", "16"}},
                    Kind{"pretrain",
                         {"pretrain", "--train", "DATA/text.txt", "--valid", "DATA/text.txt", "--vocabulary",
                          "100", "--max-tokens", "32", "--batch", "4"}}),
    [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace fovea
