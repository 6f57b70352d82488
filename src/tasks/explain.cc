// Records a translator's attention for a sentence and writes it in the requested form.
#include "tasks/explain.h"

#include <algorithm>

#include "data/text.h"
#include "data/unknown_texts.h"
#include "explain/attention_page.h"
#include "tasks/explain_checks.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kBeam = 5;
// A larger map cannot be read, and takes too much memory for every head.
constexpr int64_t kMostExplained = 1024;

// Kinds to draw, in the order they are drawn; those that a model lacks only fail when requested by name.
std::vector<AttentionKind> chosen_kinds(const AttentionRecord& record, const ExplainOptions& options) {
  const std::string name = options.kind.value_or("cross");
  check_kind(name);
  for (const AttentionKind kind : kAttentionKinds)
    if (kind_name(kind) == name) return {kind};
  std::vector<AttentionKind> kinds;
  for (const AttentionKind kind : kAttentionKinds)
    if (!record.layers_of(kind).empty()) kinds.push_back(kind);
  return kinds;
}

bool in_words(const ExplainOptions& options) {
  const std::string units = options.units.value_or("words");
  require(units == "words" || units == "tokens", "--units: got ", in_quotes(units),
          ", wanted words or tokens");
  return units == "words";
}

// For the forms that show one matrix.
AttentionChoice single_choice(const AttentionRecord& record, const ExplainOptions& options) {
  const std::vector<AttentionKind> kinds = chosen_kinds(record, options);
  AttentionChoice choice{kinds.size() == 1 ? kinds[0] : AttentionKind::cross};
  const auto layers = record.layers_of(choice.kind);
  require(!layers.empty(), "the model has no ", kind_name(choice.kind), " attention");
  choice.layer = chosen_layer(options).value_or(choice.kind == AttentionKind::cross ? alignment_layer(record)
                                                                                    : layers.back()->layer);
  choice.head = chosen_head(options).value_or(AttentionChoice::kAverage);
  return choice;
}

Figure figure_of(const AttentionRecord& record, const ExplainOptions& options) {
  Figure all;
  const std::vector<AttentionKind> kinds = chosen_kinds(record, options);
  for (const AttentionKind kind : kinds) {
    Figure one =
        attention_figure(record, {kind, chosen_layer(options), chosen_head(options)}, in_words(options));
    if (kinds.size() == 1) return one;
    for (HeatMap& panel : one.panels) panel.title = message(kind_name(kind), ", ", panel.title);
    // Each kind begins a row of its own.
    while (!all.panels.empty() && all.panels.size() % static_cast<size_t>(all.across) != 0)
      all.panels.emplace_back();
    FOVEA_ASSERT(all.panels.empty() || all.across == one.across);
    all.across = one.across;
    std::move(one.panels.begin(), one.panels.end(), std::back_inserter(all.panels));
  }
  all.title = "attention, each map to its own largest weight";
  return all;
}

std::string pairs_of(const AttentionRecord& record, const ExplainOptions& options) {
  check_threshold(options);
  const AttentionChoice choice = single_choice(record, options);
  require(
      choice.kind == AttentionKind::cross, "--kind ", kind_name(choice.kind),
      " does not apply to a .txt file, which contains pairs of source and target words: use --kind cross");
  const WeightMatrix weights = merge_words(choose(record, choice), record.target, record.source);
  return pharaoh(aligned_pairs(weights, options.threshold.value_or(0))) + "\n";
}

// The line of a sentence that somebody wrote, with its end (fed: with its beginning instead): words that the vocabulary
// lacks are shown as they are written.
TokenLine written_line(const data::Tokenizer& tokenizer, const std::string& sentence,
                       std::vector<int32_t> ids, bool fed = false) {
  const data::SequenceMarks marks = tokenizer.sequence_marks();
  ids.insert(fed ? ids.begin() : ids.end(), fed ? marks.begin : marks.end);
  return token_line(tokenizer, ids, data::texts_of_unknown(tokenizer, sentence, ids));
}

}  // namespace

