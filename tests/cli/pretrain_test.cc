// fovea pretrain: from text to a folder that fill, embed and train classify --from use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/command.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing_cli::Outcome;
using testing_cli::run;

class Pretrain : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    std::ofstream text(file("text.txt")), labelled(file("train.tsv"));
    const char* films[] = {"the film is fine", "the film is dull", "a fine day it was", "we saw a dull play"};
    for (int d = 0; d < 30; ++d) {
      for (int s = 0; s < 4; ++s) text << films[(d + s) % 4] << " .\n";
      text << "\n";
    }
    labelled << "label\ttext\n";
    for (int i = 0; i < 20; ++i) labelled << (i % 2 ? "pos\tthe film is fine\n" : "neg\tthe film is dull\n");
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string file(const std::string& name) { return (*folder_ / name).string(); }
  static std::string command(const std::string& more = "") {
    return "pretrain --train " + file("text.txt") +
           " --preset tiny --width 16 --heads 2 --hidden 32 --layers 1 --vocabulary 120 --max-tokens 32 --max-positions 32 "
           "--batch 8 --log-every 5 --threads 1 " +
           more + " --out ";
  }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* Pretrain::folder_ = nullptr;

TEST_F(Pretrain, LeavesAFolderThatTheOtherVerbsUse) {
  const std::string out = file("bert");
  const Outcome trained = run(command("--steps 40 --learning-rate 0.005 --valid " + file("text.txt")) + out);
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("masked words "));
  EXPECT_THAT(trained.out, HasSubstr("next sentence "));
  const Json config = load_json(out + "/config.json");
  EXPECT_EQ(config["architectures"][0], "BertForPreTraining");
  EXPECT_EQ(config["model_type"], "bert");
  const Outcome filled = run("fill " + out + " 'the [MASK] is fine' --top 2");
  EXPECT_EQ(filled.status, 0) << filled.err;
  EXPECT_EQ(std::count(filled.out.begin(), filled.out.end(), '\n'), 2);
  EXPECT_EQ(run("embed " + out, "echo 'a fine film' |").status, 0);
  const Outcome classified = run("train classify --train " + file("train.tsv") + " --from " + out +
                                 " --steps 3 --threads 1 --out " + file("classifier"));
  EXPECT_EQ(classified.status, 0) << classified.err;
  const Outcome more = run("pretrain --train " + file("text.txt") + " --from " + out +
                           " --max-tokens 32 --batch 8 --steps 3 --threads 1 --out " + file("more"));
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_EQ(read_text(out + "/vocab.txt"), read_text(file("more") + "/vocab.txt"));
  EXPECT_NE(read_text(out + "/model.safetensors"), read_text(file("more") + "/model.safetensors"));
}

// Places that training has not seen have untrained embeddings: what is read at use must end where it ended in training.
TEST_F(Pretrain, AFolderReadsAsManyTokensAsItsTraining) {
  const auto longest = [](const std::string& folder) {
    return load_json(folder + "/tokenizer_config.json")["model_max_length"].get<int64_t>();
  };
  const std::string out = file("short"), text = "the film is fine and dull the film is fine and dull";
  const std::string places = " --max-positions 64 ";
  const Outcome trained =
      run("pretrain --train " + file("text.txt") +
          " --preset tiny --width 16 --heads 2 --hidden 32 --layers 1 --vocabulary 120 --max-tokens 10 "
          "--batch 8 --steps 3 --threads 1" +
          places + "--out " + out);
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(longest(out), 10);
  EXPECT_THAT(run("embed " + out, "echo '" + text + "' |").err, HasSubstr("10 tokens"));
  const std::string more =
      "pretrain --train " + file("text.txt") + " --batch 8 --steps 3 --threads 1 --from ";
  EXPECT_EQ(run(more + out + " --max-tokens 32 --out " + file("longer")).status, 0);
  EXPECT_EQ(longest(file("longer")), 32);
  EXPECT_EQ(run(more + file("longer") + " --max-tokens 10 --out " + file("again")).status, 0);
  EXPECT_EQ(longest(file("again")), 32) << "the places beyond were trained before";

  const Outcome tuned = run("train classify --train " + file("train.tsv") + " --from " + file("longer") +
                            " --max-length 8 --steps 3 --threads 1 --out " + file("tuned"));
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_EQ(longest(file("tuned")), 8);
  EXPECT_THAT(run("classify " + file("tuned"), "echo '" + text + "' |").err, HasSubstr("8 tokens"));
}

