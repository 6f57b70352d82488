// Which options of `fovea explain` each kind of folder takes: an option is used or refused, never ignored.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "tasks/explain.h"

namespace fovea::tasks {

// The checks of each kind, for its record (folder_kinds.h). form: a file's ending, or empty for a terminal; is: "DIR is
// a translator".
void check_explain_translator(const ExplainOptions& options, const std::string& form, const std::string& is);
void check_explain_text_classifier(const ExplainOptions& options, const std::string& form,
                                   const std::string& is);
void check_explain_image(const ExplainOptions& options, const std::string& form, const std::string& is);
void check_explain_captioner(const ExplainOptions& options, const std::string& form, const std::string& is);
void check_explain_picture(const ExplainOptions& options, const std::string& form, const std::string& is);

// Throws Error for every given option whose name (a field of ExplainOptions) is not in `taken`.
void refuse_except(const ExplainOptions& options, std::initializer_list<std::string_view> taken,
                   const std::string& is);

// The values of options, checked. Empty: not given.
std::optional<int64_t> chosen_layer(const ExplainOptions& options);
std::optional<int64_t> chosen_head(const ExplainOptions& options);
void check_kind(const std::string& name);
void check_threshold(const ExplainOptions& options);

}  // namespace fovea::tasks
