// Every verb that uses a model folder, on every kind of folder, with every flag: what is said is done, or
// refused with one line before anything is printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "data/pictures.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"
#include "tasks/untrained_classifiers.h"
#include "tasks/untrained_encoder.h"
#include "tasks/untrained_translator.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing_cli::Outcome;
using testing_cli::run;

class Kinds : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    tasks::save_translation(path("translator"), tasks::untrained_translator());
    tasks::save_translation(
        path("rnn"), tasks::untrained_translator("words", "rnn", Json{{"width", 8}, {"embedding", 8}}));
    tasks::save_classifier(path("lstm"), tasks::untrained_classifier());
    tasks::save_classifier(
        path("last"),
        tasks::untrained_classifier("lstm", Json{{"embedding", 6}, {"width", 8}, {"pooling", "last"}}));
    tasks::save_classifier(
        path("heads"), tasks::untrained_classifier(
                           "transformer", Json{{"width", 8}, {"heads", 2}, {"hidden", 16}, {"layers", 2}}));
    tasks::save_image_classifier(path("pictures"), tasks::untrained_image_classifier());
    tasks::save_image_classifier(path("vit"), tasks::untrained_vit());
    tasks::save_partition(path("ships"), tasks::untrained_partition());
    tasks::save_image_classifier(path("plain"), tasks::untrained_image_classifier("none"));
    tasks::write_untrained_encoder(path("encoder"));
    tasks::write_untrained_encoder(path("headless"), {});
    tasks::write_untrained_encoder(path("cross"), {.labels = 1});
    write_atomically(path("a.png"), data::png_bytes(20, 30, std::vector<uint8_t>(3 * 20 * 30, 200)));
    write_atomically(path("b.png"), data::png_bytes(20, 30, std::vector<uint8_t>(3 * 20 * 30, 40)));
    write_atomically(path("broken.png"), "no picture");
    write_atomically(path("note.txt"), "one two\n");
    write_atomically(path("test.tsv"), "label\ttext\nneg\tone two\npos\tthree\n");
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  // "@name" stands for the path of a file or folder made above.
  static Outcome ask(std::string arguments, const std::string& input = "printf 'one two\\nthree\\n' |") {
    for (size_t at; (at = arguments.find('@')) != std::string::npos;)
      arguments.replace(at, 1, folder_->path().string() + "/");
    return run(arguments, input);
  }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* Kinds::folder_ = nullptr;

struct Refused {
  const char* arguments;
  const char* said;
};

