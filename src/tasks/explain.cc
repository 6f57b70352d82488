#include "tasks/explain.h"

#include <array>
#include <charconv>

#include "data/text.h"
#include "explain/attention_page.h"

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

std::optional<int64_t> chosen_layer(const ExplainOptions& options) {
  if (options.layer.empty()) return {};
  return parse_place(options.layer, "rollout", "layer");
}

std::optional<int64_t> chosen_head(const ExplainOptions& options) {
  if (options.head.empty()) return {};
  return parse_place(options.head, "average", "head");
}

// Kinds to draw, in the order they are drawn; those that a model lacks only fail when asked for by name.
std::vector<AttentionKind> chosen_kinds(const AttentionRecord& record, const ExplainOptions& options) {
  if (options.kind != "all") {
    for (const AttentionKind kind : kAttentionKinds)
      if (kind_name(kind) == options.kind) return {kind};
    fail("kind: got ", in_quotes(options.kind), ", wanted cross, encoder, decoder or all");
  }
  std::vector<AttentionKind> kinds;
  for (const AttentionKind kind : kAttentionKinds)
    if (!record.layers_of(kind).empty()) kinds.push_back(kind);
  return kinds;
}

bool in_words(const ExplainOptions& options) {
  require(options.units == "words" || options.units == "tokens", "units: got ", in_quotes(options.units),
          ", wanted words or tokens");
  return options.units == "words";
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
  require(options.threshold >= 0 && options.threshold <= 1, "threshold: got ", options.threshold,
          ", wanted a weight from 0 to 1");
  const AttentionChoice choice = single_choice(record, options);
  require(choice.kind == AttentionKind::cross,
          "a .txt file holds pairs of source and target words: wanted --kind cross");
  const WeightMatrix weights = merge_words(choose(record, choice), record.target, record.source);
  return pharaoh(aligned_pairs(weights, options.threshold)) + "\n";
}

}  // namespace

AttentionRecord record_attention(const TranslationParts& parts, std::span<const int32_t> source,
                                 std::span<const int32_t> target, std::vector<AttentionKind> kinds) {
  data::ParallelIds pair;
  pair.source.append(source);
  pair.target.append(target);
  const int64_t first[] = {0};
  const data::Batch batch = data::make_batch(pair, first);
  AttentionRecorder recorder(std::move(kinds));
  {
    const NoGrad no_grad;
    const ObserveAttention observe(recorder);
    nn::Context context;
    parts.network->states(batch, context);
  }
  AttentionRecord record;
  record.model = parts.model;
  record.source = token_line(*parts.tokenizers.source, batch.source);
  record.target = token_line(*parts.tokenizers.target, batch.target_out);
  record.fed = token_line(*parts.tokenizers.target, batch.target_in);
  record.layers = recorder.take();
  require(!record.layers.empty(), "a model of kind ", in_quotes(parts.model), " has no attention to show");
  return record;
}

AttentionRecord explain_translation(const TranslationParts& parts, const std::string& source,
                                    const std::optional<std::string>& target, const ExplainOptions& options) {
  require(data::is_utf8(source), "the sentence is not UTF-8");
  require(!target || data::is_utf8(*target), "the target is not UTF-8");
  const std::vector<int32_t> source_ids = parts.tokenizers.source->encode(source);
  require(!source_ids.empty(), "the sentence is empty: nothing to look at");
  std::vector<int32_t> target_ids;
  std::string text;
  if (target) {
    target_ids = parts.tokenizers.target->encode(*target);
    text = *target;
  } else {
    const Translator translator(*parts.network, parts.tokenizers, parts.compute);
    Translation best = translator.translate({&source, 1}, {.beam = options.beam})[0].at(0);
    target_ids = std::move(best.tokens);
    text = std::move(best.text);
  }
  AttentionRecord record = record_attention(parts, source_ids, target_ids);
  record.source_text = source;
  record.target_text = std::move(text);
  record.target_given = target.has_value();
  return record;
}

void check_explain_ending(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  for (const std::string_view known : kEndings)
    if (ending == known) return;
  fail("cannot write ", in_quotes(path.string()), ": got ",
       ending.empty() ? "no ending" : "the ending " + in_quotes(ending),
       ", wanted .png, .svg, .pdf, .html, .json or .txt");
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

std::string explain_text(const AttentionRecord& record, const ExplainOptions& options, size_t width) {
  return shade(heat_map(record, single_choice(record, options), in_words(options)), width);
}

Alignment align(const TranslationParts& parts, const std::string& line, const Translation& translation) {
  const AttentionRecord record = record_attention(parts, parts.tokenizers.source->encode(line),
                                                  translation.tokens, {AttentionKind::cross});
  const AttentionChoice choice{AttentionKind::cross, alignment_layer(record)};
  return {record.source.words, record.target.words,
          merge_words(choose(record, choice), record.target, record.source)};
}

}  // namespace fovea::tasks
