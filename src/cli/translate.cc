// fovea translate: lines in, lines out, in the same order.
#include <iomanip>
#include <iostream>

#include "cli/answer_lines.h"
#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "tasks/explain.h"
#include "tasks/translator.h"

namespace fovea::cli {
namespace {

constexpr size_t kLinesAtOnce = 512;

constexpr const char* kFooter =
    "One line out for one line in, as soon as it is there. --scores puts score and tab before it. --n-best N "
    "with N above 1\n"
    "gives N lines `line ||| translation ||| score`, lines counted from 0.\n\n"
    "--alignment hard adds ` ||| 0-0 1-2`: for each word of the translation the source word it comes from, "
    "source first,\n"
    "both counted from 0. --alignment soft makes each line a JSON object of text, score, source words, "
    "target "
    "words and\n"
    "weights, a row a target word; </s> is the end of a sentence. Words are what stands between spaces; "
    "Chinese characters\n"
    "and kana count one by one unless the vocabulary joins them.";

struct Line {
  std::string folder, compute;
  tasks::TranslateOptions options;
  std::string alignment = "none";
};

std::string soft_line(int64_t number, const Line& line, const tasks::Translation& translation,
                      const tasks::Alignment& alignment) {
  Json json = Json::object();
  if (line.options.n_best > 1) json["line"] = number;
  json["text"] = translation.text;
  json["score"] = translation.score;
  json["source"] = alignment.source;
  json["target"] = alignment.target;
  json["weights"] = Json::array();
  for (int64_t i = 0; i < alignment.weights.rows; ++i) {
    Json row = Json::array();
    for (int64_t j = 0; j < alignment.weights.columns; ++j)
      row.push_back(value_to_json(alignment.weights.at(i, j)));
    json["weights"].push_back(std::move(row));
  }
  return json.dump();
}

// The translations of `text`, whose first line is number `first`.
void print(const Line& line, const tasks::TranslationParts& parts, const std::vector<std::string>& text,
           int64_t first, const std::vector<std::vector<tasks::Translation>>& results) {
  std::cout << std::fixed << std::setprecision(4);
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t number = first + static_cast<int64_t>(i);
    for (const tasks::Translation& translation : results[i]) {
      if (line.alignment == "soft") {
        std::cout << soft_line(number, line, translation, align(parts, text[i], translation)) << '\n';
        continue;
      }
      if (line.options.n_best > 1)
        std::cout << number << " ||| " << translation.text << " ||| " << translation.score;
      else if (line.options.scores)
        std::cout << translation.score << '\t' << translation.text;
      else
        std::cout << translation.text;
      if (line.alignment == "hard")
        std::cout << " ||| " << pharaoh(aligned_pairs(align(parts, text[i], translation).weights));
      std::cout << '\n';
    }
  }
}

void run(const Line& line) {
  const tasks::TranslationParts parts = tasks::load_translation(line.folder, line.compute);
  const tasks::Translator translator(*parts.network, parts.tokenizers, parts.compute);
  answer_lines(kLinesAtOnce, data::kMaxLineBytes, [&](const std::vector<std::string>& lines, int64_t first) {
    print(line, parts, lines, first, translator.translate(lines, line.options));
  });
}

}  // namespace

void add_translate(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("translate", "translate standard input with a trained model, line by line");
  const auto line = std::make_shared<Line>();
  verb->add_option("folder", line->folder, "model folder")->required()->type_name("DIR");
  add_fields(*verb, line->options);
  verb->add_option("--compute", line->compute, "float32 or int8; without it, as the folder says");
  verb->add_flag("--scores", line->options.scores, "print each translation's score before it");
  verb->add_option("--alignment", line->alignment, "say which words belong together: hard, soft or none")
      ->check(CLI::IsMember({"hard", "soft", "none"}))
      ->capture_default_str();
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([line] {
    line->options.scores |= line->alignment == "soft";
    run(*line);
  });
}

}  // namespace fovea::cli
