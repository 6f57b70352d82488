#include "base/error_kinds.h"
#include "tasks/explain_glimpse.h"
#include "tasks/open_kinds.h"
#include "tasks/open_pictures.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kMostRollouts = 1000;

class OpenGlimpseClassifier : public OpenPictureClassifier {
 public:
  OpenGlimpseClassifier(FolderContents contents, const OpenOptions& options)
      : OpenPictureClassifier(std::move(contents)),
        rollouts_(options.rollouts),
        model_(errors_as<ModelError>(
            [&] { return load_glimpse_classifier(this->contents().folder, compute_of(options)); })) {
    require(rollouts_ >= 0 && rollouts_ <= kMostRollouts, "--rollouts: got ", rollouts_, ", wanted 0 to ",
            kMostRollouts);
    require(rollouts_ == 0 || model_.network->can_roll_out(),
            "--rollouts needs a model that draws its path (ram); ", this->contents().folder.string(),
            " weighs all places of a grid (", model_.model, ")");
  }

  Explanation explain(const Input& input, const ExplainOptions& options, const std::string& form,
                      size_t) const override {
    check_explain(contents(), options, form);
    const GlimpseExplanation shown = explain_glimpses(model_, pixels_of(input));
    return {prediction_text(shown.prediction(), shown.labels),
            form.empty() ? explain_glimpse_text(shown) : explain_glimpse_file(shown, "explanation" + form)};
  }

 private:
  const std::vector<std::string>& labels() const override { return model_.labels; }
  data::PictureForm form() const override { return model_.form(); }
  std::vector<Prediction> classify(const data::Pictures& pictures) const override {
    return classify_scenes(model_, pictures, rollouts_);
  }
  data::Pictures test_pictures(const TestFiles& files) const override {
    return data::make_scenes(data::read_pictures_as(files.paths, model_.source, model_.labels), model_.scene,
                             kTestScenes);
  }

  int64_t rollouts_;
  LoadedGlimpseClassifier model_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_glimpse_classifier(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenGlimpseClassifier>(std::move(contents), options);
}

}  // namespace fovea::tasks
