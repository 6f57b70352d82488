// A disk that breaks or fills up at any moment: whatever a verb was writing, its old state or its new one is
// there, it says in one line what happened, and the same command then goes on to what an undisturbed one
// gives.
//
// In the ordinary run the verbs that take longest try some of their calls only. FOVEA_FAULTS=all tries every call of
// every verb, for both kinds of fault (half an hour beside other work, and longer for the demo):
//
//   FOVEA_FAULTS=all build/release/tests/test_cli_faults_test
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <set>

#include "cli/command.h"
#include "data/pictures.h"
#include "io/file.h"
#include "io/temporary_directory.h"
#include "models/captioned_pictures.h"
#include "tasks/untrained_encoder.h"
#include "tasks/untrained_marian.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using testing_cli::Outcome;
using testing_cli::run;

std::string content(const fs::path& path) {
  return fs::exists(path) ? read_text(path) : "";
}

// A PDF tells when it was made.
std::string without_date(std::string bytes) {
  if (const size_t at = bytes.find("/CreationDate"); at != std::string::npos)
    bytes.erase(at, bytes.find('\n', at) - at);
  return bytes;
}

class Faults : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    std::ofstream texts(file("train.tsv")), pairs(file("pairs.tsv"));
    texts << "text\tlabel\n";
    for (int i = 0; i < 40; ++i) {
      texts << "the film is " << (i % 2 ? "fine" : "dull") << " ." << '\t' << (i % 2 ? "pos" : "neg") << '\n';
      pairs << (i % 2 ? "a b c" : "b c a d") << '\t' << (i % 2 ? "A B C" : "B C A D") << '\n';
    }
    texts.close();
    pairs.close();
    // Two pictures of each class, dark and bright.
    for (const char* name : {"black", "white"}) {
      fs::create_directories(file("pictures/") + name);
      for (const char number : {'1', '2'})
        std::ofstream(file("pictures/") + name + "/" + number + ".png", std::ios::binary)
            << data::plain_png(8, 8, static_cast<char>(name[0] == 'b' ? number : 100 + number));
    }
  }
  static void TearDownTestSuite() { delete directory_; }
  static std::string file(const std::string& name) { return (*directory_ / name).string(); }

  static bool every_call() {
    const char* const wanted = std::getenv("FOVEA_FAULTS");
    if (wanted == nullptr) return false;
    EXPECT_STREQ(wanted, "all") << "FOVEA_FAULTS is all, or not set";
    return true;
  }

  // Runs the verb with its n-th call failing, for every n until none fails any more; `before` (may be absent)
  // is put at `out`, a place in the watched folder "work", each time. judge(outcome) looks at what is there
  // afterwards. stride: a slow verb tries each stride-th call only, from the first_call-th on; FOVEA_FAULTS=all
  // tries each.
  static void fail_everywhere(const std::string& arguments, const std::string& before, const std::string& out,
                              bool full, const std::function<void(const Outcome&)>& judge, int stride = 1,
                              int first_call = 1) {
    const std::string mark = file("mark");
    constexpr int kManyCalls = 3000;
    if (every_call()) stride = first_call = 1;
    for (int n = first_call; n < kManyCalls; n += stride) {
      SCOPED_TRACE("call " + std::to_string(n) + (full ? ", full" : ", broken") + ": " + arguments);
      restore(before, out);
      fs::remove(mark);
      const Outcome outcome =
          run(arguments, "LD_PRELOAD=" FOVEA_FAILING_CALLS " FOVEA_FAIL_UNDER=" + file("work") +
                             " FOVEA_FAIL_AT=" + std::to_string(n) + " FOVEA_FAIL_MARK=" + mark +
                             (full ? " FOVEA_FAIL_FULL=1" : ""));
      if (!fs::exists(mark)) {
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_GE(n, 3) << "no call was seen";
        std::cout << n - 1 << " calls" << (stride > 1 ? ", some tried: " : ": ")
                  << arguments.substr(0, arguments.find(" --")) << '\n';
        return;
      }
      // What the call was for may not have mattered; then nothing is said.
      if (outcome.status != 0) {
        const size_t line = outcome.err.rfind("fovea: ");
        ASSERT_NE(line, std::string::npos) << outcome.err;
        EXPECT_EQ(outcome.err.find('\n', line), outcome.err.size() - 1) << outcome.err;
        EXPECT_THAT(outcome.err.substr(line),
                    testing::HasSubstr(full ? "No space left" : "Input/output error"));
      }
      judge(outcome);
      if (HasFailure()) return;
    }
    FAIL() << "still failing after " << kManyCalls << " calls";
  }

  static void restore(const std::string& before, const std::string& out) {
    fs::remove_all(file("work"));
    fs::create_directories(fs::path(out).parent_path());
    if (fs::exists(before))
      fs::copy(before, out, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }

  // A training that goes on from `steps` to twice as many, and one from nothing. Trainings write their folders by the same
  // code: most try each third call only, another third for each kind of fault.
  static void training(const std::string& name, const std::string& arguments, int stride = 3) {
    const std::string out = file("work/" + name), old = file(name + "-old"), fresh = file(name + "-new");
    const std::string begin = arguments + " --steps 4 --out ", further = arguments + " --steps 8 --out ";
    ASSERT_EQ(run(begin + old).status, 0);
    restore(old, fresh);
    ASSERT_EQ(run(further + fresh).status, 0);
    const std::string old_weights = content(old + "/model.safetensors"),
                      new_weights = content(fresh + "/model.safetensors");
    ASSERT_NE(old_weights, new_weights);
    for (const bool full : {false, true}) {
      std::set<std::string> seen;
      fail_everywhere(
          further + out, old, out, full,
          [&](const Outcome& outcome) {
            const std::string weights = content(out + "/model.safetensors");
            EXPECT_TRUE(weights == new_weights || (outcome.status != 0 && weights == old_weights));
            EXPECT_NE(content(out + "/config.json"), "");
            expect_going_on(further + out, out, new_weights, seen);
          },
          stride, full && stride > 1 ? 2 : 1);
      if (HasFailure()) return;
    }
    std::set<std::string> seen;
    fail_everywhere(
        begin + out, "", out, true,
        [&](const Outcome& outcome) {
          // A folder that says it is a model is one.
          const bool is_model = outcome.status == 0 || fs::exists(out + "/config.json");
          EXPECT_TRUE(!is_model || content(out + "/model.safetensors") == old_weights);
          expect_going_on(begin + out, out, old_weights, seen);
        },
        stride, stride > 1 ? 3 : 1);
  }

  // A verb that writes one file over an old one: the old or the new one is there, whole. Files of other formats
  // are written by the same code: those try some calls only.
  static void writing(const std::string& arguments, const std::string& name, int stride = 1) {
    SCOPED_TRACE(name);
    const std::string out = file("work/written"), path = out + "/" + name, before = file("before-" + name);
    fs::remove_all(before);
    fs::create_directory(before);
    ASSERT_EQ(run(arguments + " --out " + before + "/" + name).status, 0);
    const std::string whole = without_date(content(before + "/" + name));
    ASSERT_GT(whole.size(), 9u);
    std::ofstream(before + "/" + name) << "old";
    for (const bool full : {false, true})
      fail_everywhere(
          arguments + " --out " + path, before, out, full,
          [&](const Outcome& outcome) {
            const std::string now = without_date(content(path));
            EXPECT_TRUE(now == whole || (outcome.status != 0 && now == "old")) << now.size();
          },
          stride);
  }

  // A verb that writes a new folder: it is not there, or it is whole.
  static void converting(const std::string& arguments) {
    const std::string out = file("work/converted"), good = file("well-converted");
    fs::remove_all(good);
    ASSERT_EQ(run(arguments + " --out " + good).status, 0);
    for (const bool full : {false, true})
      fail_everywhere(arguments + " --out " + out, "", out, full, [&](const Outcome& outcome) {
        EXPECT_TRUE(outcome.status != 0 || fs::exists(out));
        if (!fs::exists(out)) return;
        for (const auto& entry : fs::recursive_directory_iterator(good))
          EXPECT_TRUE(content(entry.path()) == content(out / fs::relative(entry.path(), good)));
      });
  }

  // The command without faults ends as it would have. A state that was tried before is not tried again.
  static void expect_going_on(const std::string& command, const std::string& out, const std::string& weights,
                              std::set<std::string>& seen) {
    std::string state = content(out + "/model.safetensors");
    if (fs::exists(out))
      for (const auto& entry : fs::recursive_directory_iterator(out))
        if (entry.path().string().find(".fovea-tmp") == std::string::npos) {
          state += entry.path().string() + "\n";
          if (entry.is_symlink()) state += fs::read_symlink(entry.path()).string() + "\n";
        }
    if (!seen.insert(state).second) return;
    const Outcome again = run(command);
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_EQ(content(out + "/model.safetensors"), weights);
  }

  static TemporaryDirectory* directory_;
};
TemporaryDirectory* Faults::directory_ = nullptr;

