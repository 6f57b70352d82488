#include "tasks/explain_classifier.h"

#include <algorithm>
#include <numeric>

#include "data/text.h"
#include "explain/attention_maps.h"
#include "explain/attention_page.h"
#include "explain/report.h"
#include "nn/attention_pooling.h"
#include "tasks/text_input.h"

namespace fovea::tasks {
namespace {

// Keeps the weights of pooling, and hands the encoder's to a recorder.
class PoolingRecorder : public AttentionObserver {
 public:
  explicit PoolingRecorder(bool with_heads) : with_heads_(with_heads) {}
  Wish wish(const Call& call) override {
    if (call.site.kind != AttentionSite::Kind::pooling) return with_heads_ ? heads.wish(call) : Wish{};
    Wish all{{0}, std::vector<int32_t>(static_cast<size_t>(call.queries))};
    std::iota(all.rows.begin(), all.rows.end(), 0);
    return all;
  }
  void see(const Call& call, const Wish& wish, const Sight& sight) override {
    if (call.site.kind != AttentionSite::Kind::pooling) return heads.see(call, wish, sight);
    const bool of_words = call.site.layer == static_cast<int64_t>(nn::PoolingLevel::words);
    WeightMatrix& matrix = of_words ? words : sentences;
    matrix = WeightMatrix::zeros(call.queries, call.keys);
    std::copy_n(sight.weights.contiguous().data(), matrix.values.size(), matrix.values.begin());
  }
  WeightMatrix words, sentences;  // without rows where the model has none
  AttentionRecorder heads{{AttentionKind::encoder}};

 private:
  bool with_heads_;
};

// Words of one sentence, tokens [begin, end) of all.
WeighedSentence weigh(const data::Tokenizer& tokenizer, std::span<const int32_t> ids, const float* weights) {
  const TokenLine line = token_line(tokenizer, ids);
  WeighedSentence sentence;
  for (const std::string& word : line.words) sentence.words.push_back({word});
  for (size_t i = 0; i < ids.size(); ++i)
    sentence.words[static_cast<size_t>(line.word_of[i])].weight += weights[i];
  return sentence;
}

}  // namespace

ClassifierExplanation explain_classifier(const ClassifierParts& parts, const std::string& text) {
  require(data::is_utf8(text), "the text is not UTF-8");
  require(!data::strip(text).empty(), "the text is empty: nothing to look at");
  bool cut = false;
  const std::vector<int32_t> ids = encode_input(text, *parts.tokenizer, parts.encoding, cut);
  const auto count = static_cast<int64_t>(ids.size());
  data::PackedSentences one;
  one.append(ids);
  PoolingRecorder recorder(count <= kMostExplainedTokens);
  ClassifierExplanation result;
  result.text = text;
  result.cut_to = cut ? count : 0;
  result.labels = parts.labels;
  {
    const ObserveAttention observe(recorder);
    result.prediction = classify_ids(*parts.network, one, count)[0];
  }
  result.record.model = parts.model;
  result.record.source_text = text;
  result.record.source = token_line(*parts.tokenizer, ids);
  result.record.layers = recorder.heads.take();
  result.words.title = told_text(result.prediction, parts.labels);
  if (recorder.words.rows == 0 && !result.record.layers.empty()) {
    const WeightMatrix reached = rollout(result.record, AttentionKind::encoder);
    recorder.words = WeightMatrix::zeros(1, count);
    std::copy_n(reached.values.begin(), count, recorder.words.values.begin());
  }
  require(recorder.words.rows > 0, count > kMostExplainedTokens
                                       ? message("a text of ", count,
                                                 " tokens; attention that is not summed up "
                                                 "can be shown of at most ",
                                                 kMostExplainedTokens)
                                       : message("a model of kind ", in_quotes(parts.model),
                                                 " that keeps only its last state has no attention to show"));
  // Row i of the words is sentence i, whose tokens follow those of the sentence before.
  std::vector<int64_t> lengths{count};
  result.words.sentences_weigh = recorder.sentences.rows > 0;
  if (result.words.sentences_weigh) lengths = data::sentence_lengths(ids, lengths).tokens;
  int64_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const float* row = recorder.words.values.data() + static_cast<int64_t>(i) * count + begin;
    result.words.sentences.push_back(
        weigh(*parts.tokenizer,
              std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(lengths[i])), row));
    if (result.words.sentences_weigh)
      result.words.sentences.back().weight = recorder.sentences.at(0, static_cast<int64_t>(i));
    begin += lengths[i];
  }
  return result;
}

std::string explain_classifier_file(const ClassifierExplanation& e, const ExplainOptions& options,
                                    const std::filesystem::path& path) {
  check_explain_ending(path);
  const std::string ending = path.extension().string();
  if (options.kind && ending != ".json" && ending != ".txt") {
    require(!e.record.layers.empty(), "the model has no heads to show");
    return explain_file(e.record, options, path);
  }
  const auto& told = e.labels[static_cast<size_t>(e.prediction.label)];
  if (ending == ".html") {
    Report report(told, e.record.model);
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < e.labels.size(); ++i)
      rows.push_back({e.labels[i], probability_text(e.prediction.probabilities[i])});
    report.text(e.words);
    report.paragraph(e.words.sentences_weigh
                         ? "The weight of a word in the text is its weight in its sentence times the weight "
                           "of the sentence, which stands before it. Point at a word to read its weight."
                         : "The weights of all words add up to 1. Point at a word to read its weight.");
    if (e.record.model == "lstm" || e.record.model == "han")
      report.paragraph(
          "The network is recurrent: its state at a word also carries the words around it. A weight says "
          "where "
          "the network read, not which word it needed.");
    report.heading("Probabilities");
    report.table({"label", "probability"}, rows);
    return report.html();
  }
  if (ending == ".txt") {
    std::string text;
    for (const WeighedSentence& sentence : e.words.sentences)
      for (const WeighedWord& word : sentence.words)
        text += message(word.text, '\t', sentence.weight * word.weight, '\n');
    return text;
  }
  if (ending != ".json") return draw(e.words, picture_format(path));
  Json json{{"text", e.text}};
  json.update(prediction_json(e.prediction, e.labels));
  json["sentences"] = Json::array();
  for (const WeighedSentence& sentence : e.words.sentences) {
    Json words = Json::array(), weights = Json::array();
    for (const WeighedWord& word : sentence.words) {
      words.push_back(word.text);
      weights.push_back(value_to_json(word.weight));
    }
    json["sentences"].push_back(
        {{"weight", value_to_json(sentence.weight)}, {"words", words}, {"weights", weights}});
  }
  if (!e.record.layers.empty()) json["attention"] = attention_json(e.record);
  return json.dump() + "\n";
}

std::string explain_classifier_text(const ClassifierExplanation& explanation, const ExplainOptions& options,
                                    size_t columns) {
  if (!options.kind) return shade(explanation.words, columns);
  require(!explanation.record.layers.empty(), "the model has no heads to show");
  return explanation.words.title + "\n\n" + explain_text(explanation.record, options, columns);
}

}  // namespace fovea::tasks
