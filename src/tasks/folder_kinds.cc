// The records of all kinds of model folders and of all abilities, and lookups in them.
#include "tasks/folder_kinds.h"

#include <algorithm>
#include <array>

#include "base/error_kinds.h"
#include "models/registry/captioners.h"
#include "models/registry/classifiers.h"
#include "models/registry/clip_classifiers.h"
#include "models/registry/glimpse_classifiers.h"
#include "models/registry/image_classifiers.h"
#include "models/registry/partitioners.h"
#include "models/registry/series_models.h"
#include "models/registry/translators.h"
#include "tasks/explain_checks.h"
#include "tasks/open_kinds.h"

namespace fovea::tasks {
namespace {

// A folder of the BERT family without a classifier shows nothing.
bool no_attention(const std::string&, const Json&, const std::string&) {
  return false;
}
// There is nothing to choose among.
void no_options(const ExplainOptions& options, const std::string&, const std::string& is) {
  refuse_except(options, {}, is);
}
void no_explanation(const ExplainOptions&, const std::string&, const std::string&) {}

constexpr std::array kKinds = {
    KindRecord{FolderKind::translator, "translate", "a translator", "fovea train translate",
               Ability::translate, InputForm::text, models::has_attention<models::Translators>,
               check_explain_translator, open_translator},
    KindRecord{FolderKind::text_classifier, "classify", "a text classifier", "fovea train classify",
               Ability::classify, InputForm::text, models::has_attention<models::Classifiers>,
               check_explain_text_classifier, open_text_classifier},
    KindRecord{FolderKind::image_classifier, "image", "an image classifier", "fovea train image",
               Ability::classify, InputForm::picture, models::has_attention<models::ImageClassifiers>,
               check_explain_image, open_image_classifier},
    KindRecord{FolderKind::series, "series", "a model of number sequences", "fovea train series",
               Ability::predict, InputForm::numbers, models::has_attention<models::SeriesModels>, no_options,
               open_series},
    KindRecord{FolderKind::partition, "partition", "a ship detector", "fovea train partition",
               Ability::partition, InputForm::picture, models::has_attention<models::Partitioners>,
               check_explain_picture, open_partition},
    KindRecord{FolderKind::glimpse_classifier, "glimpse", "a glimpse classifier", "fovea train glimpse",
               Ability::classify, InputForm::picture, models::has_attention<models::GlimpseClassifiers>,
               check_explain_picture, open_glimpse_classifier},
    KindRecord{FolderKind::clip_classifier, "clip", "a clip classifier", "fovea train clip",
               Ability::classify, InputForm::clip, models::has_attention<models::ClipClassifiers>,
               check_explain_picture, open_clip_classifier},
    KindRecord{FolderKind::captioner, "caption", "a captioner", "fovea train caption", Ability::caption,
               InputForm::picture, models::has_attention<models::Captioners>, check_explain_captioner,
               open_captioner},
    KindRecord{FolderKind::encoder, nullptr, "an encoder of the BERT family", nullptr, Ability::embed,
               InputForm::text, no_attention, no_explanation, open_embedder},
};

constexpr std::array kAbilities = {
    AbilityRecord{Ability::translate, "translate", "a translator"},
    AbilityRecord{Ability::classify, "classify", "a classifier"},
    AbilityRecord{Ability::partition, "partition", "a ship detector"},
    AbilityRecord{Ability::caption, "caption", "a captioner"},
    AbilityRecord{Ability::explain, "explain", "a model of a task, such as a translator or a classifier"},
    AbilityRecord{Ability::rerank, "rerank", "a cross-encoder of the BERT family with one label"},
    AbilityRecord{Ability::embed, "embed",
                  "a folder of the BERT family, as Hugging Face's libraries save it"},
    AbilityRecord{Ability::fill, "fill", "a folder of the BERT family with a head for masked tokens"},
    AbilityRecord{Ability::predict, "predict", "a model of number sequences"},
};

}  // namespace

const KindRecord& record_of(FolderKind kind) {
  for (const KindRecord& record : kKinds)
    if (record.kind == kind) return record;
  fail("internal: a kind of folder without a record");
}

const KindRecord& kind_of_task(const std::string& task, const std::string& where) {
  std::vector<std::string_view> known;
  for (const KindRecord& record : kKinds) {
    if (record.task == nullptr) continue;
    if (task == record.task) return record;
    known.emplace_back(record.task);
  }
  fail(where, ": unknown task ", in_quotes(task), name_hint(task, known));
}

const AbilityRecord& record_of(Ability ability) {
  for (const AbilityRecord& record : kAbilities)
    if (record.ability == ability) return record;
  fail("internal: an ability without a record");
}

std::string_view name_of(FolderKind kind) {
  const std::string_view name = record_of(kind).name;
  return name.substr(name.find(' ') + 1);
}

Ability ability_of_verb(std::string_view verb) {
  std::vector<std::string_view> known;
  for (const AbilityRecord& record : kAbilities) {
    if (record.verb == verb) return record.ability;
    known.emplace_back(record.verb);
  }
  fail("unknown purpose '", verb, "'", name_hint(verb, known));
}

std::string_view name_of(Ability ability) {
  return record_of(ability).verb;
}

bool FolderContents::can(Ability ability) const {
  return std::find(abilities.begin(), abilities.end(), ability) != abilities.end();
}

InputForm FolderContents::input() const {
  return record_of(kind).input;
}

std::string FolderContents::description() const {
  return message(folder.string(), " is ", record_of(kind).name);
}

void FolderContents::require_can(Ability ability) const {
  if (can(ability)) return;
  if ((kind == FolderKind::translator || kind == FolderKind::captioner) && !lacks.empty())
    throw ModelError(message(folder.string(), " has no ", lacks[0]));
  const std::string is = message(description(), " (", model, ")");
  if (ability == Ability::explain && record_of(kind).trained_by != nullptr)
    fail(is, " without attention: there is nothing to explain");
  if (ability == Ability::fill && pretrained)
    fail(is, " without a head for masked tokens; fill needs a folder such as BertForMaskedLM");
  std::string made_by;
  for (const KindRecord& record : kKinds)
    if (record.ability == ability && record.trained_by != nullptr)
      made_by += message(made_by.empty() ? ", as " : " or ", "`", record.trained_by, "`");
  const AbilityRecord& record = record_of(ability);
  if (ability == Ability::classify && kind == FolderKind::encoder)
    made_by = message(": train one with fovea train classify --from ", folder.string());
  else if (!made_by.empty())
    made_by += " makes";
  fail(is, "; ", record.verb, " needs ", record.needs, made_by);
}

std::string FolderContents::command(Ability ability) const {
  // Forecasts are made of the rows of a table, labels and numbers of cases.
  const std::string numbers = settings.value("targets", int64_t{0}) > 0 ? "rows.csv" : "cases.ts";
  const std::string what = ability == Ability::fill        ? " \"a text with a [MASK]\""
                           : ability == Ability::rerank    ? " --query \"a text\" < texts.txt"
                           : input() == InputForm::picture ? " picture.png"
                           : ability == Ability::predict   ? " < " + numbers
                           : input() == InputForm::numbers ? " " + numbers
                           : input() == InputForm::clip    ? " folder-of-frames"
                           : ability == Ability::explain   ? " \"a text\""
                                                           : " < texts.txt";
  return message("fovea ", name_of(ability), " ", folder.string(), what);
}

}  // namespace fovea::tasks
