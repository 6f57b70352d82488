#include "base/error_kinds.h"
#include "tasks/open_kinds.h"

namespace fovea::tasks {
namespace {

class OpenTranslator : public OpenFolder {
 public:
  OpenTranslator(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)),
        model_(load(this->contents().folder, options.compute)),
        translator_(*model_.network, model_.tokenizers, model_.compute) {}

  void check(const AnswerOptions& options) const override {
    require(options.alignment == "none" || options.alignment == "hard" || options.alignment == "soft",
            "--alignment: got ", in_quotes(options.alignment), ", wanted none, hard or soft");
    require(options.alignment == "none" || contents().can(Ability::explain), "--alignment ",
            options.alignment, " needs a model with attention; ", contents().folder.string(), " is a ",
            contents().model, ", which has none");
    const std::string nothing[] = {""};
    translator_.translate(nothing, options.translate);
  }

  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override {
    TranslateOptions translate = options.translate;
    translate.scores |= options.alignment == "soft";
    return answer_usable(inputs, [&](std::span<const std::string> texts) {
      auto found = translator_.translate(texts, translate);
      std::vector<Answer> answers(texts.size());
      for (size_t i = 0; i < texts.size(); ++i)
        for (Translation& translation : found[i]) {
          answers[i].cut_to = translation.cut_to;
          AnsweredTranslation one{std::move(translation)};
          if (options.alignment != "none") one.alignment = align(model_, texts[i], one.translation);
          answers[i].translations.push_back(std::move(one));
        }
      return answers;
    });
  }

  Json to_json(const Input&, const Answer& answer) const override {
    if (!answer.error.empty()) return {{"error", answer.error}};
    Json json = tasks::to_json(answer.translations.at(0));
    if (answer.translations.size() > 1) {
      json["n_best"] = Json::array();
      for (const AnsweredTranslation& one : answer.translations)
        json["n_best"].push_back(tasks::to_json(one));
    }
    return json;
  }

  Explanation explain(const Input& input, const ExplainOptions& options, const std::string& form,
                      size_t columns) const override {
    check_explain(contents(), options, form);
    const AttentionRecord record = explain_translation(model_, input.content, options.target, options);
    const ExplainOptions one = with_alignment(options);
    if (form == ".txt") return {record.target_text, explain_file(record, one, "explanation" + form)};
    if (!form.empty()) return {record.target_text, explain_file(record, options, "explanation" + form)};
    return {record.target_text, message(record.source_text, '\n', record.target_text, "\n\n",
                                        explain_text(record, one, columns))};
  }

 private:
  // The measured layer and head, where one map of the attention to the source is shown and no other is asked
  // for.
  ExplainOptions with_alignment(ExplainOptions options) const {
    if (!model_.alignment || options.layer || options.kind.value_or("cross") != "cross") return options;
    options.layer = std::to_string(model_.alignment->layer);
    if (!options.head && model_.alignment->head >= 0) options.head = std::to_string(model_.alignment->head);
    return options;
  }

  static LoadedTranslator load(const std::filesystem::path& folder, const std::string& compute) {
    if (!compute.empty()) compute_named(compute);  // an unknown name is not the folder's fault
    return errors_as<ModelError>([&] { return load_translation(folder, compute); });
  }

  LoadedTranslator model_;
  Translator translator_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_translator(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenTranslator>(std::move(contents), options);
}

Json to_json(const AnsweredTranslation& one) {
  Json json{{"text", one.translation.text}, {"score", one.translation.score}};
  if (!one.alignment) return json;
  json["source"] = one.alignment->source;
  json["target"] = one.alignment->target;
  if (!one.alignment->unknown.empty()) json["unknown"] = one.alignment->unknown;
  json["weights"] = Json::array();
  const WeightMatrix& weights = one.alignment->weights;
  for (int64_t i = 0; i < weights.rows; ++i) {
    Json row = Json::array();
    for (int64_t j = 0; j < weights.columns; ++j) row.push_back(value_to_json(weights.at(i, j)));
    json["weights"].push_back(std::move(row));
  }
  return json;
}

}  // namespace fovea::tasks
