// fovea classify: lines or pictures in, labels out, in the same order.
#include <cstdio>
#include <iostream>

#include "cli/answer_lines.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "data/text.h"
#include "infer/class_scores.h"
#include "tasks/explain_classifier.h"
#include "tasks/image_classifier.h"
#include "tasks/model_folder.h"

namespace fovea::cli {
namespace {

constexpr size_t kLinesAtOnce = 2048;
constexpr size_t kMostBytes = size_t{1} << 20;

constexpr const char* kFooter =
    "One line out for one line in, as soon as it is there. --scores puts the label's probability and a tab "
    "before it. --json\n"
    "makes each line an object of label and probabilities; --weights adds the words the model looked at and "
    "what they weigh.\n\n"
    "--test reads what `fovea train classify` and `fovea train image` read and prints accuracy, precision, "
    "recall and F1.\n"
    "  echo \"a film of rare beauty\" | fovea classify model --scores";

struct Line {
  std::string folder, label_column, text_column, compute = "float32";
  std::vector<std::string> pictures, test;
  bool scores = false, json = false, weights = false;
};

std::string fixed(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

Json answer_json(const std::vector<std::string>& labels, const tasks::Prediction& found) {
  Json json{{"label", labels[static_cast<size_t>(found.label)]}, {"probabilities", Json::object()}};
  for (size_t i = 0; i < labels.size(); ++i)
    json["probabilities"][labels[i]] = value_to_json(found.probabilities[i]);
  return json;
}

Json weights_json(const tasks::ClassifierParts& parts, const std::string& text) {
  Json words = Json::array();
  if (data::strip(text).empty()) return words;
  for (const WeighedSentence& sentence : tasks::explain_classifier(parts, text).words.sentences)
    for (const WeighedWord& word : sentence.words)
      words.push_back({word.text, value_to_json(sentence.weight * word.weight)});
  return words;
}

void print_scores(const Line& line, const std::vector<std::string>& labels,
                  const std::vector<tasks::Prediction>& found, const std::vector<int32_t>& wanted,
                  const char* what) {
  std::vector<int32_t> told;
  for (const tasks::Prediction& one : found) told.push_back(one.label);
  const infer::ClassScores scores = infer::score_classes(told, wanted, static_cast<int64_t>(labels.size()));
  if (line.json) {
    Json json{{what, told.size()},
              {"accuracy", scores.accuracy},
              {"macro_f1", scores.macro_f1},
              {"classes", Json::object()},
              {"confusion", scores.confusion}};
    for (size_t i = 0; i < labels.size(); ++i) {
      const infer::ClassScore& one = scores.classes[i];
      json["classes"][labels[i]] = {
          {"count", one.count}, {"precision", one.precision}, {"recall", one.recall}, {"f1", one.f1}};
    }
    std::cout << json.dump() << '\n';
    return;
  }
  std::cout << "accuracy " << fixed(100 * scores.accuracy, 2) << " %, macro F1 "
            << fixed(100 * scores.macro_f1, 2) << " %, " << told.size() << " " << what << "\n";
  for (size_t i = 0; i < labels.size(); ++i) {
    const infer::ClassScore& one = scores.classes[i];
    std::cout << labels[i] << ": precision " << fixed(100 * one.precision, 1) << ", recall "
              << fixed(100 * one.recall, 1) << ", F1 " << fixed(100 * one.f1, 1) << ", " << one.count << " "
              << what << "\n";
  }
}

void run_text(const Line& line) {
  require(line.pictures.empty(), line.folder,
          " holds a classifier of texts, which are read from standard "
          "input; got ",
          line.pictures.size(), " more arguments");
  const tasks::ClassifierParts parts = tasks::load_classifier(line.folder, line.compute);
  if (!line.test.empty()) {
    require(line.test.size() == 1, "--test: got ", line.test.size(), " files of texts, wanted 1");
    const data::LabelledText text = data::read_labelled(
        line.test[0], {.label_column = line.label_column, .text_column = line.text_column});
    return print_scores(line, parts.labels, tasks::classify(parts, text.texts),
                        data::label_places(text.labels, parts.labels, line.test[0]), "texts");
  }
  answer_lines(kLinesAtOnce, kMostBytes, [&](const std::vector<std::string>& lines, int64_t) {
    const std::vector<tasks::Prediction> found = tasks::classify(parts, lines);
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto label = static_cast<size_t>(found[i].label);
      if (line.json || line.weights) {
        Json json = answer_json(parts.labels, found[i]);
        if (line.weights) json["words"] = weights_json(parts, lines[i]);
        std::cout << json.dump() << '\n';
        continue;
      }
      if (line.scores) std::cout << fixed(found[i].probabilities[label], 4) << '\t';
      std::cout << parts.labels[label] << '\n';
    }
  });
}

void run_pictures(const Line& line) {
  const tasks::ImageClassifierParts parts = tasks::load_image_classifier(line.folder, line.compute);
  if (!line.test.empty()) {
    const data::Pictures pictures = data::read_pictures_as(line.test, parts.form, parts.labels);
    return print_scores(line, parts.labels, tasks::classify_pictures(parts, pictures), pictures.labels,
                        "pictures");
  }
  require(!line.pictures.empty(), line.folder,
          " holds a classifier of pictures: name some, as in fovea classify ", line.folder, " picture.png");
  require(!line.weights, "--weights is of texts; `fovea explain` shows what a picture's weigh");
  const std::vector<tasks::Prediction> found = tasks::classify_picture_files(parts, line.pictures);
  for (size_t i = 0; i < found.size(); ++i) {
    const auto label = static_cast<size_t>(found[i].label);
    if (line.json) {
      std::cout << answer_json(parts.labels, found[i]).dump() << '\n';
      continue;
    }
    if (line.scores) std::cout << fixed(found[i].probabilities[label], 4) << '\t';
    std::cout << parts.labels[label] << '\n';
  }
}

void run(const Line& line) {
  tasks::task_of(line.folder) == "image" ? run_pictures(line) : run_text(line);
}

}  // namespace

void add_classify(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("classify", "label the lines of standard input, or pictures, with a trained model");
  const auto line = std::make_shared<Line>();
  verb->add_option("folder", line->folder, "model folder")->required()->type_name("DIR");
  verb->add_flag("--scores", line->scores, "print each label's probability before it");
  verb->add_flag("--json", line->json, "print JSON with all probabilities");
  verb->add_flag("--weights", line->weights, "print JSON with the words and what they weigh");
  verb->add_option("pictures", line->pictures, "of a model for pictures: .png and .jpg files")
      ->type_name("FILE");
  verb->add_option("--test", line->test, "labelled texts or pictures to be scored on")
      ->expected(1, 2)
      ->type_name("PATH");
  verb->add_option("--label-column", line->label_column, "of --test: name or number (from 1)");
  verb->add_option("--text-column", line->text_column, "of --test: name or number (from 1)");
  verb->add_option("--compute", line->compute, "arithmetic of the matrix products: float32 or int8")
      ->capture_default_str();
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([line] { run(*line); });
}

}  // namespace fovea::cli
