// Turns tokens into lines of words that people read, and collects the weights of attention calls as they are observed.
#include "explain/attention_record.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "explain/shades.h"

namespace fovea {
namespace {

struct Place {
  AttentionKind kind;
  int64_t layer;
};

// Nothing for calls that belong to neither an encoder nor a decoder.
std::optional<Place> place_of(const AttentionSite& site) {
  switch (site.kind) {
    case AttentionSite::Kind::self:
      return Place{site.decoder ? AttentionKind::decoder : AttentionKind::encoder, site.layer};
    case AttentionSite::Kind::cross:
    case AttentionSite::Kind::alignment:
      return Place{AttentionKind::cross, site.layer};
    case AttentionSite::Kind::pooling:
    case AttentionSite::Kind::gate:
    case AttentionSite::Kind::other:
      return {};
  }
  return {};
}

// Puts what was written in place of each name of the unknown token in a word. Whether there was any.
bool put_written(const data::Tokenizer& tokenizer, std::span<const std::string> written, std::string& word) {
  bool any = false;
  size_t at = 0;
  for (const std::string& text : written) {
    if (text.empty()) continue;
    const std::string name = tokenizer.piece(tokenizer.unknown_id());
    at = word.find(name, at);
    if (at == std::string::npos) break;
    word.replace(at, name.size(), text);
    at += text.size();
    any = true;
  }
  return any;
}

}  // namespace

std::string_view kind_name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::encoder:
      return "encoder";
    case AttentionKind::decoder:
      return "decoder";
    case AttentionKind::cross:
      return "cross";
  }
  return "";
}

AttentionKind parse_kind(std::string_view name) {
  for (const AttentionKind kind : kAttentionKinds)
    if (kind_name(kind) == name) return kind;
  fail("kind: got '", name, "', wanted encoder, decoder or cross");
}

WeightMatrix WeightMatrix::zeros(int64_t rows, int64_t columns) {
  return {rows, columns, std::vector<float>(static_cast<size_t>(rows * columns))};
}

WeightMatrix WeightMatrix::identity(int64_t size) {
  WeightMatrix matrix = zeros(size, size);
  for (int64_t i = 0; i < size; ++i) matrix.at(i, i) = 1;
  return matrix;
}

TokenLine token_line(const data::Tokenizer& tokenizer, std::span<const int32_t> ids,
                     std::span<const std::string> written) {
  FOVEA_ASSERT(written.empty() || written.size() == ids.size());
  TokenLine line;
  for (const int32_t id : ids) line.tokens.push_back(tokenizer.piece(id));
  line.word_of = tokenizer.words(ids);
  for (size_t begin = 0, end; begin < ids.size(); begin = end) {
    end = begin + 1;
    while (end < ids.size() && line.word_of[end] == line.word_of[begin]) ++end;
    std::string word = tokenizer.is_special(ids[begin]) ? line.tokens[begin]
                                                        : tokenizer.decode(ids.subspan(begin, end - begin));
    line.words.push_back(word.empty() ? line.tokens[begin] : std::move(word));
    if (!written.empty() && put_written(tokenizer, written.subspan(begin, end - begin), line.words.back()))
      line.unknown.push_back(static_cast<int32_t>(line.words.size()) - 1);
  }
  return line;
}

std::vector<std::string> shown_words(const TokenLine& line) {
  std::vector<std::string> words = line.words;
  for (const int32_t place : line.unknown) {
    std::string& word = words[static_cast<size_t>(place)];
    word = marked_unknown(word);
  }
  int32_t last = -1;  // several tokens of a word may be global
  for (const int32_t token : line.global) {
    const int32_t place = line.word_of[static_cast<size_t>(token)];
    if (place == last) continue;
    last = place;
    std::string& word = words[static_cast<size_t>(place)];
    word = marked_global(word);
  }
  return words;
}

std::vector<std::string> shown_tokens(const TokenLine& line) {
  std::vector<std::string> tokens = line.tokens;
  for (const int32_t place : line.global) {
    std::string& token = tokens[static_cast<size_t>(place)];
    token = marked_global(token);
  }
  return tokens;
}

const TokenLine& AttentionRecord::rows(AttentionKind kind) const {
  return kind == AttentionKind::encoder ? source : target;
}

const TokenLine& AttentionRecord::columns(AttentionKind kind) const {
  return kind == AttentionKind::decoder ? fed : source;
}

std::vector<const AttentionLayer*> AttentionRecord::layers_of(AttentionKind kind) const {
  std::vector<const AttentionLayer*> found;
  for (const AttentionLayer& layer : layers)
    if (layer.kind == kind) found.push_back(&layer);
  return found;
}

AttentionObserver::Capture AttentionRecorder::capture(const Call& call) {
  const auto place = place_of(call.site);
  if (!place || std::find(kinds_.begin(), kinds_.end(), place->kind) == kinds_.end()) return {};
  Capture all{std::vector<int32_t>(static_cast<size_t>(call.heads)),
              std::vector<int32_t>(static_cast<size_t>(call.queries))};
  std::iota(all.heads.begin(), all.heads.end(), 0);
  std::iota(all.rows.begin(), all.rows.end(), 0);
  return all;
}

void AttentionRecorder::observe(const Call& call, const Capture&, const Captured& captured) {
  require(call.batch == 1, "attention can be recorded for one text at a time, got a batch of ", call.batch);
  const Place place = *place_of(call.site);
  auto layer = std::find_if(layers_.begin(), layers_.end(), [&](const AttentionLayer& seen) {
    return seen.kind == place.kind && seen.layer == place.layer;
  });
  if (layer == layers_.end()) {
    layers_.push_back({place.kind, place.layer,
                       std::vector<WeightMatrix>(static_cast<size_t>(call.heads), {0, call.keys, {}})});
    layer = layers_.end() - 1;
  }
  const Tensor weights = captured.weights.contiguous();
  const int64_t size = call.queries * call.keys;
  for (int64_t h = 0; h < call.heads; ++h) {
    WeightMatrix& head = layer->heads[static_cast<size_t>(h)];
    FOVEA_ASSERT(head.columns == call.keys);
    head.rows += call.queries;
    head.values.insert(head.values.end(), weights.data() + h * size, weights.data() + (h + 1) * size);
  }
}

std::vector<AttentionLayer> AttentionRecorder::take() {
  std::sort(layers_.begin(), layers_.end(), [](const AttentionLayer& a, const AttentionLayer& b) {
    return std::tie(a.kind, a.layer) < std::tie(b.kind, b.layer);
  });
  return std::move(layers_);
}

}  // namespace fovea
