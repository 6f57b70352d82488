#include "base/error_kinds.h"
#include "data/text.h"
#include "tasks/open_kinds.h"
#include "tasks/reranker.h"

namespace fovea::tasks {
namespace {

class OpenReranker : public OpenFolder {
 public:
  OpenReranker(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)),
        model_(
            errors_as<ModelError>([&] { return Reranker(this->contents().folder, compute_of(options)); })) {}

  void check(const AnswerOptions& options) const override {
    require(!data::strip(options.query).empty(), "--query: wanted a text to which the lines are compared");
    require(data::is_utf8(options.query), "--query: the text is not UTF-8");
  }

  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override {
    check(options);
    return answer_usable(inputs, [&](std::span<const std::string> texts) {
      const RelevanceScores found = model_.score(options.query, texts);
      std::vector<Answer> answers(texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        answers[i].score = found.scores[i];
        answers[i].cut_to = found.cut[i] ? model_.max_tokens() : 0;
      }
      return answers;
    });
  }

  Json to_json(const Input& input, const Answer& answer) const override {
    if (!answer.error.empty()) return {{"error", answer.error}};
    return {{"score", value_to_json(answer.score)}, {"text", input.content}};
  }

 private:
  Reranker model_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_reranker(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenReranker>(std::move(contents), options);
}

}  // namespace fovea::tasks