const std::vector<std::string> kPictures = {".png", ".svg", ".pdf"};
constexpr const char* kFewSteps = " --threads 1 --warmup 2 --save-every 2 --log-every 2";

TEST_F(Faults, TrainingAClassifier) {
  training("classifier",
           "train classify --train " + file("train.tsv") +
               " --tokenizer words --preset tiny --embedding 8 --width 8 --dropout 0" + kFewSteps,
           1);
}

TEST_F(Faults, TrainingATranslator) {
  training("translator",
           "train translate --train " + file("pairs.tsv") +
               " --tokenizer words --preset tiny --model transformer --width 8 --heads 2 --hidden 16 "
               "--encoder-layers 1 --decoder-layers 1" +
               kFewSteps);
}

TEST_F(Faults, TrainingAnImageClassifier) {
  training("images", "train image --train " + file("pictures") +
                         " --preset tiny --size 8 --batch 2 --width 4" + kFewSteps);
}

TEST_F(Faults, TrainingAGlimpseClassifier) {
  training("glimpses", "train glimpse --train " + file("pictures") +
                           " --size 8 --batch 2 --hidden 8 --features 4 --patch 4 --glimpses 2" + kFewSteps);
}

TEST_F(Faults, TrainingAClipClassifier) {
  std::string list;
  for (const auto& entry : fs::recursive_directory_iterator(file("pictures")))
    if (entry.is_regular_file()) {
      const std::string label = entry.path().parent_path().filename().string();
      list += "bag of " + label + "\t" + label + "\t" + entry.path().string() + "\n";
    }
  std::ofstream(file("bags.tsv")) << list;
  training("clips", "train clip --train " + file("bags.tsv") +
                        " --size 16 --batch 2 --filters 2 --features 4 --hidden 4" + kFewSteps);
}

