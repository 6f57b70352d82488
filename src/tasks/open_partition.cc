#include "base/error_kinds.h"
#include "data/bmp.h"
#include "tasks/explain_partition.h"
#include "tasks/open_kinds.h"

namespace fovea::tasks {
namespace {

class OpenPartition : public OpenFolder {
 public:
  OpenPartition(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)), model_(errors_as<ModelError>([&] {
          require(compute_of(options) == "float32", "--compute: got ", in_quotes(compute_of(options)), "; ",
                  this->contents().description(), ", which computes in float32 only");
          return load_partition(this->contents().folder);
        })) {}

  void check(const AnswerOptions& options) const override {
    require(!options.words, "--weights works for text models only; use `fovea explain` for pictures");
  }

  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override {
    check(options);
    std::vector<Answer> answers(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) try {
        const data::Image picture = image_of(inputs[i]);
        answers[i].ships = std::move(partition_pictures(model_, {&picture, 1})[0].ships);
      } catch (const Error& error) {
        answers[i].error = error.what();
      }
    return answers;
  }

  Json to_json(const Input& input, const Answer& answer) const override {
    Json json = input.name.empty() ? Json::object() : Json{{"file", input.name}};
    if (!answer.error.empty()) {
      json["error"] = answer.error;
      return json;
    }
    json["ships"] = Json::array();
    for (const infer::FoundShip& found : answer.ships) json["ships"].push_back(ship_json(found));
    return json;
  }

  Explanation explain(const Input& input, const ExplainOptions& options, const std::string& form,
                      size_t columns) const override {
    check_explain(contents(), options, form);
    const PartitionExplanation shown =
        explain_partition(model_, errors_as<FileError>([&] { return image_of(input); }));
    return {title_of(shown), form.empty() ? explain_partition_text(shown, columns)
                                          : explain_partition_file(shown, "explanation" + form)};
  }

 private:
  static data::Image image_of(const Input& input) {
    require(input.frames.empty(), input.name, " is a folder; wanted a picture file");
    const std::span<const std::byte> bytes = std::as_bytes(std::span(input.content));
    const std::string name = input.name.empty() ? "the picture" : input.name;
    return data::is_bmp(bytes) ? data::decode_bmp(bytes, name) : data::decode_image(bytes, name);
  }

  LoadedPartitioner model_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_partition(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenPartition>(std::move(contents), options);
}

}  // namespace fovea::tasks
