// Records a text classifier's attention for a text and writes it in the requested form.
#include "tasks/explain_classifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/text.h"
#include "data/unknown_texts.h"
#include "explain/attention_maps.h"
#include "explain/attention_page.h"
#include "explain/report.h"
#include "explain/shades.h"
#include "tasks/pooling_recorder.h"
#include "tasks/text_input.h"

namespace fovea::tasks {
namespace {

// Words of one sentence, tokens [begin, end) of all.
WeighedSentence weigh_words(const data::Tokenizer& tokenizer, std::span<const int32_t> ids,
                            std::span<const std::string> written, const float* weights) {
  const TokenLine line = token_line(tokenizer, ids, written);
  WeighedSentence sentence;
  for (const std::string& word : line.words) sentence.words.push_back({word});
  for (const int32_t place : line.unknown) sentence.words[static_cast<size_t>(place)].unknown = true;
  for (size_t i = 0; i < ids.size(); ++i)
    sentence.words[static_cast<size_t>(line.word_of[i])].weight += weights[i];
  return sentence;
}

// One text of a batch: where its tokens begin, and the first of its rows in the matrices of pooled weights.
struct PooledText {
  std::span<const int32_t> ids;
  int64_t token = 0;
  int64_t word_row = 0;                       // of its first sentence, or of itself
  int64_t text_row = 0;                       // of `sentences`
  int64_t first = 0;                          // of a pair: tokens of its first text
  std::span<const std::string> written = {};  // what unknown tokens stand for; empty: does not matter
};

// The words of a text with their weights, and the rows that were used. Texts of a pair that were read apart, and sentences
// where a model has them, stand apart.
TextMap weigh_text(const data::Tokenizer& tokenizer, PooledText& text, const WeightMatrix& words,
                   const WeightMatrix& sentences) {
  TextMap map;
  map.sentences_weigh = sentences.rows > 0;
  const auto count = static_cast<int64_t>(text.ids.size());
  std::vector<int64_t> texts{count};
  if (text.first > 0) texts = {text.first, count - text.first};
  int64_t begin = 0;
  for (const int64_t length : texts) {
    std::vector<int64_t> loaded{length};
    const auto own = text.ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(length));
    if (map.sentences_weigh) loaded = data::sentence_lengths(own, loaded).tokens;
    for (const int64_t part : loaded) {
      const float* row = words.values.data() + text.word_row * words.columns + text.token + begin;
      const auto at = static_cast<size_t>(begin), size = static_cast<size_t>(part);
      map.sentences.push_back(
          weigh_words(tokenizer, text.ids.subspan(at, size),
                      text.written.empty() ? text.written : text.written.subspan(at, size), row));
      if (map.sentences_weigh) map.sentences.back().weight = sentences.at(text.text_row, text.word_row);
      map.sentences.back().text = begin < text.first || text.first == 0 ? 0 : 1;
      ++text.word_row;
      begin += part;
    }
    ++text.text_row;
  }
  return map;
}

// Added tokens in front of a line of tokens, for people. Their names say that they are global.
TokenLine with_added(TokenLine line, int64_t added) {
  if (added == 0) return line;
  TokenLine all;
  for (int64_t i = 0; i < added; ++i) {
    all.tokens.push_back(message("[global ", i + 1, "]"));
    all.words.push_back(all.tokens.back());
    all.word_of.push_back(static_cast<int32_t>(i));
  }
  all.tokens.insert(all.tokens.end(), line.tokens.begin(), line.tokens.end());
  all.words.insert(all.words.end(), line.words.begin(), line.words.end());
  for (const int32_t word : line.unknown) all.unknown.push_back(word + static_cast<int32_t>(added));
  for (const int32_t word : line.word_of) all.word_of.push_back(word + static_cast<int32_t>(added));
  for (const int32_t token : line.global) all.global.push_back(token + static_cast<int32_t>(added));
  return all;
}

// Marks the words of global tokens. places: of tokens of the text.
void mark_global(const data::Tokenizer& tokenizer, std::span<const int32_t> ids,
                 std::span<const int64_t> places, TextMap& map) {
  if (places.empty()) return;
  std::vector<WeighedWord*> words;
  for (WeighedSentence& sentence : map.sentences)
    for (WeighedWord& word : sentence.words) words.push_back(&word);
  const TokenLine line = token_line(tokenizer, ids);
  if (line.words.size() != words.size()) return;  // words were split at a sentence boundary
  for (const int64_t place : places)
    words[static_cast<size_t>(line.word_of[static_cast<size_t>(place)])]->global = true;
}

// Counts the layers of an encoder besides.
class CountingRecorder : public PoolingRecorder {
 public:
  using PoolingRecorder::PoolingRecorder;
  Capture capture(const Call& call) override {
    if (call.site.kind == AttentionSite::Kind::self) layers = std::max(layers, call.site.layer + 1);
    return PoolingRecorder::capture(call);
  }
  int64_t layers = 0;
};

// Hands some rows of one layer of an encoder to a rollout.
class LayerRows : public AttentionObserver {
 public:
  LayerRows(RolloutRow& reached, int64_t layer, int64_t most_weights)
      : reached_(reached), layer_(layer), most_weights_(most_weights), left_(reached.rows()) {}
  // Rows that are left for another pass of the model.
  size_t left() const { return left_.size(); }