TEST_F(Kinds, WhatDoesNotApplyIsRefusedInOneLineBeforeAnythingIsPrinted) {
  const Refused table[] = {
      // Verbs on folders of another kind.
      {"translate @lstm", "is a text classifier (lstm); translate needs a translator"},
      {"translate @pictures", "is an image classifier (resnet); translate needs a translator"},
      {"translate @encoder", "is an encoder of the BERT family (bert); translate needs a translator"},
      {"classify @translator", "is a translator (transformer); classify needs a classifier"},
      {"classify @encoder", "train one with fovea train classify --from"},
      {"embed @translator", "embed needs a folder of the BERT family"},
      {"embed @lstm", "embed needs a folder of the BERT family"},
      {"embed @pictures", "embed needs a folder of the BERT family"},
      {"fill @translator 'one [MASK]'", "fill needs a folder of the BERT family"},
      {"fill @headless 'one [MASK]'", "without a head for masked tokens"},
      {"rerank @translator --query one", "rerank needs a cross-encoder"},
      {"rerank @encoder --query one", "rerank needs a cross-encoder"},
      {"explain @encoder one", "explain needs a model of a task"},
      {"explain @rnn one", "without attention"},
      {"explain @last one", "without attention"},
      {"explain @plain @a.png", "without attention"},
      {"convert @lstm --to int8 --out @new", "--to int8 needs a translator"},
      {"convert @translator --to int8 --max-tokens 9 --out @new", "--max-tokens is for --to longformer"},
      {"convert @encoder --to longformer --max-tokens 9 --out @new", "max_tokens: got 9"},
      {"info @lstm --threads 2", "--threads does not apply to a model folder"},
      {"info @nowhere", "does not exist"},
      // translate.
      {"translate @rnn --alignment hard", "--alignment hard needs a model with attention"},
      {"translate @rnn --alignment soft", "--alignment soft needs a model with attention"},
      {"translate @translator --alignment soggy", "soggy"},
      {"translate @translator --beam 2 --n-best 3", "n-best: got 3"},
      {"translate @translator --beam 0", "beam: got 0"},
      {"translate @translator --compute int4", "int4"},
      {"translate @translator --length-penalty nan", "length-penalty: got nan"},
      {"translate @translator --max-tokens 0", "max_tokens: got 0"},
      {"translate @translator --max-length-factor 0", "max_length_factor: got 0"},
      {"translate @translator --on-error ignore", "ignore"},
      // classify.
      {"classify @lstm @a.png", "is a text classifier and reads texts from standard input"},
      {"classify @lstm --label-column 1",
       "--label-column, --text-column and --pair-column describe the file of --test"},
      {"classify @lstm --text-column 1",
       "--label-column, --text-column and --pair-column describe the file of --test"},
      {"classify @lstm --test @test.tsv --scores", "--scores does not apply with --test"},
      {"classify @lstm --test @test.tsv --weights", "--weights does not apply with --test"},
      {"classify @lstm --test @test.tsv --on-error skip", "--on-error does not apply with --test"},
      {"classify @lstm @a.png --test @test.tsv", "a list of pictures does not apply with --test"},
      {"classify @lstm --test @test.tsv @test.tsv", "got 2 files, wanted 1"},
      {"classify @last --weights", "without attention"},
      {"classify @pictures", "is an image classifier: name pictures"},
      {"classify @pictures @a.png --weights", "--weights works for text models only"},
      {"classify @pictures --test @pictures --label-column 1", "--label-column works for text models only"},
      {"classify @pictures --test @pictures --text-column 1", "--text-column works for text models only"},
      // explain.
      {"explain @translator one --kind bogus", "--kind: got 'bogus', wanted cross, encoder, decoder or all"},
      {"explain @translator one --layer 7", "has 0 to 1, and rollout"},
      {"explain @translator one --head 4", "has 0 to 1"},
      {"explain @translator one --layer rollout --head 1", "--head does not apply to --layer rollout"},
      {"explain @translator one --threshold 0.1", "--threshold applies to .txt files only"},
      {"explain @translator one --threshold 2 --out @x.txt", "--threshold: got 2"},
      {"explain @translator one --target two --beam 3", "--beam does not apply with --target"},
      {"explain @translator one --beam 0", "--beam: got 0"},
      {"explain @translator one --kind encoder --out @x.txt", "--kind encoder does not apply to a .txt file"},
      {"explain @translator one --kind cross --out @x.html", "--kind does not apply to a .html file"},
      {"explain @translator one --layer 0 --out @x.json", "--layer does not apply to a .json file"},
      {"explain @translator one --head 0 --out @x.html", "--head does not apply to a .html file"},
      {"explain @translator @a.png", "explains a text; got the picture"},
      {"explain @lstm one --kind bogus", "--kind: got 'bogus', wanted encoder"},
      {"explain @lstm one --kind cross", "--kind: got 'cross', wanted encoder"},
      {"explain @lstm one --kind encoder", "no heads to show"},
      {"explain @lstm one --layer 7 --head 4", "--layer needs --kind encoder"},
      {"explain @lstm one --head 4", "--head needs --kind encoder"},
      {"explain @lstm one --target two", "--target needs a translator"},
      {"explain @lstm one --beam 2", "--beam needs a translator"},
      {"explain @lstm one --threshold 0.5", "--threshold needs a translator"},
      {"explain @lstm picture.png",
       "is a text classifier and explains a text; got the picture 'picture.png'"},
      {"explain @lstm @note.txt", "give the text itself"},
      {"explain @heads one --kind encoder --layer 7", "has 0 to 1, and rollout"},
      {"explain @heads one --kind encoder --out @x.json", "--kind does not apply to a .json file"},
      {"explain @heads one --kind encoder --out @x.txt", "--kind does not apply to a .txt file"},
      {"explain @heads one --kind encoder --head 0 --out @x.html", "--head does not apply to a .html file"},
      {"explain @pictures @a.png --kind encoder", "--kind does not apply: "},
      {"explain @pictures @a.png --layer 1",
       "--layer needs self-attention, as `fovea train image --model vit`"},
      {"explain @pictures @a.png --head 1", "--head needs self-attention"},
      {"explain @vit @a.png --layer 2", "has 0 to 1, and rollout"},
      {"explain @vit @a.png --head 2", "has 0 to 1"},
      {"explain @vit @a.png --layer rollout --head 1", "--head does not apply to --layer rollout"},
      {"explain @vit @a.png --layer 1 --out @x.html", "--layer does not apply to a .html file"},
      {"explain @vit @a.png --head 1 --out @x.json", "--head does not apply to a .json file"},
      {"explain @vit @a.png --head 1 --out @x.txt", "--head does not apply to a .txt file"},
      {"explain @vit @a.png --units words", "--units does not apply: "},
      {"kernels @pictures --test @pictures", "has no selective kernels to compare; train one with --gate sk"},
      {"kernels @pictures --test @pictures --scales 1", "wanted at least two to compare"},
      {"kernels @pictures --test @pictures --scales 1,x", "wanted numbers from 0.1 to 10"},
      {"kernels @pictures --test @pictures --out @x.txt", "wanted .png, .svg, .pdf or .json"},
      {"kernels @pictures --test @pictures --pictures -1", "pictures: got -1"},
      {"kernels @lstm --test @pictures",
       "is a text classifier (lstm); kernels needs an image classifier, as `fovea train image --gate sk` makes"},
      {"partition @pictures --test scenes",
       "is an image classifier (resnet); partition needs a ship detector, as `fovea train partition`"},
      {"partition @pictures @a.png",
       "is an image classifier (resnet); partition needs a ship detector, as `fovea train partition`"},
      {"classify @ships @a.png", "is a ship detector (partition); classify needs a classifier"},
      {"partition @ships", "name pictures, as in fovea partition"},
      {"partition @ships @broken.png", "broken.png"},
      {"partition @ships @missing.png", "missing.png"},
      {"partition @ships @pictures", "is a folder; wanted a picture file"},
      {"explain @ships @pictures", "is a folder; wanted a picture file"},
      {"explain @pictures @ships", "is a folder; wanted a picture file"},
      {"classify @vit @ships", "is a folder; wanted a picture file"},
      {"partition @ships @a.png --scenes 3", "--scenes applies to --test only"},
      {"partition @ships @a.png --json", "--json applies to --test only"},
      {"partition @ships @a.png --test scenes", "--test prints scores only"},
      {"partition @ships --test scenes --out @x.json", "--test prints scores only"},
      {"partition @ships --test scenes --scenes 0", "scenes: got 0"},
      {"partition @ships --test @nowhere", "no such folder"},
      {"partition @ships --test @ships --scenes 3", "--scenes applies to --test scenes only"},
      {"partition @ships --test @ships", "contains no .xml files"},
      {"train partition --train @ships --scenes 3 --out @x", "scenes applies to --train scenes only"},
      {"train partition --train scenes --valid-scenes 3 --out @x",
       "valid_scenes applies to --valid scenes only"},
      // Trainings: what another option makes meaningless.
      {"train image --train @pictures --reduction 4 --out @x",
       "--reduction does not apply with --gate none; it needs se, cbam, sk"},
      {"train classify --train @test.tsv --pooling mean --score dot --out @x",
       "--score does not apply with --pooling mean; it needs attention"},
      {"train classify --train @test.tsv --pooling last --selection hard --out @x",
       "--selection does not apply with --pooling last"},
      {"train classify --train @test.tsv --from @encoder --pooling mean --out @x",
       "--pooling does not apply with --from: the model keeps its own sizes, attention and pooling"},
      {"train classify --train @test.tsv --from @encoder --selection hard --out @x",
       "--selection does not apply with --from"},
      {"train translate --train @test.tsv --from @translator --teacher-forcing 0.5 --out @x",
       "a Transformer is always fed the target's own words; leave out --teacher-forcing"},
      {"train classify --train @test.tsv --score dot --attention-width 4 --out @x",
       "--attention-width does not apply with --score dot"},
      {"train classify --train @test.tsv --model transformer --max-positions 9 --out @x",
       "--max-positions does not apply with --positions sinusoid"},
      {"train translate --train @test.tsv --model luong --window 4 --out @x",
       "--window does not apply with --locality global"},
      {"train translate --train @test.tsv --tokenize zh --out @x", "--tokenize describes how validation"},
      {"train translate --train @test.tsv --lowercase --out @x", "--lowercase describes how validation"},
      {"train translate --train @test.tsv --valid-sentences 9 --out @x",
       "--valid-sentences describes how validation"},
      {"train clip --train @test.tsv --pooling max --hidden 9 --out @x",
       "--hidden does not apply with --pooling max"},
      {"train partition --train scenes --branches single --gate labels --out @x",
       "gate applies to gated branches only"},
      {"train partition --train scenes --gate labels --gate-steps 9 --out @x",
       "gate_steps applies to gated branches with --gate schedule only"},
      {"train caption --images @pictures --captions @note.txt --encoder @x --soft-share 0.2 --out @x",
       "--soft-share does not apply with --attention soft; it needs hard"},
      {"explain @ships @a.png --layer 1", "--layer does not apply: "},
      {"scene -1 --out @x.png", "got number -1"},
      {"scene 1 --size 63 --out @x.png", "size: got 63"},
      {"scene 1 --out @x.txt", "wanted .png, .svg or .pdf"},
      {"explain @pictures @a.png --target two", "--target does not apply: "},
      {"explain @pictures @a.png --beam 2", "--beam does not apply: "},
      {"explain @pictures @missing.png", "missing.png"},
      {"explain @pictures @broken.png", "broken.png"},
      // embed, fill, score.
      {"embed @encoder --pooling most", "most"},
      {"embed @encoder --normalize maybe", "maybe"},
      {"embed @encoder --max-tokens 100", "max_tokens: got 100"},
      {"embed @encoder --format xml", "xml"},
      {"embed @encoder --tokens --format npy", "--format npy has no place for characters"},
      {"embed @encoder --tokens --chunks 2", "wanted one of the two"},
      {"embed @encoder --global first", "global tokens are for Longformer and BigBird"},
      {"fill @encoder x --global first", "global tokens are for Longformer and BigBird"},
      {"classify @lstm --global first", "global tokens can be chosen for Longformer and BigBird"},
      {"classify @lstm --pairs", "that was trained on single texts"},
      {"classify @pictures @a.png --pairs", "--pairs is for classifiers of texts"},
      {"explain @translator one --pairs", "--pairs is for classifiers of texts"},
      {"fill @encoder 'one [MASK]' --top 0", "--top: got 0"},
      {"rerank @cross", "--query is required"},
      {"rerank @cross --query ' '", "--query: wanted a text"},
      {"rerank @cross --query one --top -1", "--top: got -1"},
      {"rerank @cross --query one --compute int4", "int4"},
      {"rerank @cross --query one --on-error empty", "--on-error empty does not apply"},
      {"fill @encoder 'one'", "no [MASK] in the text"},
      {"score --ref @note.txt --hyp @note.txt --json --width 3", "--width does not apply with --json"},
  };
  for (const Refused& row : table) {
    SCOPED_TRACE(row.arguments);
    const Outcome outcome = ask(row.arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(row.said));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST_F(Kinds, TeacherForcingGoesByTheModelInTheFolder) {
  const Outcome trained = ask(
      "train translate --train @test.tsv --from @rnn --teacher-forcing 0.5 --steps 1 --threads 1 --out @tuned");
  EXPECT_EQ(trained.status, 0) << trained.err;
}

TEST_F(Kinds, ATestSaysNothingOfAttentionThatIsNotThereAndOfOptionsThatItLacks) {
  EXPECT_THAT(ask("classify @lstm --test @test.tsv").out, HasSubstr("90 % of the attention weight"));
  tasks::save_classifier(
      path("mean"),
      tasks::untrained_classifier("lstm", Json{{"embedding", 6}, {"width", 8}, {"pooling", "mean"}}));
  const Outcome mean = ask("classify @mean --test @test.tsv");
  EXPECT_EQ(mean.status, 0) << mean.err;
  EXPECT_THAT(mean.out, testing::Not(HasSubstr("attention")));
  write_atomically(path("gap.tsv"), "label\ttext\nneg\tone\npos\t\n");
  const Outcome gap = ask("classify @lstm --test @gap.tsv");
  EXPECT_EQ(gap.status, 2);
  EXPECT_THAT(gap.err, HasSubstr("gap.tsv, line 3: "));
  EXPECT_THAT(gap.err, testing::Not(HasSubstr("--skip-bad")));
}

TEST_F(Kinds, WhatAppliesIsDone) {
  for (const char* arguments : {"translate @translator --scores --max-tokens 3",
                                "translate @rnn --beam 2 --n-best 2",
                                "classify @lstm --scores",
                                "classify @lstm --weights",
                                "classify @last --json",
                                "classify @lstm --test @test.tsv --label-column label --text-column 2 --json",
                                "classify @pictures @a.png @b.png --scores",
                                "classify @plain @a.png --json",
                                "explain @translator one --kind all --layer 1 --head 0 --out @x.png",
                                "explain @translator one --layer rollout",
                                "explain @translator one --target two --threshold 0.1 --out @x.txt",
                                "explain @lstm 'one two'",
                                "explain @heads 'one two' --kind encoder",
                                "explain @heads 'one two' --kind encoder --layer 1 --head 0 --out @x.png",
                                "explain @heads 'one two' --kind encoder --out @x.html",
                                "explain @pictures @a.png",
                                "explain @pictures @a.png --out @x.json",
                                "explain @vit @a.png",
                                "explain @vit @a.png --layer 1 --head 0 --out @x.png",
                                "explain @vit @a.png --layer rollout --out @x.svg",
                                "explain @vit @a.png --out @x.html",
                                "classify @vit @a.png --json",
                                "partition @ships @a.png @b.png",
                                "partition @ships --test scenes --scenes 2",
                                "partition @ships --test scenes --scenes 2 --json",
                                "explain @ships @a.png",
                                "explain @ships @a.png --out @x.png",
                                "scene 3 --size 64 --labels --out @x.svg",
                                "embed @encoder --pooling cls --normalize yes",
                                "embed @headless --format jsonl",
                                "fill @encoder 'one [MASK]' --top 2 --json"}) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = ask(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out, "");
  }
}

TEST_F(Kinds, InfoSaysWhatAFolderHoldsAndHowItIsUsed) {
  const Outcome text = ask("info @lstm");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("text classifier (lstm), "));
  EXPECT_THAT(text.out, HasSubstr("2 labels: neg, pos\n  fovea classify "));
  const auto abilities = [&](const std::string& folder) {
    return parse_json(ask("info @" + folder + " --json").out, "info")["abilities"];
  };
  EXPECT_EQ(abilities("translator"), Json::parse(R"(["translate", "explain"])"));
  EXPECT_EQ(abilities("rnn"), Json::parse(R"(["translate"])"));
  EXPECT_EQ(abilities("lstm"), Json::parse(R"(["classify", "explain"])"));
  EXPECT_EQ(abilities("plain"), Json::parse(R"(["classify"])"));
  EXPECT_EQ(abilities("encoder"), Json::parse(R"(["embed", "fill"])"));
  EXPECT_EQ(abilities("headless"), Json::parse(R"(["embed"])"));
}

