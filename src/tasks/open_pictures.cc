#include "tasks/open_pictures.h"

#include "base/error_kinds.h"
#include "tasks/explain_image.h"
#include "tasks/image_classifier.h"
#include "tasks/open_kinds.h"

namespace fovea::tasks {
namespace {

class OpenImageClassifier : public OpenPictureClassifier {
 public:
  OpenImageClassifier(FolderContents contents, const OpenOptions& options)
      : OpenPictureClassifier(std::move(contents)), model_(errors_as<ModelError>([&] {
          return load_image_classifier(this->contents().folder, compute_of(options));
        })) {}

  Explanation explain(const Input& input, const ExplainOptions& options, const std::string& form,
                      size_t columns) const override {
    check_explain(contents(), options, form);
    for (const auto& [flag, value] : {std::pair{"--layer", options.layer}, std::pair{"--head", options.head}})
      require(!value || model_.network->patch_grid().h > 0, flag,
              " needs self-attention, as `fovea train image --model vit` makes it; ",
              contents().description(), " (", contents().model, ")");
    const ImageExplanation shown = explain_image(model_, pixels_of(input));
    return {prediction_text(shown.prediction, shown.labels),
            form.empty() ? explain_image_text(shown, columns, options)
                         : explain_image_file(shown, "explanation" + form, options)};
  }

 private:
  const std::vector<std::string>& labels() const override { return model_.labels; }
  data::PictureForm form() const override { return model_.form; }
  std::vector<Prediction> classify(const data::Pictures& pictures) const override {
    return classify_pictures(model_, pictures);
  }
  data::Pictures test_pictures(const TestFiles& files) const override {
    return data::read_pictures_as(files.paths, model_.form, model_.labels);
  }

  LoadedImageClassifier model_;
};

}  // namespace

void OpenPictureClassifier::check(const AnswerOptions& options) const {
  require(!options.words, "--weights works for text models only; use `fovea explain` for pictures");
}

std::vector<Answer> OpenPictureClassifier::answer_inputs(std::span<const Input> inputs,
                                                         const AnswerOptions& options) const {
  check(options);
  std::vector<Answer> answers(inputs.size());
  data::Pictures pictures{.form = form(), .pixels = {}, .labels = {}, .classes = labels()};
  for (size_t i = 0; i < inputs.size(); ++i) try {
      const std::vector<uint8_t> one = pixels_of(inputs[i]);
      pictures.pixels.insert(pictures.pixels.end(), one.begin(), one.end());
      pictures.labels.push_back(0);
    } catch (const Error& error) {
      answers[i].error = error.what();
    }
  std::vector<Prediction> found = classify(pictures);
  size_t next = 0;
  for (Answer& answer : answers)
    if (answer.error.empty()) answer.prediction = std::move(found[next++]);
  return answers;
}

std::string OpenPictureClassifier::to_line(const Answer& answer, const AnswerOptions& options) const {
  return prediction_line(answer.prediction, labels(), {.scores = options.scores});
}

Json OpenPictureClassifier::to_json(const Input& input, const Answer& answer) const {
  Json json = input.name.empty() ? Json::object() : Json{{"file", input.name}};
  json.update(answer.error.empty() ? prediction_json(answer.prediction, labels())
                                   : Json{{"error", answer.error}});
  return json;
}

Evaluation OpenPictureClassifier::evaluate(const TestFiles& files) const {
  require(files.label_column.empty() && files.text_column.empty() && files.pair_column.empty(),
          !files.label_column.empty()  ? "--label-column"
          : !files.text_column.empty() ? "--text-column"
                                       : "--pair-column",
          " works for text models only: the classes of pictures are the names of their folders");
  const data::Pictures pictures = errors_as<FileError>([&] { return test_pictures(files); });
  return tasks::evaluate(classify(pictures), pictures.labels, labels(), "pictures");
}

std::vector<uint8_t> OpenPictureClassifier::pixels_of(const Input& input) const {
  return errors_as<FileError>([&] {
    require(input.frames.empty(), input.name, " is a folder; wanted a picture file");
    return data::decode_picture_as(std::as_bytes(std::span(input.content)),
                                   input.name.empty() ? "the picture" : input.name, form());
  });
}

std::unique_ptr<OpenFolder> open_image_classifier(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenImageClassifier>(std::move(contents), options);
}

}  // namespace fovea::tasks
