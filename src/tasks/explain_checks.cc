#include "tasks/explain_checks.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tasks/folder_kinds.h"

namespace fovea::tasks {
namespace {

constexpr std::array<std::string_view, 6> kEndings = {".png", ".svg", ".pdf", ".html", ".json", ".txt"};

int64_t parse_place(const std::string& text, std::string_view word, const char* flag) {
  if (text == word) return -1;
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  require(error == std::errc() && end == text.data() + text.size() && number >= 0, flag, ": got ",
          in_quotes(text), ", wanted a number from 0, or ", word);
  return number;
}

// An option that was given, by its flag.
struct Given {
  const char* flag;
  bool given;
};

template <class... Parts>
void refuse(std::initializer_list<Given> options, const Parts&... why) {
  for (const Given& option : options) require(!option.given, option.flag, why...);
}

}  // namespace

std::optional<int64_t> chosen_layer(const ExplainOptions& options) {
  if (!options.layer) return {};
  return parse_place(*options.layer, "rollout", "--layer");
}

std::optional<int64_t> chosen_head(const ExplainOptions& options) {
  if (!options.head) return {};
  return parse_place(*options.head, "average", "--head");
}

void check_kind(const std::string& name) {
  const bool known =
      name == "all" || std::any_of(kAttentionKinds.begin(), kAttentionKinds.end(),
                                   [&](AttentionKind kind) { return kind_name(kind) == name; });
  require(known, "--kind: got ", in_quotes(name), ", wanted cross, encoder, decoder or all");
}

void check_threshold(const ExplainOptions& options) {
  require(!options.threshold || (*options.threshold >= 0 && *options.threshold <= 1), "--threshold: got ",
          options.threshold.value_or(0), ", wanted a weight from 0 to 1");
}

void check_explain_translator(const ExplainOptions& o, const std::string& form, const std::string& is) {
  refuse({{"--smooth", o.smooth}}, " needs a captioner; ", is);
  if (form == ".html" || form == ".json")
    refuse({{"--kind", o.kind.has_value()},
            {"--layer", o.layer.has_value()},
            {"--head", o.head.has_value()},
            {"--units", o.units.has_value()}},
           " does not apply to a ", form, " file, which contains every kind, layer and head");
  if (form != ".txt") refuse({{"--threshold", o.threshold.has_value()}}, " applies to .txt files only");
  if (o.target)
    refuse({{"--beam", o.beam.has_value()}}, " does not apply with --target: nothing is translated");
}

void check_explain_text_classifier(const ExplainOptions& o, const std::string& form, const std::string& is) {
  refuse({{"--target", o.target.has_value()},
          {"--threshold", o.threshold.has_value()},
          {"--beam", o.beam.has_value()}},
         " needs a translator; ", is);
  refuse({{"--smooth", o.smooth}}, " needs a captioner; ", is);
  const std::initializer_list<Given> of_heads = {
      {"--layer", o.layer.has_value()}, {"--head", o.head.has_value()}, {"--units", o.units.has_value()}};
  if (!o.kind) return refuse(of_heads, " needs --kind encoder; ", is, ", whose words are shown otherwise");
  require(*o.kind == "encoder", "--kind: got ", in_quotes(*o.kind), ", wanted encoder; ", is);
  if (form == ".json" || form == ".txt")
    refuse({{"--kind", true}}, " does not apply to a ", form,
           form == ".json" ? " file, which contains everything"
                           : " file, which contains words and their weights");
  if (form == ".html")
    refuse(of_heads, " does not apply to a .html file, which contains every layer and head");
}

void refuse_except(const ExplainOptions& options, std::initializer_list<std::string_view> taken,
                   const std::string& is) {
  for_each_field<ExplainOptions>([&](const auto& field) {
    const auto& value = options.*field.member;
    bool given = false;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, bool>)
      given = value;
    else
      given = value.has_value();
    require(!given || std::find(taken.begin(), taken.end(), field.name) != taken.end(), "--", field.name,
            " does not apply: ", is);
  });
}

// Heads and layers of a vision Transformer; whether the model is one is known when it is open.
void check_explain_image(const ExplainOptions& o, const std::string& form, const std::string& is) {
  refuse_except(o, {"layer", "head"}, is);
  const std::initializer_list<Given> of_heads = {{"--layer", o.layer.has_value()},
                                                 {"--head", o.head.has_value()}};
  if (form == ".json" || form == ".html")
    refuse(of_heads, " does not apply to a ", form, " file, which contains every layer and head");
  if (form == ".txt") refuse(of_heads, " does not apply to a .txt file, which contains probabilities");
}

void check_explain_captioner(const ExplainOptions& o, const std::string& form, const std::string& is) {
  refuse_except(o, {"target", "beam", "smooth"}, is);
  if (o.target)
    refuse({{"--beam", o.beam.has_value()}}, " does not apply with --target: nothing is searched for");
  if (form.empty() || form == ".json" || form == ".txt")
    refuse({{"--smooth", o.smooth}}, " applies to pictures and pages only: .png, .svg, .pdf or .html");
}

void check_explain_picture(const ExplainOptions& options, const std::string&, const std::string& is) {
  refuse_except(options, {}, is);
}

void check_explain(const FolderContents& contents, const ExplainOptions& o, const std::string& form) {
  if (!form.empty()) check_explain_ending("file" + form);
  contents.require_can(Ability::explain);
  record_of(contents.kind).check_explain(o, form, contents.description());
  if (o.kind) check_kind(*o.kind);
  const auto layer = chosen_layer(o), head = chosen_head(o);
  require(!head || layer != AttentionChoice::kRollout,
          "--head does not apply to --layer rollout, which joins all heads");
  check_threshold(o);
  require(!o.beam || *o.beam >= 1, "--beam: got ", o.beam.value_or(0), ", wanted 1 or more");
}

void check_explain_ending(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  for (const std::string_view known : kEndings)
    if (ending == known) return;
  fail("cannot write ", in_quotes(path.string()), ": got ",
       ending.empty() ? "no ending" : "the ending " + in_quotes(ending),
       ", wanted .png, .svg, .pdf, .html, .json or .txt");
}

}  // namespace fovea::tasks