TEST_F(Kinds, PicturesThatCannotBeReadAreNamedAndTheOthersAnswered) {
  const Outcome outcome = ask("classify @pictures @a.png @missing.png @broken.png @b.png");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.out,
              testing::MatchesRegex("[^\n]*/a\\.png\t(bright|dark)\n[^\n]*/b\\.png\t(bright|dark)\n"));
  EXPECT_THAT(outcome.err, HasSubstr("missing.png"));
  EXPECT_THAT(outcome.err, HasSubstr("broken.png"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2);

  const Outcome empty = ask("classify @pictures @a.png @missing.png --on-error empty");
  EXPECT_EQ(empty.status, 0);
  EXPECT_THAT(empty.out, testing::EndsWith("/missing.png\t\n"));
  const Outcome stopped = ask("classify @pictures @a.png @missing.png @b.png --on-error stop");
  EXPECT_EQ(stopped.status, 2);
  EXPECT_EQ(std::count(stopped.out.begin(), stopped.out.end(), '\n'), 1);

  const Json json = parse_json(ask("classify @pictures @a.png --json").out, "out");
  EXPECT_EQ(json["file"], path("a.png"));
  EXPECT_TRUE(json.contains("label"));
}

// Three good lines, and between them one that is not UTF-8.
constexpr const char* kBadLine = "printf 'one two\\n\\377\\nthree\\nfour\\n' |";

