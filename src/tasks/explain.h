// Showing what a translator looks at: from a model folder and a sentence to pictures, a page, weights and
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
#include "tasks/translator.h"

namespace fovea::tasks {

struct ExplainOptions {
  std::string kind = "cross";
  std::string layer = "", head = "";  // empty: as many as the form can show
  std::string units = "words";
  double threshold = 0;
  int64_t beam = 5;

  static constexpr auto fields() {
    using T = ExplainOptions;
    return std::tuple{
        Field{"kind", &T::kind,
              "who looks: cross (translation at source), encoder (source at itself), decoder (translation at "
              "what is written of it), or all"},
        Field{"layer", &T::layer, "one layer, counted from 0, or rollout"},
        Field{"head", &T::head, "one head, counted from 0, or average"},
        Field{"units", &T::units, "what a row or column of a map is: words, or tokens (sub-words)"},
        Field{"threshold", &T::threshold,
              "of .txt: give every pair of at least this weight instead of each word's strongest"},
        Field{"beam", &T::beam, "hypotheses kept when the model translates; 1 is greedy"}};
  }
};

// Feeds the pair to the model and keeps what it looks at. Throws Error when the model has no attention.
AttentionRecord record_attention(const TranslationParts& parts, std::span<const int32_t> source,
                                 std::span<const int32_t> target,
                                 std::vector<AttentionKind> kinds = {kAttentionKinds.begin(),
                                                                     kAttentionKinds.end()});

// The same from text; without a target, of the model's own translation. Throws Error for an empty source.
AttentionRecord explain_translation(const TranslationParts& parts, const std::string& source,
                                    const std::optional<std::string>& target, const ExplainOptions& options);

// Throws Error naming the endings that work, before anything slow is done.
void check_explain_ending(const std::filesystem::path& path);
// The file's bytes, by its ending: .png, .svg, .pdf (heads side by side, or one map), .html, .json
// (everything), .txt (alignment pairs).
std::string explain_file(const AttentionRecord& record, const ExplainOptions& options,
                         const std::filesystem::path& path);
// One map in shaded blocks, for a terminal of `width` columns.
std::string explain_text(const AttentionRecord& record, const ExplainOptions& options, size_t width = 100);

// Which source words a translation's words come from: weights [target.size(), source.size()], the ends of
// both sentences last.
struct Alignment {
  std::vector<std::string> source, target;
  WeightMatrix weights;
};
// An empty line or translation gives no words but the ends.
Alignment align(const TranslationParts& parts, const std::string& line, const Translation& translation);

}  // namespace fovea::tasks
