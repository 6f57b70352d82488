// Showing what a translator attends to: from a model folder and a sentence to pictures, a page, weights and
// alignments.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "explain/attention_maps.h"
#include "explain/attention_record.h"
#include "tasks/folder_contents.h"
#include "tasks/translator.h"

namespace fovea::tasks {

// What a value is when it is not given depends on the model and the form; what is given is used or refused.
struct ExplainOptions {
  std::optional<std::string> target = {}, kind = {}, layer = {}, head = {}, units = {};
  std::optional<double> threshold = {};
  std::optional<int64_t> beam = {};
  bool smooth = false;

  static constexpr auto fields() {
    using T = ExplainOptions;
    return std::tuple{
        Field{
            "target", &T::target,
            "translator, captioner: explain this translation or caption (default: the one that the model finds)"},
        Field{"kind", &T::kind,
              "attention to show: cross (translation to source), encoder (source to itself), decoder "
              "(translation to its own earlier words) or all (default: cross; for a text classifier, the "
              "weights of its words)"},
        Field{
            "layer", &T::layer,
            "show one layer, counted from 0, or rollout (default: all; where only one map is shown, the layer "
            "that shows alignments best)"},
        Field{
            "head", &T::head,
            "show one head, counted from 0, or average (default: all; where only one map is shown, average)"},
        Field{"units", &T::units, "rows and columns of a map: words, or tokens (sub-words) (default: words)"},
        Field{"threshold", &T::threshold,
              ".txt: write every pair with at least this weight, from 0 to 1 (default: the strongest source "
              "word of each target word)"},
        Field{"beam", &T::beam,
              "beam search: hypotheses kept while translating or captioning; 1 is greedy search (default 5)"},
        Field{
            "smooth", &T::smooth,
            "captioner: blend the weights of neighbouring places instead of showing the grid that the model sees"}};
  }
};

// Throws Error for an option that has no meaning for the kind of model, the form or the other options. form:
// a file's ending, or empty for a terminal.
void check_explain(const FolderContents& contents, const ExplainOptions& options, const std::string& form);

// Feeds the pair to the model and keeps its attention weights: no layers where the model has no attention.
AttentionRecord observe_attention(const LoadedTranslator& loaded, std::span<const int32_t> source,
                                  std::span<const int32_t> target, std::vector<AttentionKind> kinds);
// The same; throws Error when the model has no attention.
AttentionRecord record_attention(const LoadedTranslator& loaded, std::span<const int32_t> source,
                                 std::span<const int32_t> target,
                                 std::vector<AttentionKind> kinds = {kAttentionKinds.begin(),
                                                                     kAttentionKinds.end()});

// The same from text; without a target, of the model's own translation. Throws Error for an empty source.
AttentionRecord explain_translation(const LoadedTranslator& loaded, const std::string& source,
                                    const std::optional<std::string>& target, const ExplainOptions& options);

// Throws Error naming the endings that work, before anything slow is done.
void check_explain_ending(const std::filesystem::path& path);
// The file's bytes, by its ending: .png, .svg, .pdf (heads side by side, or one map), .html, .json
// (everything), .txt (alignment pairs).
std::string explain_file(const AttentionRecord& record, const ExplainOptions& options,
                         const std::filesystem::path& path);
// One map in shaded blocks, for a terminal of `columns` columns.
std::string explain_text(const AttentionRecord& record, const ExplainOptions& options, size_t columns = 100);

// Which source words a translation's words come from: weights [target.size(), source.size()], the ends of
// both sentences last.
struct Alignment {
  std::vector<std::string> source, target;
  WeightMatrix weights;
  std::vector<int32_t> unknown = {};  // places in `source` of words that the vocabulary lacks
};
// An empty line or translation gives no words but the ends.
Alignment align(const LoadedTranslator& loaded, const std::string& line, const Translation& translation);

}  // namespace fovea::tasks
