#include "base/error_kinds.h"
#include "tasks/explain_caption.h"
#include "tasks/explain_checks.h"
#include "tasks/open_kinds.h"

namespace fovea::tasks {
namespace {

class OpenCaptioner : public OpenFolder {
 public:
  OpenCaptioner(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)), model_(errors_as<ModelError>([&] {
          return load_captioner(this->contents().folder, compute_of(options));
        })) {}

  void check(const AnswerOptions& options) const override { tasks::check(options.caption); }

  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override {
    check(options);
    std::vector<Answer> answers(inputs.size());
    std::vector<std::vector<uint8_t>> pictures;
    for (size_t i = 0; i < inputs.size(); ++i) try {
        pictures.push_back(pixels_of(inputs[i]));
      } catch (const Error& error) {
        answers[i].error = error.what();
      }
    std::vector<std::vector<Caption>> found = write_captions(
        model_, pictures.size(),
        [&](std::span<const size_t> members) {
          std::vector<std::vector<uint8_t>> some;
          for (const size_t i : members) some.push_back(pictures[i]);
          return picture_features(model_.encoder, some);
        },
        options.caption);
    size_t next = 0;
    for (Answer& answer : answers)
      if (answer.error.empty()) answer.captions = std::move(found[next++]);
    return answers;
  }

  Json to_json(const Input& input, const Answer& answer) const override {
    Json json = input.name.empty() ? Json::object() : Json{{"file", input.name}};
    if (!answer.error.empty()) {
      json["error"] = answer.error;
      return json;
    }
    json["caption"] = answer.captions.at(0).text;
    json["score"] = answer.captions[0].score;
    if (answer.captions.size() == 1) return json;
    json["n_best"] = Json::array();
    for (const Caption& caption : answer.captions)
      json["n_best"].push_back({{"caption", caption.text}, {"score", caption.score}});
    return json;
  }

  Explanation explain(const Input& input, const ExplainOptions& options, const std::string& form,
                      size_t) const override {
    check_explain(contents(), options, form);
    const CaptionExplanation shown =
        explain_caption(model_, errors_as<FileError>([&] { return pixels_of(input); }), options.target,
                        options.beam.value_or(CaptionOptions{}.beam));
    return {shown.caption.text, form.empty()
                                    ? explain_caption_text(shown)
                                    : explain_caption_file(shown, options.smooth, "explanation" + form)};
  }

 private:
  std::vector<uint8_t> pixels_of(const Input& input) const {
    require(input.frames.empty(), input.name, " is a folder; wanted a picture file");
    return data::decode_picture_as(std::as_bytes(std::span(input.content)),
                                   input.name.empty() ? "the picture" : input.name, model_.encoder.form());
  }

  LoadedCaptioner model_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_captioner(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenCaptioner>(std::move(contents), options);
}

}  // namespace fovea::tasks