TEST_F(Faults, TrainingACaptioner) {
  models::write_captioned_pictures(file("captioned"), 4);
  training("captions", "train caption --images " + file("captioned/images") + " --captions " +
                           file("captioned/captions.txt") + " --encoder " + file("captioned/encoder") +
                           " --picture-size 32 --blocks 5 --min-count 1 --width 8 --embedding 8" + kFewSteps);
}

TEST_F(Faults, TrainingAPartition) {
  training(
      "partition",
      std::string("train partition --train scenes --scenes 4 --size 64 --batch 2 --width 4") + kFewSteps);
}

TEST_F(Faults, TrainingAForecaster) {
  std::ofstream table(file("table.csv"));
  table << "time,load\n";
  for (int i = 0; i < 40; ++i) table << i << ',' << i % 7 << '\n';
  table.close();
  training("forecasts", "train series --train " + file("table.csv") +
                            " --steps-in 8 --horizon 2 --width 8 --hidden 8 --heads 2 --layers 1" +
                            kFewSteps);
}

TEST_F(Faults, PreTrainingAnEncoder) {
  std::ofstream text(file("text.txt"));
  for (int i = 0; i < 24; ++i)
    text << "the boat " << (i % 2 == 0 ? "sails" : "lies") << " here .\n" << (i % 6 == 5 ? "\n" : "");
  text.close();
  training("encoder",
           "pretrain --train " + file("text.txt") +
               " --preset tiny --vocabulary 100 --max-tokens 16 --batch 2 --width 8 --heads 2 --hidden 8" +
               kFewSteps);
}