TEST_F(Pretrain, ARunIsTheSameOnAnyThreadsAndAfterItWasKilled) {
  const std::string whole = command("--steps 20 --save-every 4");
  ASSERT_EQ(run(whole + file("whole")).status, 0);
  std::string two = whole + file("threads");
  two.replace(two.find("--threads 1"), 11, "--threads 2");
  ASSERT_EQ(run(two).status, 0);
  EXPECT_EQ(read_text(file("whole") + "/model.safetensors"),
            read_text(file("threads") + "/model.safetensors"));
  const std::string out = file("killed");
  std::system(("sh -c '" FOVEA_PROGRAM " " + whole + out +
               " >/dev/null 2>&1 & pid=$!; for i in $(seq 500); do [ -e " + out +
               "/checkpoints/last ] && break; sleep 0.01; done; kill -9 $pid' 2>/dev/null")
                  .c_str());
  ASSERT_EQ(run(whole + out).status, 0);
  EXPECT_EQ(read_text(file("whole") + "/model.safetensors"), read_text(out + "/model.safetensors"));
}

TEST_F(Pretrain, TextThatTeachesLittleIsNoted) {
  std::string lines, chinese;
  for (int i = 0; i < 20; ++i) {
    lines += i % 2 ? "the film is fine\n\n" : "we saw a dull play\n\n";
    chinese += "我喜欢食物\n他也喜欢\n\n";
  }
  write_atomically(file("lines.txt"), lines);
  write_atomically(file("chinese.txt"), chinese);
  const Outcome trained = run(command("--steps 2 --valid " + file("lines.txt")) + file("noted"));
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.err,
              HasSubstr("note: " + file("lines.txt") +
                        ": no pair of sentences that follow one another, since documents have one "
                        "line each"));
  EXPECT_THAT(trained.err, testing::Not(HasSubstr("note: " + file("text.txt"))));
  const Outcome other = run("pretrain --train " + file("chinese.txt") + " --from " + file("noted") +
                            " --max-tokens 32 --batch 8 --steps 1 --threads 1 --out " + file("other"));
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_THAT(other.err,
              HasSubstr("chinese.txt: 180 of 180 tokens are not in the vocabulary and are read as [UNK]"));
}

TEST_F(Pretrain, WhatIsWrongIsRefusedInOneLine) {
  write_atomically(file("one.txt"), "a single document\nof two lines\n");
  write_atomically(file("bad.txt"), "fine\n\xff\n");
  write_atomically(file("empty.txt"), "\n\n");
  write_atomically(file("invisible.txt"), "\u200b\n\n\u200b\n");
  write_atomically(file("long.txt"), std::string(200, 'x') + "\n\n" + std::string(300, 'x') + "\n");
  const std::string to = " --out " + file("no");
  const std::pair<std::string, const char*> rows[] = {
      {"pretrain --train " + file("one.txt") + to, "one document only"},
      {"pretrain --train " + file("bad.txt") + to, "bad.txt, line 2: not UTF-8"},
      {"pretrain --train " + file("empty.txt") + to, "no text"},
      {"pretrain --train " + file("long.txt") + to,
       "long.txt: no word to learn a vocabulary from, wanted words of at most 100 characters"},
      {"pretrain --preset tiny --train " + file("text.txt") + " --valid " + file("invisible.txt") + to,
       "invisible.txt: no pair of sentences with words"},
      {"pretrain --train " + file("text.txt") + " --preset base" + to, "wanted tiny, mini or small"},
      {"pretrain --train " + file("text.txt") + " --masked 2" + to, "masked: got 2"},
      {"pretrain --train " + file("text.txt") + " --max-tokens 1000" + to, "more than --max-positions 512"},
      {"pretrain --train " + file("text.txt") + " --from " + file("nowhere") + to, "does not exist"},
      {"pretrain --train " + file("text.txt") + " --from x --vocabulary 500" + to,
       "brings its own vocabulary"},
      {"pretrain", "pretrain: --train and --out are needed; see fovea pretrain --help"},
  };
  for (const auto& [arguments, said] : rows) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, HasSubstr(said));
    EXPECT_FALSE(path_exists(file("no") + "/config.json"));
  }
}

}  // namespace
}  // namespace fovea
