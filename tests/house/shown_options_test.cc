// Every option that the documentation shows exists: each `fovea VERB ... --option` in README.md,
// CONTRIBUTING.md and docs/*.md is looked up in the help of that verb.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "cli/command.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

struct ShownCommand {
  std::string where;              // "docs/explain.md:12"
  std::string verb;               // "train classify"
  std::set<std::string> options;  // "--model"
};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '+';
}

// The commands of one logical line. Code is what stands between backquotes, or the whole line in a block.
std::vector<ShownCommand> commands_of(const std::string& code, const std::string& where) {
  static const std::set<std::string> kNested = {"train", "bench"};  // verbs that have verbs
  std::vector<ShownCommand> found;
  std::istringstream in(code);
  std::string word, before;
  ShownCommand* now = nullptr;
  bool verb_next = false, task_next = false;
  while (in >> word) {
    if (word[0] == '#') break;
    if (word == "|" || word == ";" || word == "&&") {
      now = nullptr;
      verb_next = task_next = false;
    } else if (word == "fovea") {
      verb_next = true;
    } else if (verb_next) {
      verb_next = false;
      if (std::all_of(word.begin(), word.end(), is_name) && word[0] != '-') {
        found.push_back({where, word, {}});
        now = &found.back();
        task_next = kNested.contains(word);
      }
    } else if (now != nullptr && task_next) {
      if (word[0] != '-') now->verb += " " + word;
      task_next = false;
    }
    for (size_t at = word.find("--"); now != nullptr && at != std::string::npos;) {
      size_t end = at + 2;
      while (end < word.size() && is_name(word[end])) ++end;
      if ((at == 0 || word[at - 1] == '[') && end > at + 2) now->options.insert(word.substr(at, end - at));
      at = word.find("--", end);
    }
  }
  return found;
}

std::vector<ShownCommand> commands_of_file(const fs::path& path) {
  std::vector<ShownCommand> all;
  std::ifstream in(path);
  bool block = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) {
      block = !block;
      continue;
    }
    const std::string where = path.filename().string() + ":" + std::to_string(number);
    std::vector<std::string> codes;
    if (block || line.starts_with("    ")) {
      for (std::string next; line.ends_with("\\") && std::getline(in, next); ++number)
        line = line.substr(0, line.size() - 1) + next;
      codes.push_back(line);
    } else {
      for (size_t open = line.find('`'); open != std::string::npos;) {
        const size_t close = line.find('`', open + 1);
        if (close == std::string::npos) break;
        codes.push_back(line.substr(open + 1, close - open - 1));
        open = line.find('`', close + 1);
      }
    }
    for (const std::string& code : codes)
      for (ShownCommand& command : commands_of(code, where)) all.push_back(std::move(command));
  }
  return all;
}

std::vector<fs::path> pages() {
  const fs::path root = FOVEA_ROOT;
  std::vector<fs::path> found{root / "README.md", root / "CONTRIBUTING.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  return found;
}

// The help of training shows the options of the model that stands before it.
std::vector<std::string> models_of(const std::string& verb) {
  if (verb == "train translate") return {"", " --model bahdanau", " --model luong"};
  if (verb == "train classify") return {"", " --model han", " --model transformer"};
  if (verb == "train image") return {"", " --model vit"};
  return {""};
}

TEST(ShownOptions, ExistInTheHelpOfTheirVerb) {
  std::map<std::string, std::string> helps;
  size_t count = 0;
  for (const fs::path& page : pages())
    for (const ShownCommand& command : commands_of_file(page)) {
      if (!helps.contains(command.verb)) {
        for (const std::string& model : models_of(command.verb)) {
          const auto outcome = testing_cli::run(command.verb + model + " --help");
          EXPECT_EQ(outcome.status, 0) << command.where << ": fovea " << command.verb;
          helps[command.verb] += outcome.out;
        }
      }
      for (const std::string& option : command.options) {
        ++count;
        EXPECT_THAT(helps[command.verb],
                    testing::ContainsRegex(option.find('+') == std::string::npos ? option + "[^a-z0-9-]"
                                                                                 : "--chrf\\+\\+"))
            << command.where << ": fovea " << command.verb << " " << option;
      }
    }
  EXPECT_GT(count, 100u);
}

// The test of the test: a planted wrong option is found, wherever it stands.
TEST(ShownOptions, AreFoundInLinesAndBetweenBackquotes) {
  const auto one =
      commands_of("echo a | fovea train classify --model lstm --pooling=mean x --no # --hidden", "");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].verb, "train classify");
  EXPECT_THAT(one[0].options, testing::ElementsAre("--model", "--no", "--pooling"));
  const auto two = commands_of("fovea translate m < a --beam 1 | fovea score [--ref FILE] a--b", "");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_THAT(two[0].options, testing::ElementsAre("--beam"));
  EXPECT_THAT(two[1].options, testing::ElementsAre("--ref"));
}

}  // namespace
}  // namespace fovea
