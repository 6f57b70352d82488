// Records a captioner's attention for each word and draws it over the picture.
#include "tasks/explain_caption.h"

#include <algorithm>
#include <cstdio>

#include "data/unknown_texts.h"
#include "explain/attention_record.h"
#include "explain/report.h"
#include "explain/shades.h"
#include "tasks/explain.h"

namespace fovea::tasks {
namespace {

std::string gate_text(const CaptionExplanation& e, const ShownCaptionWord& word) {
  if (!e.gated) return "";
  char text[32];
  std::snprintf(text, sizeof text, "β %.2f", double{word.gate});
  return text;
}

std::string shown(const ShownCaptionWord& word) {
  return word.unknown ? marked_unknown(word.word) : word.word;
}

bool has_unknown(const CaptionExplanation& e) {
  return std::any_of(e.words.begin(), e.words.end(),
                     [](const ShownCaptionWord& word) { return word.unknown; });
}

Overlay overlay_of(const CaptionExplanation& e) {
  return {.title = "the picture", .height = e.size, .width = e.size, .pixels = e.pixels};
}

Overlay overlay_of(const CaptionExplanation& e, const ShownCaptionWord& word, bool smooth) {
  Overlay overlay = overlay_of(e);
  overlay.title = shown(word) + (e.gated ? "   " + gate_text(e, word) : "");
  overlay.rows = e.rows;
  overlay.columns = e.columns;
  overlay.weights = word.weights;
  overlay.smooth = smooth;
  return overlay;
}

struct StrongestPlace {
  int64_t row, column;
  float weight;
};
StrongestPlace strongest(const CaptionExplanation& e, const ShownCaptionWord& word) {
  const auto most = std::max_element(word.weights.begin(), word.weights.end());
  const int64_t place = most - word.weights.begin();
  return {place / e.columns, place % e.columns, *most};
}

// word, gate, row, column, weight
std::vector<std::string> cells_of(const CaptionExplanation& e, const ShownCaptionWord& word) {
  const StrongestPlace place = strongest(e, word);
  std::vector<std::string> cells{shown(word)};
  if (e.gated) cells.push_back(weight_text(word.gate));
  cells.insert(cells.end(),
               {std::to_string(place.row), std::to_string(place.column), weight_text(place.weight, 3)});
  return cells;
}

Json to_json(const CaptionExplanation& e) {
  Json words = Json::array();
  for (const ShownCaptionWord& word : e.words) {
    Json one{{"word", word.word}};
    if (word.unknown) one["unknown"] = true;
    if (e.gated) one["gate"] = value_to_json(word.gate);
    one["weights"] = Json::array();
    for (int64_t r = 0; r < e.rows; ++r)
      one["weights"].push_back(value_to_json(std::vector<float>(word.weights.begin() + r * e.columns,
                                                                word.weights.begin() + (r + 1) * e.columns)));
    words.push_back(std::move(one));
  }
  return {{"format", "fovea caption 1"}, {"model", e.model}, {"caption", e.caption.text},
          {"score", e.caption.score},    {"rows", e.rows},   {"columns", e.columns},
          {"words", std::move(words)}};
}

std::string page(const CaptionExplanation& e, bool smooth) {
  // Small pictures are shown larger: each of their pixels is a square.
  const int zoom = static_cast<int>(std::max<int64_t>(1, (448 + e.size - 1) / e.size));
  Report report(e.caption.text, e.model);
  std::vector<Report::HoverWord> words;
  for (const ShownCaptionWord& word : e.words)
    words.push_back({shown(word), gate_text(e, word), overlay_png(overlay_of(e, word, smooth), zoom)});
  report.hover(
      overlay_png(overlay_of(e), zoom),
      message(
          "Point at a word to see where the model looked when it wrote it: blue is the smallest weight, orange "
          "the largest of that word.",
          e.gated ? " β is the gate: how much the picture mattered for that word." : "",
          has_unknown(e) ? " Words in ‹ › are not in the model's vocabulary." : ""),
      words);
  report.heading("Strongest places");
  std::vector<std::vector<std::string>> rows;
  for (const ShownCaptionWord& word : e.words) rows.push_back(cells_of(e, word));
  std::vector<std::string> head{"word"};
  if (e.gated) head.push_back("gate β");
  head.insert(head.end(), {"row", "column", "weight"});
  report.table(head, rows);
  return report.html();
}

std::string lines(const CaptionExplanation& e, char between) {
  std::string text;
  for (const ShownCaptionWord& word : e.words) {
    std::string line;
    for (const std::string& cell : cells_of(e, word))
      line += (line.empty() ? "" : std::string(1, between)) + cell;
    text += line + "\n";
  }
  return text;
}

}  // namespace

CaptionExplanation explain_caption(const LoadedCaptioner& loaded, std::vector<uint8_t> pixels,
                                   const std::optional<std::string>& caption, int64_t beam) {
  const Tensor features = picture_features(loaded.encoder, {&pixels, 1});
  CaptionExplanation result;
  result.model = loaded.model;
  result.rows = result.columns = loaded.encoder.side();
  result.size = loaded.encoder.size;
  result.pixels = std::move(pixels);
  if (caption) {
    const std::string words = data::caption_words(*caption);
    result.caption = {words, 0, loaded.tokenizer->encode(words)};
    require(!result.caption.tokens.empty(), "--target: got ", in_quotes(*caption),
            ", wanted a caption with words");
  } else {
    result.caption =
        write_captions(loaded, 1, [&](std::span<const size_t>) { return features; }, {.beam = beam})[0][0];
  }
  const std::vector<int32_t>& tokens = result.caption.tokens;
  const models::CaptionBatch batch = caption_batch(features, tokens);
  if (caption) {
    // As a caption that the model writes is scored.
    const NoGrad no_grad;
    nn::Context use;
    const OutputLoss loss = loaded.network->loss(batch, {}, use);
    result.caption.score = -loss.negative_log_likelihood / static_cast<double>(loss.count);
  }
  const models::CaptionModel::Trace trace = loaded.network->trace(batch);
  result.gated = trace.gates.defined();
  const int64_t places = loaded.encoder.places();
  // A caption that the model wrote itself has no other text behind it.
  const TokenLine line =
      token_line(*loaded.tokenizer, tokens,
                 data::texts_of_unknown(*loaded.tokenizer, caption ? result.caption.text : "", tokens));
  for (size_t first = 0, end; first < tokens.size(); first = end) {
    for (end = first + 1; end < tokens.size() && line.word_of[end] == line.word_of[first];) ++end;
    const auto pieces = static_cast<float>(end - first);
    ShownCaptionWord word{line.words[static_cast<size_t>(line.word_of[first])], 1,
                          std::vector<float>(static_cast<size_t>(places))};
    word.unknown =
        std::find(line.unknown.begin(), line.unknown.end(), line.word_of[first]) != line.unknown.end();
    if (result.gated) word.gate = 0;
    for (size_t t = first; t < end; ++t) {
      const float* const row = trace.weights.data() + static_cast<int64_t>(t) * trace.weights.size(1);
      for (size_t i = 0; i < word.weights.size(); ++i) word.weights[i] += row[i] / pieces;
      if (result.gated) word.gate += trace.gates.data()[t] / pieces;
    }
    result.words.push_back(std::move(word));
  }
  return result;
}

OverlayFigure words_figure(const CaptionExplanation& e, bool smooth) {
  OverlayFigure figure{.title = e.caption.text, .panels = {overlay_of(e)}, .across = 5};
  if (has_unknown(e)) figure.note = kUnknownLegend;
  for (const ShownCaptionWord& word : e.words) figure.panels.push_back(overlay_of(e, word, smooth));
  return figure;
}

std::string explain_caption_file(const CaptionExplanation& e, bool smooth,
                                 const std::filesystem::path& path) {
  check_explain_ending(path);
  const std::string ending = path.extension().string();
  if (ending == ".json") return to_json(e).dump() + "\n";
  if (ending == ".html") return page(e, smooth);
  if (ending == ".txt") return lines(e, '\t');
  return draw(words_figure(e, smooth), picture_format(path));
}

std::string explain_caption_text(const CaptionExplanation& e) {
  std::string text = e.caption.text + "\n\nstrongest place of each word on the grid of " +
                     std::to_string(e.rows) + " x " + std::to_string(e.columns) +
                     (e.gated ? ", and its gate β" : "") + "; --out words.png draws them\n";
  for (const ShownCaptionWord& word : e.words) {
    const StrongestPlace place = strongest(e, word);
    text += message(
        "  ", shown(word),
        std::string(std::max<size_t>(16, terminal_width(shown(word)) + 1) - terminal_width(shown(word)), ' '),
        "row ", place.row, ", column ", place.column, ", weight ", weight_text(place.weight, 3),
        e.gated ? ", " + gate_text(e, word) : "", "\n");
  }
  if (has_unknown(e)) text += std::string(kUnknownLegend) + "\n";
  return text;
}

}  // namespace fovea::tasks
