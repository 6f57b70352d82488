#include <algorithm>

#include "base/error_kinds.h"
#include "data/text.h"
#include "tasks/classifier.h"
#include "tasks/explain_classifier.h"
#include "tasks/explain_image.h"
#include "tasks/image_classifier.h"
#include "tasks/open_kinds.h"
#include "tasks/text_input.h"

namespace fovea::tasks {
namespace {

// Tokens, and pictures, looked at together.
constexpr int64_t kBatchTokens = 8192;

class OpenTextClassifier : public OpenFolder {
 public:
  OpenTextClassifier(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)), model_(errors_as<ModelError>([&] {
          return load_classifier(this->contents().folder, compute_of(options));
        })) {}

  void check(const AnswerOptions& options) const override {
    if (options.words) contents().require_can(Ability::explain);
    require(!options.scores || model_.form != data::LabelForm::number, "--scores needs a model of labels; ",
            contents().description(), " that predicts numbers");
  }
  std::string to_line(const Answer& answer, const AnswerOptions& options) const override {
    return prediction_line(answer.prediction, model_.labels,
                           {.separator = model_.label_separator, .scores = options.scores});
  }

  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override {
    const auto not_a_pair = [&](const std::string& text) -> std::string {
      if (!model_.encoding.pairs || std::count(text.begin(), text.end(), '\t') == 1) return "";
      return "the model reads pairs of texts: wanted a text, a tab and a text";
    };
    return answer_usable(inputs, not_a_pair, [&](std::span<const std::string> texts) {
      std::vector<uint8_t> cut;
      std::vector<Prediction> found = predict(texts, cut);
      std::vector<Answer> answers(texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        answers[i].prediction = std::move(found[i]);
        answers[i].cut_to = cut[i] ? model_.encoding.max_tokens : 0;
        if (options.words) answers[i].words = weighed_words(texts[i]);
      }
      return answers;
    });
  }

  Json to_json(const Input&, const Answer& answer) const override {
    if (!answer.error.empty()) return {{"error", answer.error}};
    Json json = prediction_json(answer.prediction, model_.labels);
    if (!answer.words) return json;
    json["words"] = Json::array();
    for (const auto& [word, weight] : *answer.words) json["words"].push_back({word, value_to_json(weight)});
    return json;
  }

  Explanation explain(const Input& input, const ExplainOptions& options, const std::string& form,
                      size_t columns) const override {
    check_explain(contents(), options, form);
    const ClassifierExplanation shown = explain_classifier(model_, input.content);
    return {shown.words.title,
            form.empty() ? explain_classifier_text(shown, options, columns)
                         : explain_classifier_file(shown, options, "explanation" + form),
            shown.cut_to};
  }

  Evaluation evaluate(const TestFiles& files) const override {
    require(files.paths.size() == 1, "--test: got ", files.paths.size(),
            " files, wanted 1 file of labelled texts");
    require(files.pair_column.empty() || model_.encoding.pairs, "--pair-column needs a model of pairs; ",
            contents().description(), " of single texts");
    const data::LabelledText text = errors_as<FileError>([&] {
      return data::read_labelled(files.paths[0], {.label_column = files.label_column,
                                                  .text_column = files.text_column,
                                                  .form = model_.form,
                                                  .separator = model_.label_separator,
                                                  .pairs = model_.encoding.pairs,
                                                  .pair_column = files.pair_column});
    });
    const auto targets = errors_as<FileError>(
        [&] { return data::targets_of(text, model_.form, model_.labels, files.paths[0]); });
    std::vector<uint8_t> cut;
    const WeighedPredictions found = classify_weighed(
        model_, encode_inputs(text.texts, *model_.tokenizer, model_.encoding, cut), kBatchTokens);
    Evaluation evaluation =
        tasks::evaluate(found.predictions, targets, model_.labels, model_.encoding.pairs ? "pairs" : "texts");
    evaluation.words_for_90 = found.words_for_90;
    evaluation.cut = std::count(cut.begin(), cut.end(), 1);
    evaluation.cut_to = model_.encoding.max_tokens;
    return evaluation;
  }