TEST_F(Kinds, ABadLineStopsGetsAnEmptyAnswerOrNoneAsAsked) {
  for (const std::string verb : {"translate @translator --beam 1", "classify @lstm", "embed @encoder"}) {
    SCOPED_TRACE(verb);
    const auto lines = [&](const std::string& flags, int status) {
      const Outcome outcome = ask(verb + flags, kBadLine);
      EXPECT_EQ(outcome.status, status) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("standard input, line 2: not UTF-8"));
      EXPECT_EQ(outcome.err.find("1 line was unusable") != std::string::npos, status == 0) << outcome.err;
      std::vector<std::string> found;
      std::istringstream stream(outcome.out);
      for (std::string line; std::getline(stream, line);) found.push_back(line);
      return found;
    };
    const auto skipped = lines(" --on-error skip", 0), empty = lines(" --on-error empty", 0);
    ASSERT_EQ(skipped.size(), 3u);
    ASSERT_EQ(empty.size(), 4u);
    EXPECT_EQ(empty[1], "");
    EXPECT_EQ(empty[2], skipped[1]);
    EXPECT_EQ(lines("", 2).size(), 1u) << "the line before it is answered";
  }
  // In n-best lists lines keep their numbers.
  const std::string listed =
      ask("translate @translator --beam 2 --n-best 2 --max-length-factor 0.1 --on-error skip", kBadLine).out;
  EXPECT_THAT(listed, testing::StartsWith("0 ||| "));
  EXPECT_THAT(listed, testing::Not(HasSubstr("\n1 ||| ")));
  EXPECT_THAT(listed, HasSubstr("\n3 ||| "));
}