TEST_F(Faults, TrainingAVisionTransformer) {
  training("vit",
           "train image --train " + file("pictures") +
               " --preset tiny --model vit --patch 4 --size 8 --batch 2 --width 8 --heads 2 --hidden 8 "
               "--layers 1" +
               kFewSteps,
           11);
}

TEST_F(Faults, FineTuningAnEncoder) {
  tasks::write_untrained_encoder(file("published-encoder"));
  training("tuned",
           "train classify --train " + file("train.tsv") + " --from " + file("published-encoder") + kFewSteps,
           5);
}

TEST_F(Faults, TrainingACaseClassifier) {
  std::ofstream cases(file("cases.ts"));
  cases << "@univariate true\n@classLabel true even odd\n@data\n";
  for (int i = 0; i < 20; ++i)
    cases << i % 2 << ',' << 1 - i % 2 << ',' << i << (i % 2 == 0 ? ":even\n" : ":odd\n");
  cases.close();
  training("cases", "train series --train " + file("cases.ts") + " --model lstm --width 8" + kFewSteps, 11);
}

// The features that several captioners may share are in a file of their own.
TEST_F(Faults, KeepingTheFeaturesOfPictures) {
  models::write_captioned_pictures(file("shared"), 4);
  const std::string features = file("work/features/file");
  const std::string arguments = "train caption --images " + file("shared/images") + " --captions " +
                                file("shared/captions.txt") + " --encoder " + file("shared/encoder") +
                                " --picture-size 32 --blocks 5 --min-count 1 --width 8 --embedding 8" +
                                kFewSteps + " --steps 2";
  fs::create_directories(file("work/features"));
  ASSERT_EQ(run(arguments + " --features " + features + " --out " + file("shared-good")).status, 0);
  const std::string whole = content(features), weights = content(file("shared-good/model.safetensors"));
  ASSERT_GT(whole.size(), 1024u);
  const std::string out = file("shared-out");
  for (const bool full : {false, true}) {
    fs::remove_all(out);
    fail_everywhere(arguments + " --features " + features + " --out " + out, "", features, full,
                    [&](const Outcome& outcome) {
                      fs::remove_all(out);
                      EXPECT_TRUE(outcome.status != 0 || content(features) == whole);
                      const Outcome again = run(arguments + " --features " + features + " --out " + out);
                      EXPECT_EQ(again.status, 0) << again.err;
                      EXPECT_EQ(content(features), whole);
                      EXPECT_EQ(content(out + "/model.safetensors"), weights);
                      fs::remove_all(out);
                    });
  }
}

TEST_F(Faults, ConvertingAModel) {
  const std::string model = file("to-convert");
  ASSERT_EQ(run("train translate --train " + file("pairs.tsv") +
                " --tokenizer words --preset tiny --model transformer --width 8 --heads 2 --hidden 16 "
                "--encoder-layers 1 --decoder-layers 1 --steps 2 --out " +
                model + kFewSteps)
                .status,
            0);
  converting("convert " + model + " --to int8");
}

