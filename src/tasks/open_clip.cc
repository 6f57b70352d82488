#include "base/error_kinds.h"
#include "tasks/explain_clip.h"
#include "tasks/open_kinds.h"

namespace fovea::tasks {
namespace {

class OpenClipClassifier : public OpenFolder {
 public:
  OpenClipClassifier(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)), model_(errors_as<ModelError>([&] {
          return load_clip_classifier(this->contents().folder, compute_of(options));
        })) {}

  void check(const AnswerOptions& options) const override {
    require(!options.words, "--weights works for text models only; use `fovea explain` for clips");
  }

  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override {
    check(options);
    std::vector<Answer> answers(inputs.size());
    data::Clips clips{.form = model_.form, .pixels = {}, .labels = {}, .classes = model_.labels, .names = {}};
    for (size_t i = 0; i < inputs.size(); ++i) try {
        const std::vector<std::vector<uint8_t>> frames = frames_of(inputs[i]);
        for (const std::vector<uint8_t>& frame : frames)
          clips.pixels.insert(clips.pixels.end(), frame.begin(), frame.end());
        clips.starts.push_back(clips.starts.back() + static_cast<int64_t>(frames.size()));
        clips.labels.push_back(0);
      } catch (const Error& error) {
        answers[i].error = error.what();
      }
    std::vector<Prediction> found = classify_clips(model_, clips).clips;
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
    ClipExplanation shown = explain_clip(model_, frames_of(input));
    shown.names = input.frame_names;
    return {
        prediction_text(shown.prediction, shown.labels),
        form.empty() ? explain_clip_text(shown, columns) : explain_clip_file(shown, "explanation" + form)};
  }

  Evaluation evaluate(const TestFiles& files) const override {
    require(files.label_column.empty() && files.text_column.empty(),
            files.label_column.empty() ? "--text-column" : "--label-column", " works for text models only");
    const data::Clips clips = errors_as<FileError>([&] { return read_test_clips(model_, files.paths); });
    const ClipPredictions found = classify_clips(model_, clips);
    Evaluation evaluation = tasks::evaluate(found.clips, clips.labels, model_.labels, "clips");
    if (const auto share = weight_on_keys(clips, found.weights))
      evaluation.details = {{"weight_on_keys", *share}};
    return evaluation;
  }

 private:
  // A clip's frames, or one picture, in the model's form.
  std::vector<std::vector<uint8_t>> frames_of(const Input& input) const {
    const std::string where = input.name.empty() ? "the clip" : input.name;
    std::vector<std::vector<uint8_t>> frames;
    const auto add = [&](const std::string& file, const std::string& name) {
      frames.push_back(errors_as<FileError>(
          [&] { return data::decode_picture_as(std::as_bytes(std::span(file)), name, model_.form); }));
    };
    for (size_t t = 0; t < input.frames.size(); ++t) add(input.frames[t], message(where, ", frame ", t));
    if (frames.empty()) add(input.content, where);
    return frames;
  }

  LoadedClipClassifier model_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_clip_classifier(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenClipClassifier>(std::move(contents), options);
}

}  // namespace fovea::tasks