TEST_F(Kinds, TooLongALineIsOneOfTheBadOnes) {
  write_atomically(path("long.txt"), "one\n" + std::string(70'000, 'x') + "\nthree\n");
  const Outcome outcome = ask("translate @translator --beam 1 --on-error skip < @long.txt", "");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2);
  EXPECT_THAT(outcome.err, HasSubstr("line 2: longer than 65536 bytes"));
}

TEST_F(Kinds, TextsThatWereCutAreCountedAndTold) {
  std::string words;
  for (int i = 0; i < 600; ++i) words += "one ";
  write_atomically(path("words.txt"), words + "\ntwo\n" + words + "\n");
  const std::string input = " < " + path("words.txt");
  EXPECT_EQ(ask("classify @lstm" + input, "").err, "fovea: 2 lines were cut to 16 tokens\n");
  EXPECT_EQ(ask("embed @encoder" + input, "").err, "fovea: 2 lines were cut to 40 tokens\n");
  EXPECT_EQ(ask("explain @lstm '" + words + "'", "").err, "fovea: 1 text was cut to 16 tokens\n");
  EXPECT_THAT(ask("explain @translator '" + words + words + "'", "").err,
              HasSubstr("the sentence has 1200 tokens; attention can be shown of at most 1024"));
  write_atomically(path("long.tsv"), "neg\t" + words + "\npos\ttwo\n");
  EXPECT_EQ(ask("classify @lstm --test @long.tsv", "").err, "fovea: 1 text was cut to 16 tokens\n");
}

TEST_F(Kinds, TheWorkOnOneLineOfATranslatorIsBounded) {
  // 4 000 words on a line: as much is read as of the line that ends after 512.
  std::string head, tail;
  for (int i = 0; i < 512; ++i) head += i % 3 ? "two " : "one ";
  for (int i = 0; i < 3'500; ++i) tail += "three ";
  write_atomically(path("head.txt"), head + "\n");
  write_atomically(path("whole.txt"), head + tail + "\n");
  const std::string verb = "translate @translator --beam 1 --alignment hard < ";
  const Outcome whole = ask(verb + path("whole.txt"), ""), short_one = ask(verb + path("head.txt"), "");
  EXPECT_EQ(whole.status, 0);
  EXPECT_EQ(whole.out, short_one.out);
  EXPECT_EQ(short_one.err, "");
  EXPECT_EQ(whole.err, "fovea: 1 line was cut to 512 tokens; --max-tokens reads more\n");
}

TEST_F(Kinds, AFullDiskIsNamedAsTheReason) {
  for (const std::string arguments :
       {"classify @lstm", "info @lstm", "score --ref @note.txt --hyp @note.txt"}) {
    const Outcome outcome = ask(arguments + " > /dev/full");
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_EQ(outcome.err, "fovea: cannot write to standard output: No space left on device\n") << arguments;
  }
}

// The same scores for a line alone and beside others, the best line first.
TEST_F(Kinds, RerankSortsLinesByTheirScores) {
  const std::string lines = "printf 'one two\\nthree four\\n\\nlike food\\none two\\n' |";
  const Outcome all = ask("rerank @cross --query 'paris is the'", lines);
  ASSERT_EQ(all.status, 0) << all.err;
  std::vector<double> scores;
  std::vector<std::string> texts;
  std::istringstream in(all.out);
  for (std::string line; std::getline(in, line);) {
    scores.push_back(std::stod(line));
    texts.push_back(line.substr(line.find('\t') + 1));
  }
  ASSERT_EQ(texts.size(), 5u) << all.out;
  EXPECT_TRUE(std::is_sorted(scores.rbegin(), scores.rend())) << all.out;
  for (const double score : scores) EXPECT_TRUE(score > 0 && score < 1) << "a sigmoid by default";
  for (size_t i = 0; i < texts.size(); ++i) {
    const Outcome alone =
        ask("rerank @cross --query 'paris is the' --threads 1", "printf '" + texts[i] + "\\n' |");
    EXPECT_EQ(std::stod(alone.out), scores[i]) << texts[i];
  }
  const Outcome top = ask("rerank @cross --query 'paris is the' --top 2 --json", lines);
  const std::string first = top.out.substr(0, top.out.find('\n'));
  EXPECT_EQ(Json::parse(first)["text"], texts[0]);
  EXPECT_EQ(std::count(top.out.begin(), top.out.end(), '\n'), 2);
}

TEST_F(Kinds, PublishedHeadsOfSeveralNumbersAreRefused) {
  tasks::write_untrained_encoder(path("numbers"), {.labels = 3});
  Json json = load_json(path("numbers") + "/config.json");
  json["problem_type"] = "regression";
  save_json(path("numbers") + "/config.json", json);
  const Outcome outcome = ask("classify @numbers");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("problem_type is regression with 3 labels, wanted one number"));
}

// DistilBERT calls its width otherwise.
TEST_F(Kinds, ANumpyFileHasTheWidthOfEveryFamily) {
  for (const std::string type : {"bert", "distilbert"}) {
    tasks::write_untrained_encoder(path("width-" + type), {}, type);
    const Outcome outcome = ask("embed @width-" + type + " --format npy");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("(2, 24)")) << type;
  }
}

