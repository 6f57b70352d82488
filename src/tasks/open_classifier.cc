#include <algorithm>

#include "base/error_kinds.h"
#include "data/text.h"
#include "tasks/bert_classifier.h"
#include "tasks/classifier.h"
#include "tasks/explain_classifier.h"
#include "tasks/open_kinds.h"
#include "tasks/text_input.h"

namespace fovea::tasks {
namespace {

// Tokens processed together.
constexpr int64_t kBatchTokens = 8192;

class OpenTextClassifier : public OpenFolder {
 public:
  OpenTextClassifier(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)), model_(errors_as<ModelError>([&] {
          return load_classifier(this->contents().folder, compute_of(options));
        })) {
    if (!options.global.empty()) choose_global(model_, options.global);
    require(!options.pairs || model_.encoding.pairs || this->contents().pretrained,
            "--pairs: ", this->contents().description(), " that was trained on single texts");
    model_.encoding.pairs |= options.pairs;
  }

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
    const auto not_a_pair = [&](const Input& input) -> std::string {
      const auto tabs = std::count(input.content.begin(), input.content.end(), '\t');
      if (!model_.encoding.pairs || tabs == 1) return "";
      return message(input.name.empty() ? "the text" : input.name, ": got ",
                     tabs == 0 ? "no tab" : "several tabs",
                     "; the model reads pairs of texts: wanted a text, a tab and a text");
    };
    return answer_usable(inputs, not_a_pair, [&](std::span<const std::string> texts) {
      std::vector<uint8_t> cut;
      std::vector<Prediction> found = predict(texts, cut);
      std::vector<Answer> answers(texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        answers[i].prediction = std::move(found[i]);
        answers[i].cut_to = cut[i] ? model_.encoding.max_tokens : 0;
        if (options.words) add_words(texts[i], answers[i]);
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
    if (!answer.unknown.empty()) json["unknown"] = answer.unknown;
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
                                                  .pair_column = files.pair_column,
                                                  .skip_hint = "; correct it, or leave it out"});
    });
    const auto targets = errors_as<FileError>(
        [&] { return data::targets_of(text, model_.form, model_.labels, files.paths[0]); });
    std::vector<uint8_t> cut;
    const WeighedPredictions found = classify_weighed(
        model_, encode_inputs(text.texts, *model_.tokenizer, model_.encoding, cut), kBatchTokens);
    Evaluation evaluation =
        tasks::evaluate(found.predictions, targets, model_.labels, model_.encoding.pairs ? "pairs" : "texts");
    // A mean has equal weights, which say nothing of attention.
    if (!model_.config.contains("pooling") || model_.config["pooling"] == "attention")
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

  void add_words(const std::string& text, Answer& answer) const {
    auto& words = answer.words.emplace();
    if (data::strip(text).empty()) return;
    for (const WeighedSentence& sentence : explain_classifier(model_, text).words.sentences)
      for (const WeighedWord& word : sentence.words) {
        if (word.unknown) answer.unknown.push_back(static_cast<int64_t>(words.size()));
        words.emplace_back(word.text, sentence.weight * word.weight);
      }
  }

  LoadedClassifier model_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_text_classifier(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenTextClassifier>(std::move(contents), options);
}

}  // namespace fovea::tasks