 private:
  std::vector<Prediction> predict(std::span<const std::string> texts, std::vector<uint8_t>& cut) const {
    return classify_ids(*model_.network, encode_inputs(texts, *model_.tokenizer, model_.encoding, cut),
                        kBatchTokens);
  }

  std::vector<std::pair<std::string, float>> weighed_words(const std::string& text) const {
    std::vector<std::pair<std::string, float>> words;
    if (data::strip(text).empty()) return words;
    for (const WeighedSentence& sentence : explain_classifier(model_, text).words.sentences)
      for (const WeighedWord& word : sentence.words)
        words.emplace_back(word.text, sentence.weight * word.weight);
    return words;
  }

  ClassifierParts model_;
};

class OpenImageClassifier : public OpenFolder {
 public:
  OpenImageClassifier(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)), model_(errors_as<ModelError>([&] {
          return load_image_classifier(this->contents().folder, compute_of(options));
        })) {}

  void check(const AnswerOptions& options) const override {
    require(!options.words, "--weights works for text models only; use `fovea explain` for pictures");
  }

  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override {
    check(options);
    std::vector<Answer> answers(inputs.size());
    data::Pictures pictures{.form = model_.form, .pixels = {}, .labels = {}, .classes = model_.labels};
    for (size_t i = 0; i < inputs.size(); ++i) try {
        const std::vector<uint8_t> one = pixels_of(inputs[i]);
        pictures.pixels.insert(pictures.pixels.end(), one.begin(), one.end());
        pictures.labels.push_back(0);
      } catch (const Error& error) {
        answers[i].error = error.what();
      }
    std::vector<Prediction> found = classify_pictures(model_, pictures);
    size_t next = 0;
    for (Answer& answer : answers)
      if (answer.error.empty()) answer.prediction = std::move(found[next++]);
    return answers;
  }

  std::string to_line(const Answer& answer, const AnswerOptions& options) const override {
    return prediction_line(answer.prediction, model_.labels, {.scores = options.scores});
  }
  Json to_json(const Input& input, const Answer& answer) const override {
    Json json = input.name.empty() ? Json::object() : Json{{"file", input.name}};
    json.update(answer.error.empty() ? prediction_json(answer.prediction, model_.labels)
                                     : Json{{"error", answer.error}});
    return json;
  }

  Explanation explain(const Input& input, const ExplainOptions& options, const std::string& form,
                      size_t columns) const override {
    check_explain(contents(), options, form);
    const ImageExplanation shown =
        explain_image(model_, errors_as<FileError>([&] { return pixels_of(input); }));
    return {told_text(shown.prediction, shown.labels), form.empty()
                                                           ? explain_image_text(shown, columns)
                                                           : explain_image_file(shown, "explanation" + form)};
  }

  Evaluation evaluate(const TestFiles& files) const override {
    require(files.label_column.empty() && files.text_column.empty() && files.pair_column.empty(),
            !files.label_column.empty()  ? "--label-column"
            : !files.text_column.empty() ? "--text-column"
                                         : "--pair-column",
            " works for text models only: the classes of pictures are the names of their folders");
    const data::Pictures pictures =
        errors_as<FileError>([&] { return data::read_pictures_as(files.paths, model_.form, model_.labels); });
    return tasks::evaluate(classify_pictures(model_, pictures), pictures.labels, model_.labels, "pictures");
  }

 private:
  std::vector<uint8_t> pixels_of(const Input& input) const {
    return data::decode_picture_as(std::as_bytes(std::span(input.content)),
                                   input.name.empty() ? "the picture" : input.name, model_.form);
  }

  ImageClassifierParts model_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_text_classifier(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenTextClassifier>(std::move(contents), options);
}

std::unique_ptr<OpenFolder> open_image_classifier(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenImageClassifier>(std::move(contents), options);
}

}  // namespace fovea::tasks