// A published cross-encoder reads pairs by itself, and scores them as rerank does; other published classifiers where they are
// told to.
TEST_F(Kinds, CrossEncodersClassifyPairs) {
  const auto number = [&](const std::string& arguments) {
    const Outcome outcome = ask(arguments, "printf 'paris is the\\tlike food\\n' |");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? std::stod(outcome.out) : -1;
  };
  const Outcome ranked = ask("rerank @cross --query 'paris is the'", "printf 'like food\\n' |");
  const double score = std::stod(ranked.out), logit = number("classify @cross --pairs");
  EXPECT_NEAR(score, 1 / (1 + std::exp(-logit)), 2e-6)
      << "nobody named an activation: the number is the logit";
  EXPECT_NE(logit, number("classify @cross")) << "one text with a tab in it";
  const Json config = load_json(path("cross") + "/config.json");
  const auto named = [&](const Json& more) {
    Json json = config;
    json.update(more);
    save_json(path("cross") + "/config.json", json);
    return number("classify @cross");
  };
  const std::string sigmoid = "torch.nn.modules.activation.Sigmoid",
                    identity = "torch.nn.modules.linear.Identity";
  EXPECT_NEAR(named({{"sbert_ce_default_activation_function", sigmoid}}), score, 2e-6);
  EXPECT_EQ(named({{"sbert_ce_default_activation_function", identity}}), logit);
  EXPECT_NEAR(named({{"sentence_transformers", {{"activation_fn", sigmoid}}}}), score, 2e-6);
  EXPECT_EQ(named({{"sentence_transformers", {{"activation_fn", identity}}}}), logit);
  EXPECT_EQ(named({{"sbert_ce_default_activation_function", nullptr}}), logit);
  EXPECT_THAT(ask("classify @cross").err, HasSubstr("the model reads pairs of texts"));
  save_json(path("cross") + "/config.json", config);
  // The form of newer versions, in a file of its own.
  const std::string own = path("cross") + "/config_sentence_transformers.json";
  save_json(own, Json{{"model_type", "CrossEncoder"}, {"activation_fn", sigmoid}});
  EXPECT_NEAR(number("classify @cross"), score, 2e-6);
  save_json(own, Json{{"model_type", "CrossEncoder"}, {"activation_fn", "os.system"}});
  for (const char* verb : {"classify @cross", "rerank @cross --query one"}) {
    const Outcome refused = ask(verb);
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("the activation of scores is 'os.system', wanted"));
  }
  std::filesystem::remove(own);
}

}  // namespace
}  // namespace fovea
