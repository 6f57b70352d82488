// What opened classifiers of pictures have in common: from picture files to answers and scores.
#pragma once

#include <vector>

#include "data/labelled_pictures.h"
#include "tasks/open.h"

namespace fovea::tasks {

class OpenPictureClassifier : public OpenFolder {
 public:
  using OpenFolder::OpenFolder;

  void check(const AnswerOptions& options) const override;
  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override;
  std::string to_line(const Answer& answer, const AnswerOptions& options) const override;
  Json to_json(const Input& input, const Answer& answer) const override;
  Evaluation evaluate(const TestFiles& files) const override;

 protected:
  // A picture as the model takes it. Throws FileError naming the input when it cannot be used.
  std::vector<uint8_t> pixels_of(const Input& input) const;

 private:
  virtual const std::vector<std::string>& labels() const = 0;
  virtual data::PictureForm form() const = 0;
  // A prediction for each picture of this form.
  virtual std::vector<Prediction> classify(const data::Pictures& pictures) const = 0;
  // Labelled pictures of `files` in this form.
  virtual data::Pictures test_pictures(const TestFiles& files) const = 0;
};

}  // namespace fovea::tasks