TEST_F(Faults, ConvertingAnEncoder) {
  const std::string model = file("to-lengthen"), text = file("lines.txt");
  std::ofstream(text) << "the boat sails home .\nit lies still .\n\na red boat .\nthe blue one sails .\n";
  ASSERT_EQ(
      run("pretrain --train " + text +
          " --preset tiny --vocabulary 100 --max-tokens 16 --batch 2 --width 8 --heads 2 --hidden 8 --steps 2 "
          "--out " +
          model + kFewSteps)
          .status,
      0);
  converting("convert " + model + " --to longformer --max-tokens 600");
}

TEST_F(Faults, ConvertingAPublishedTranslator) {
  tasks::write_untrained_marian(file("marian"));
  converting("convert " + file("marian") + " --to int8");
}

TEST_F(Faults, WritingPictures) {
  writing("pattern \"causal\" --n 8", "pattern.svg");
  writing("scene 3 --size 64 --labels", "harbour.png");
  for (const std::string& format : kPictures) {
    writing("pattern \"causal\" --n 8", "pattern" + format, 2);
    writing("scene 3 --size 64 --labels", "harbour" + format, 2);
  }
}

TEST_F(Faults, ExplainingAText) {
  const std::string model = file("to-explain");
  ASSERT_EQ(
      run("train classify --train " + file("train.tsv") +
          " --tokenizer words --preset tiny --embedding 8 --width 8 --steps 2 --out " + model + kFewSteps)
          .status,
      0);
  writing("explain " + model + " 'the film is fine'", "map.svg");
  for (const std::string format : {".png", ".pdf", ".html", ".json"})
    writing("explain " + model + " 'the film is fine'", "map" + format, 2);
}

TEST_F(Faults, ExplainingATranslation) {
  const std::string model = file("to-align");
  ASSERT_EQ(run("train translate --train " + file("pairs.tsv") +
                " --tokenizer words --preset tiny --model bahdanau --width 8 --embedding 8 --steps 2 --out " +
                model + kFewSteps)
                .status,
            0);
  for (const std::string format : {".txt", ".html", ".json", ".pdf"})
    writing("explain " + model + " 'a b c' --target 'A B C'", "alignment" + format, format == ".txt" ? 1 : 2);
}

TEST_F(Faults, WritingWhatANetworkOfPicturesFinds) {
  const std::string ships = file("to-search"), kernels = file("to-compare");
  ASSERT_EQ(run("train partition --train scenes --scenes 2 --size 64 --width 4 --batch 1 --steps 2 --out " +
                ships + kFewSteps)
                .status,
            0);
  ASSERT_EQ(
      run("train image --train " + file("pictures") +
          " --preset tiny --size 8 --batch 2 --width 4 --gate sk --steps 2 --out " + kernels + kFewSteps)
          .status,
      0);
  const std::string picture = file("pictures/white/1.png");
  writing("partition " + ships + " " + picture, "ships.json");
  writing("explain " + ships + " " + picture, "ships.svg");
  writing("kernels " + kernels + " --test " + file("pictures") + " --scales 0.5,1", "curve.svg");
  writing("kernels " + kernels + " --test " + file("pictures") + " --scales 0.5,1", "curve.json", 2);
  writing("explain " + kernels + " " + picture, "branches.png", 2);
}

// What the demo writes besides its models, whose training is tested above: data, pictures and pages.
TEST_F(Faults, ShowingATrainedDemo) {
  const std::string out = file("work/demo"), before = file("demo-before"),
                    arguments = "demo --steps 2 --threads 1 --out ";
  ASSERT_EQ(run(arguments + before).status, 0);
  const std::vector<std::string> names = {"index.html", "attention.html", "lengths.svg", "curves.svg"};
  for (const bool full : {false, true}) {
    if (full && !every_call()) continue;
    fail_everywhere(
        arguments + out, before, out, full,
        [&](const Outcome&) {
          for (const std::string& name : names) {
            const std::string now = content(out + "/" + name);
            EXPECT_TRUE(now.ends_with("</html>\n") || now.ends_with("</svg>\n"))
                << name << ": " << now.size();
          }
        },
        45);
  }
}

}  // namespace
}  // namespace fovea