  Capture capture(const Call& call) override {
    if (call.site.kind != AttentionSite::Kind::self || call.site.layer != layer_) return {};
    const auto fit = static_cast<size_t>(std::max<int64_t>(1, most_weights_ / (call.heads * call.keys)));
    const auto end = left_.begin() + static_cast<ptrdiff_t>(std::min(fit, left_.size()));
    Capture some{std::vector<int32_t>(static_cast<size_t>(call.heads)), {left_.begin(), end}};
    std::iota(some.heads.begin(), some.heads.end(), 0);
    left_.erase(left_.begin(), end);
    return some;
  }
  void observe(const Call&, const Capture& capture, const Captured& captured) override {
    const Tensor weights = captured.weights.contiguous();
    reached_.add(capture.rows, weights.span());
  }

 private:
  RolloutRow& reached_;
  int64_t layer_, most_weights_;
  std::vector<int32_t> left_;
};

// The same as rollout_row() for a text whose layers do not fit in memory: runs the model again for each layer, from the
// last to the first.
std::vector<float> rollout_by_passes(const models::ClassificationModel& network,
                                     const data::EncodedTexts& text, int64_t layers, RolloutRow reached,
                                     int64_t most_weights) {
  for (int64_t layer = layers - 1; layer >= 0; --layer) {
    LayerRows rows(reached, layer, most_weights);
    const ObserveAttention observe(rows);
    while (const size_t left = rows.left()) {
      classify_ids(network, text, text.length(0));
      FOVEA_ASSERT(rows.left() < left);
    }
    reached.end_layer();
  }
  return reached.shares();
}

// Says what marks do not show of global tokens. has_own: some of the text's own tokens are global.
void note_global(const LoadedClassifier& loaded, ClassifierExplanation& e, bool has_own) {
  if (e.added > 0)
    e.words.notes.push_back(message("in front of the text, not shown: ", e.added, " learned global ",
                                    e.added == 1 ? "token, which sees and is" : "tokens, which see and are",
                                    " seen by all of it"));
  if (!e.global.empty()) e.record.notes.emplace_back(kGlobalLegend);
  // Of a long text of BigBird the first and the last block are always global.
  if (!loaded.config.is_object() || loaded.config.value("model_type", "") != "big_bird" || has_own) return;
  std::string why = "every token sees the whole text, so that none of the text is marked as global: ";
  if (loaded.config.value("attention_type", "") == "original_full") {
    why += "the model's attention_type is original_full";
  } else {
    const auto block = loaded.config.value("block_size", int64_t{0}),
               random = loaded.config.value("num_random_blocks", int64_t{0});
    why += message("BigBird's attention is sparse from ", (5 + 2 * random) * block + 1, " tokens on");
  }
  e.words.notes.push_back(why);
  e.record.notes.push_back(why);
}

std::string as_sentence(std::string note) {
  if (!note.empty() && note[0] >= 'a' && note[0] <= 'z') note[0] = static_cast<char>(note[0] - 'a' + 'A');
  return note + ".";
}

// What the page says of the sum of the weights of words: nothing where the selection, or tokens that are not shown, make
// it another one than 1.
std::string sum_sentence(const TextMap& map) {
  double sums[2] = {};
  for (const WeighedSentence& sentence : map.sentences)
    for (const WeighedWord& word : sentence.words)
      sums[sentence.text] += double{sentence.weight} * double{word.weight};
  const auto is_one = [](double sum) { return std::abs(sum - 1) < 1e-3; };
  if (!is_one(sums[0]) || (map.has_two_texts() && !is_one(sums[1]))) return "";
  return map.has_two_texts() ? "The weights of the words of each text add up to 1. "
                             : "The weights of all words add up to 1. ";
}

// Throws Error where there are no heads to draw.
void check_heads(const ClassifierExplanation& e) {
  const auto tokens = static_cast<int64_t>(e.record.source.tokens.size());
  require(!e.record.layers.empty(),
          e.has_layers
              ? message("a text of ", tokens, " tokens; maps of layers and heads can be shown of at most ",
                        kMostExplainedTokens, ": leave --kind out to see the weights of words")
              : "the model has no heads to show");
}

}  // namespace

