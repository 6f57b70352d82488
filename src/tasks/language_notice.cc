#include "tasks/language_notice.h"

#include <algorithm>

#include "base/error.h"
#include "data/marian_tokenizer.h"

namespace fovea::tasks {

LanguageNotice::LanguageNotice(const FolderContents& contents)
    : marian_(contents.kind == FolderKind::translator && data::has_marian_tokenizers(contents.folder)),
      languages_(contents.languages) {}

void LanguageNotice::count(std::string_view line) {
  if (!marian_) return;
  const std::string_view language = data::language_of(line);
  if (language.empty() || std::find(languages_.begin(), languages_.end(), language) != languages_.end())
    return;
  if (lines_++ > 0) return;
  first_ = language.size() > 40 ? message(language.substr(0, 20), "...") : std::string(language);
}

std::string LanguageNotice::text() const {
  if (lines_ == 0) return {};
  std::string known = "no target languages";
  constexpr size_t kShown = 6;
  for (size_t i = 0; i < std::min(languages_.size(), kShown); ++i)
    known = i == 0 ? languages_[0] : message(known, ", ", languages_[i]);
  if (languages_.size() > kShown)
    known = message(known, " and ", languages_.size() - kShown, " more, which `fovea info` lists");
  return message(lines_, lines_ == 1 ? " line begins with " : " lines begin with ",
                 lines_ == 1 ? "a language" : "languages",
                 " that the model does not know: ", lines_ == 1 ? "" : "the first is ", in_quotes(first_),
                 ", which is read as <unk>; the model has ", known);
}

}  // namespace fovea::tasks
