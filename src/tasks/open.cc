#include "tasks/open.h"

#include "base/error_kinds.h"
#include "base/thread_limit.h"
#include "data/text.h"
#include "io/file.h"
#include "nn/prepared_linear.h"
#include "tasks/folder_kinds.h"
#include "tasks/open_kinds.h"

namespace fovea::tasks {
namespace {

// A picture file larger than this is refused before it is read.
constexpr uint64_t kLargestInput = uint64_t{256} << 20;

std::unique_ptr<OpenFolder> open_kind(FolderContents contents, Ability purpose, const OpenOptions& options) {
  if (!options.compute.empty()) compute_named(options.compute);  // an unknown name is not the folder's fault
  if (purpose == Ability::embed) return open_embedder(std::move(contents), options);
  if (purpose == Ability::fill) return open_mask_filler(std::move(contents), options);
  const auto open_it = record_of(contents.kind).open;
  return open_it(std::move(contents), options);
}

}  // namespace

Input read_input(const std::filesystem::path& path) {
  return errors_as<FileError>([&] { return Input{read_text(path, kLargestInput), path.string()}; });
}

std::string text_fault(const Input& input) {
  if (data::is_utf8(input.content)) return "";
  return (input.name.empty() ? "the text" : input.name) + std::string(" is not UTF-8");
}

void OpenFolder::check(const AnswerOptions&) const {}

std::vector<Answer> OpenFolder::answer(std::span<const Input> inputs, const AnswerOptions& options) const {
  const ThreadLimit limit(options.threads);
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
  return open_kind(std::move(contents), purpose, options);
}

}  // namespace fovea::tasks