double words_carrying_90_percent(const TextMap& words) {
  std::vector<double> sizes;
  double total = 0;
  for (const WeighedSentence& sentence : words.sentences)
    for (const WeighedWord& word : sentence.words) {
      sizes.push_back(std::abs(double{sentence.weight} * word.weight));
      total += sizes.back();
    }
  if (sizes.empty()) return 0;
  std::sort(sizes.rbegin(), sizes.rend());
  size_t used = 0;
  for (double sum = 0; used < sizes.size() && sum < 0.9 * total; ++used) sum += sizes[used];
  return static_cast<double>(used) / static_cast<double>(sizes.size());
}

WeighedPredictions classify_weighed(const LoadedClassifier& loaded, const data::EncodedTexts& texts,
                                    int64_t batch_tokens) {
  PoolingRecorder recorder(false);
  const ObserveAttention observe(recorder);
  double sum = 0;
  int64_t weighed = 0;
  WeighedPredictions result;
  result.predictions = classify_ids(*loaded.network, texts, batch_tokens, [&](const data::TextBatch& batch) {
    if (recorder.words.rows == 0) return;
    // A Transformer reads a pair as one text.
    const bool apart = recorder.sentences.rows > 0
                           ? recorder.sentences.rows > static_cast<int64_t>(batch.lengths.size())
                           : recorder.words.rows > static_cast<int64_t>(batch.lengths.size());
    PooledText text;
    for (size_t i = 0; i < batch.lengths.size(); ++i) {
      text.ids = std::span(batch.tokens)
                     .subspan(static_cast<size_t>(text.token), static_cast<size_t>(batch.lengths[i]));
      text.first = apart ? batch.firsts[i] : 0;
      sum +=
          words_carrying_90_percent(weigh_text(*loaded.tokenizer, text, recorder.words, recorder.sentences));
      text.token += batch.lengths[i];
      ++weighed;
    }
    recorder.words = recorder.sentences = {};
  });
  if (weighed > 0) result.words_for_90 = sum / static_cast<double>(weighed);
  return result;
}

ClassifierExplanation explain_classifier(const LoadedClassifier& loaded, const std::string& text,
                                         const ExplainLimits& limits) {
  require(data::is_utf8(text), "the text is not UTF-8");
  require(!data::strip(text).empty(), "the text is empty: nothing to explain");
  bool cut = false;
  const data::EncodedText encoded = encode_input(text, *loaded.tokenizer, loaded.encoding, cut);
  const std::vector<int32_t>& ids = encoded.ids;
  const auto count = static_cast<int64_t>(ids.size());
  data::EncodedTexts one;
  one.append(encoded);
  CountingRecorder recorder(count <= limits.tokens);
  ClassifierExplanation result;
  result.text = text;
  result.cut_to = cut ? count : 0;
  result.labels = loaded.labels;
  {
    const ObserveAttention observe(recorder);
    result.prediction = classify_ids(*loaded.network, one, count)[0];
  }
  const models::ClassificationModel::TextView view = loaded.network->view(ids);
  result.added = view.added;
  for (int64_t i = 0; i < view.added; ++i) result.global.push_back(i);
  for (const int64_t place : view.global) result.global.push_back(view.added + place);
  result.record.model = loaded.model;
  result.record.source_text = text;
  const std::vector<std::string> written =
      data::texts_of_unknown(text, *loaded.tokenizer, loaded.encoding, encoded);
  TokenLine line = token_line(*loaded.tokenizer, ids, written);
  line.global.assign(view.global.begin(), view.global.end());
  result.record.source = with_added(std::move(line), view.added);
  result.record.layers = recorder.heads.take();
  result.has_layers = recorder.layers > 0;
  if (recorder.words.rows == 0 && result.has_layers) {
    // What reaches the token that is read through all layers, of the text's own tokens.
    const int64_t row = view.reads_last ? view.added + count - 1 : view.added;
    const std::vector<float> all =
        result.record.layers.empty()
            ? rollout_by_passes(*loaded.network, one, recorder.layers, RolloutRow(view.added + count, row),
                                limits.rollout_weights)
            : rollout_row(result.record, AttentionKind::encoder, row);
    recorder.words = {1, count, {all.begin() + view.added, all.end()}};
  }
  require(recorder.words.rows > 0, "a model of kind ", in_quotes(loaded.model),
          " that keeps only its last state has no attention to show");
  PooledText whole{.ids = ids, .written = written};
  // LSTM and HAN read the texts of a pair apart.
  const int64_t texts_read = recorder.sentences.rows > 0 ? recorder.sentences.rows : recorder.words.rows;
  if (texts_read > 1) whole.first = encoded.first;
  result.words = weigh_text(*loaded.tokenizer, whole, recorder.words, recorder.sentences);
  result.words.title = prediction_text(result.prediction, loaded.labels);
  result.words_for_90 = words_carrying_90_percent(result.words);
  mark_global(*loaded.tokenizer, ids, view.global, result.words);
  note_global(loaded, result, !view.global.empty());
  return result;
}

