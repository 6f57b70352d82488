#include "tasks/open.h"

#include "base/error_kinds.h"
#include "base/stop_check.h"
#include "base/thread_limit.h"
#include "data/clips.h"
#include "data/text.h"
#include "io/file.h"
#include "nn/prepared_linear.h"
#include "tasks/folder_kinds.h"
#include "tasks/open_kinds.h"

namespace fovea::tasks {
namespace {

// A picture file larger than this is refused before it is read.
constexpr uint64_t kLargestInput = uint64_t{256} << 20;
// And all frames of a clip together.
constexpr uint64_t kLargestClip = uint64_t{1} << 30;

std::unique_ptr<OpenFolder> open_kind(FolderContents contents, Ability purpose, const OpenOptions& options) {
  if (!options.compute.empty()) compute_named(options.compute);  // an unknown name is not the folder's fault
  if (purpose == Ability::embed) return open_embedder(std::move(contents), options);
  if (purpose == Ability::fill) return open_mask_filler(std::move(contents), options);
  if (purpose == Ability::rerank) return open_reranker(std::move(contents), options);
  const auto open_it = record_of(contents.kind).open;
  return open_it(std::move(contents), options);
}

}  // namespace

Input read_input(const std::filesystem::path& path, InputForm form) {
  return errors_as<FileError>([&] {
    if (!is_folder(path)) return Input{read_text(path, kLargestInput), path.string()};
    require(form == InputForm::clip, path.string(), " is a folder; wanted a ",
            form == InputForm::numbers ? "table or a .ts file" : "picture file");
    Input clip{"", path.string()};
    uint64_t bytes = 0;
    for (const std::filesystem::path& frame : data::frames_in(path)) {
      clip.frames.push_back(read_text(frame, kLargestInput));
      clip.frame_names.push_back(frame.filename().string());
      bytes += clip.frames.back().size();
      require(bytes <= kLargestClip, path.string(), ": frames of more than ", kLargestClip >> 20,
              " MiB in all");
    }
    return clip;
  });
}

std::string text_fault(const Input& input) {
  if (data::is_utf8(input.content)) return "";
  return (input.name.empty() ? "the text" : input.name) + std::string(" is not UTF-8");
}

void OpenFolder::check(const AnswerOptions&) const {}

std::vector<Answer> OpenFolder::answer(std::span<const Input> inputs, const AnswerOptions& options) const {
  const ThreadLimit limit(options.threads);
  const StopCheck stop(options.should_stop);
  return answer_inputs(inputs, options);
}

Explanation OpenFolder::explain(const Input&, const ExplainOptions&, const std::string&, size_t) const {
  contents_.require_can(Ability::explain);
  fail(contents_.folder.string(), " was opened for another purpose than to explain");
}

std::string OpenFolder::to_line(const Answer&, const AnswerOptions&) const {
  contents_.require_can(Ability::classify);
  fail("internal: a classifier without lines");
}

Evaluation OpenFolder::evaluate(const TestFiles&) const {
  contents_.require_can(Ability::classify);
  fail(contents_.folder.string(), " was opened for another purpose than to classify");
}

std::unique_ptr<OpenFolder> open(const std::filesystem::path& folder, const OpenOptions& options) {
  FolderContents contents = look_into(folder);
  const Ability purpose = options.purpose.value_or(record_of(contents.kind).ability);
  contents.require_can(purpose);
  require(options.rollouts == 0 || contents.kind == FolderKind::glimpse_classifier,
          "--rollouts needs a glimpse classifier that draws its path; ", contents.description());
  require(
      options.global.empty() || contents.kind == FolderKind::text_classifier || contents.can(Ability::embed),
      "global tokens are for Longformer and BigBird; ", folder.string(), " is ",
      record_of(contents.kind).name);
  require(!options.pairs || contents.kind == FolderKind::text_classifier,
          "--pairs is for classifiers of texts; ", contents.description());
  return open_kind(std::move(contents), purpose, options);
}

}  // namespace fovea::tasks