AttentionRecord observe_attention(const LoadedTranslator& loaded, std::span<const int32_t> source,
                                  std::span<const int32_t> target, std::vector<AttentionKind> kinds) {
  data::ParallelIds pair;
  pair.source_marks = loaded.tokenizers.source->sequence_marks();
  pair.target_marks = loaded.tokenizers.target->sequence_marks();
  pair.source.append(source);
  pair.target.append(target);
  const int64_t first[] = {0};
  const data::Batch batch = data::make_batch(pair, first);
  AttentionRecorder recorder(std::move(kinds));
  {
    const NoGrad no_grad;
    const ObserveAttention observe(recorder);
    nn::Context context;
    loaded.network->states(batch, context);
  }
  AttentionRecord record;
  record.model = loaded.model;
  record.source = token_line(*loaded.tokenizers.source, batch.source);
  record.target = token_line(*loaded.tokenizers.target, batch.target_out);
  record.fed = token_line(*loaded.tokenizers.target, batch.target_in);
  record.layers = recorder.take();
  return record;
}

AttentionRecord record_attention(const LoadedTranslator& loaded, std::span<const int32_t> source,
                                 std::span<const int32_t> target, std::vector<AttentionKind> kinds) {
  AttentionRecord record = observe_attention(loaded, source, target, std::move(kinds));
  require(!record.layers.empty(), "a model of kind ", in_quotes(loaded.model), " has no attention to show");
  return record;
}

AttentionRecord explain_translation(const LoadedTranslator& loaded, const std::string& source,
                                    const std::optional<std::string>& target, const ExplainOptions& options) {
  require(data::is_utf8(source), "the sentence is not UTF-8");
  require(!target || data::is_utf8(*target), "the target is not UTF-8");
  const std::vector<int32_t> source_ids = loaded.tokenizers.source->encode(source);
  require(!source_ids.empty(), "the sentence is empty: nothing to explain");
  require(static_cast<int64_t>(source_ids.size()) <= kMostExplained, "the sentence has ", source_ids.size(),
          " tokens; attention can be shown of at most ", kMostExplained);
  std::vector<int32_t> target_ids;
  std::string text;
  if (target) {
    target_ids = loaded.tokenizers.target->encode(*target);
    text = *target;
  } else {
    const Translator translator(*loaded.network, loaded.tokenizers, loaded.compute);
    Translation best =
        translator
            .translate({&source, 1}, {.beam = options.beam.value_or(kBeam), .max_tokens = kMostExplained})[0]
            .at(0);
    target_ids = std::move(best.tokens);
    text = std::move(best.text);
  }
  AttentionRecord record = record_attention(loaded, source_ids, target_ids);
  record.source = written_line(*loaded.tokenizers.source, source, source_ids);
  if (target) {
    record.target = written_line(*loaded.tokenizers.target, *target, target_ids);
    record.fed = written_line(*loaded.tokenizers.target, *target, target_ids, true);
  }
  record.source_text = source;
  record.target_text = std::move(text);
  record.target_given = target.has_value();
  return record;
}

std::string explain_file(const AttentionRecord& record, const ExplainOptions& options,
                         const std::filesystem::path& path) {
  check_explain_ending(path);
  const std::string ending = path.extension().string();
  if (ending == ".json") return attention_json(record).dump() + "\n";
  if (ending == ".html") return attention_page({&record, 1}, record.source_text);
  if (ending == ".txt") return pairs_of(record, options);
  return draw(figure_of(record, options), picture_format(path));
}

std::string explain_text(const AttentionRecord& record, const ExplainOptions& options, size_t columns) {
  return shade(heat_map(record, single_choice(record, options), in_words(options)), columns);
}

Alignment align(const LoadedTranslator& loaded, const std::string& line, const Translation& translation) {
  std::vector<int32_t> source = loaded.tokenizers.source->encode(line);
  if (translation.cut_to > 0) source.resize(static_cast<size_t>(translation.cut_to));
  AttentionRecord record = record_attention(loaded, source, translation.tokens, {AttentionKind::cross});
  record.source = written_line(*loaded.tokenizers.source, line, source);
  const AlignmentChoice usual = loaded.alignment.value_or(AlignmentChoice{alignment_layer(record)});
  const AttentionChoice choice{AttentionKind::cross, usual.layer, usual.head};
  return {record.source.words, record.target.words,
          merge_words(choose(record, choice), record.target, record.source), record.source.unknown};
}

}  // namespace fovea::tasks