std::string explain_classifier_file(const ClassifierExplanation& e, const ExplainOptions& options,
                                    const std::filesystem::path& path) {
  check_explain_ending(path);
  const std::string ending = path.extension().string();
  if (options.kind && ending != ".json" && ending != ".txt") {
    check_heads(e);
    return explain_file(e.record, options, path);
  }
  if (ending == ".html") {
    const bool one_label = e.prediction.form == data::LabelForm::one;
    Report report(one_label ? e.labels[static_cast<size_t>(e.prediction.label)] : e.words.title,
                  e.record.model);
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < e.labels.size(); ++i)
      rows.push_back({e.labels[i], probability_text(e.prediction.probabilities[i])});
    report.text(e.words);
    report.paragraph(e.words.sentences_weigh
                         ? "The weight of a word in the text is its weight in its sentence times the weight "
                           "of the sentence, which is shown before it. Point at a word to read its weight."
                         : sum_sentence(e.words) + "Point at a word to read its weight.");
    if (e.record.model == "lstm" || e.record.model == "han")
      report.paragraph(
          "The network is recurrent: its state at a word also carries the words around it. A weight says "
          "where "
          "the network read, not which word it needed.");
    if (e.words.has_unknown())
      report.paragraph("Words in ‹ › are not in the model's vocabulary: the model read an unknown token.");
    if (e.words.has_global())
      report.paragraph("Words in a frame are global tokens: they see and are seen by the whole text.");
    for (const std::string& note : e.words.notes) report.paragraph(as_sentence(note));
    if (!rows.empty()) {
      report.heading("Probabilities");
      report.table({"label", "probability"}, rows);
    }
    return report.html();
  }
  if (ending == ".txt") {
    std::string text;
    for (const WeighedSentence& sentence : e.words.sentences)
      for (const WeighedWord& word : sentence.words)
        text += message(word.text, '\t', sentence.weight * word.weight, word.unknown ? "\tunknown\n" : "\n");
    return text;
  }
  if (ending != ".json") return draw(e.words, picture_format(path));
  Json json{{"text", e.text}};
  json.update(prediction_json(e.prediction, e.labels));
  json["words_for_90_percent"] = e.words_for_90;
  if (!e.global.empty()) json["global"] = e.global;
  if (e.added > 0) json["added_global"] = e.added;
  json["sentences"] = Json::array();
  for (const WeighedSentence& sentence : e.words.sentences) {
    Json words = Json::array(), weights = Json::array(), unknown = Json::array();
    for (const WeighedWord& word : sentence.words) {
      if (word.unknown) unknown.push_back(words.size());
      words.push_back(word.text);
      weights.push_back(value_to_json(word.weight));
    }
    json["sentences"].push_back(
        {{"weight", value_to_json(sentence.weight)}, {"words", words}, {"weights", weights}});
    if (e.words.has_two_texts()) json["sentences"].back()["text"] = sentence.text;
    if (!unknown.empty()) json["sentences"].back()["unknown"] = std::move(unknown);
  }
  if (!e.record.layers.empty()) json["attention"] = attention_json(e.record);
  return json.dump() + "\n";
}

std::string explain_classifier_text(const ClassifierExplanation& explanation, const ExplainOptions& options,
                                    size_t columns) {
  if (!options.kind) return shade(explanation.words, columns);
  check_heads(explanation);
  return explanation.words.title + "\n\n" + explain_text(explanation.record, options, columns);
}

}  // namespace fovea::tasks
