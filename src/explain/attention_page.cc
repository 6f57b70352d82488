#include "explain/attention_page.h"

#include <cmath>

#include "base/stop_check.h"
#include "explain/attention_maps.h"

namespace fovea {

extern const std::string_view kPageHtml;  // made of page.html

namespace {

// Enough for a shade and a number on hover; a file of every head stays small.
constexpr int kPageDecimals = 4;

Json line_json(const TokenLine& line) {
  Json json{{"tokens", line.tokens}, {"words", line.words}, {"word_of", line.word_of}};
  if (!line.unknown.empty()) json["unknown"] = line.unknown;
  if (!line.global.empty()) json["global"] = line.global;
  return json;
}

Json matrix_json(const WeightMatrix& matrix, int decimals) {
  const double scale = std::pow(10.0, decimals);
  Json rows = Json::array();
  for (int64_t i = 0; i < matrix.rows; ++i) {
    check_stop();  // every head of a long sentence takes seconds
    Json row = Json::array();
    for (int64_t j = 0; j < matrix.columns; ++j) {
      const float weight = matrix.at(i, j);
      row.push_back(decimals > 0 ? Json(std::round(double{weight} * scale) / scale) : value_to_json(weight));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

// In a JSON text these stand only inside strings, where an escape means the same: no text can then end the
// element that carries it.
std::string json_for_html(const Json& json) {
  std::string text = json.dump();
  replace_all(text, "<", "\\u003c");
  replace_all(text, ">", "\\u003e");
  replace_all(text, "&", "\\u0026");
  return text;
}

std::string text_for_html(std::string text) {
  replace_all(text, "&", "&amp;");
  replace_all(text, "<", "&lt;");
  replace_all(text, ">", "&gt;");
  return text;
}

}  // namespace

Json attention_json(const AttentionRecord& record, int decimals) {
  Json source = line_json(record.source), target = line_json(record.target);
  source["text"] = record.source_text;
  target["text"] = record.target_text;
  target["given"] = record.target_given;
  Json kinds = Json::array();
  for (const AttentionKind kind : kAttentionKinds) {
    const auto layers = record.layers_of(kind);
    if (layers.empty()) continue;
    Json list = Json::array();
    for (const AttentionLayer* layer : layers) {
      Json heads = Json::array();
      for (const WeightMatrix& head : layer->heads) heads.push_back(matrix_json(head, decimals));
      list.push_back({{"layer", layer->layer},
                      {"heads", std::move(heads)},
                      {"average", matrix_json(head_average(*layer), decimals)}});
    }
    Json one{{"kind", kind_name(kind)},
             {"rows", kind == AttentionKind::encoder ? "source" : "target"},
             {"columns", kind == AttentionKind::decoder ? "fed" : "source"},
             {"layers", std::move(list)}};
    if (has_rollout(record, kind)) one["rollout"] = matrix_json(rollout(record, kind), decimals);
    if (kind == AttentionKind::cross) one["alignment_layer"] = alignment_layer(record);
    kinds.push_back(std::move(one));
  }
  Json json{{"format", "fovea attention 1"}, {"model", record.model},        {"source", std::move(source)},
            {"target", std::move(target)},   {"fed", line_json(record.fed)}, {"kinds", std::move(kinds)}};
  if (!record.notes.empty()) json["notes"] = record.notes;
  return json;
}

std::string attention_page(std::span<const AttentionRecord> records, const std::string& title) {
  Json list = Json::array();
  for (const AttentionRecord& record : records) list.push_back(attention_json(record, kPageDecimals));
  // Cut the template once: what is put in is never looked through for marks.
  constexpr std::string_view kTitleMark = "FOVEA_TITLE", kDataMark = "FOVEA_DATA";
  const size_t title_at = kPageHtml.find(kTitleMark), data_at = kPageHtml.find(kDataMark);
  FOVEA_ASSERT(title_at < data_at && data_at != std::string_view::npos);
  std::string page(kPageHtml.substr(0, title_at));
  page += text_for_html(title);
  page += kPageHtml.substr(title_at + kTitleMark.size(), data_at - title_at - kTitleMark.size());
  page += json_for_html({{"title", title}, {"records", std::move(list)}});
  page += kPageHtml.substr(data_at + kDataMark.size());
  return page;
}

}  // namespace fovea
