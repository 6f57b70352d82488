// Attention of one pass of a model that reads one sentence and writes another: the weights of every layer and head.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/attention.h"
#include "data/tokenizer.h"

namespace fovea {

// Who looks at what: the source at itself, the translation at what is written of it, the translation at the
// source.
enum class AttentionKind { encoder, decoder, cross };
inline constexpr std::array kAttentionKinds = {AttentionKind::encoder, AttentionKind::decoder,
                                               AttentionKind::cross};
std::string_view kind_name(AttentionKind kind);
// Throws Error naming the kinds there are.
AttentionKind parse_kind(std::string_view name);

// values: [rows, columns]. A row looks, a column is looked at.
struct WeightMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> values = {};

  static WeightMatrix zeros(int64_t rows, int64_t columns);
  static WeightMatrix identity(int64_t size);
  float& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  float at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }
};

// A sentence as the model has it, <s> and </s> included, and as people read it.
struct TokenLine {
  std::vector<std::string> tokens;  // "▁foo", "d"
  std::vector<std::string> words;   // "food"
  std::vector<int32_t> word_of;     // for each token its place in `words`
  // Places in `words` of those that the vocabulary lacks: the model read the unknown token there.
  std::vector<int32_t> unknown = {};
  // Places in `tokens` of those that see and are seen by the whole text: maps show them in brackets.
  std::vector<int32_t> global = {};
};
// written: for each token that is unknown the text it stands for (data/unknown_texts.h), which then is the word; empty:
// the words of unknown tokens are their names, such as "<unk>".
TokenLine token_line(const data::Tokenizer& tokenizer, std::span<const int32_t> ids,
                     std::span<const std::string> written = {});

// The words of a line, those that are unknown and those of global tokens in marks (explain/shades.h).
std::vector<std::string> shown_words(const TokenLine& line);
std::vector<std::string> shown_tokens(const TokenLine& line);

struct AttentionLayer {
  AttentionKind kind = AttentionKind::cross;
  int64_t layer = 0;
  std::vector<WeightMatrix> heads;
};

struct AttentionRecord {
  std::string model;                     // its name in the registry
  std::string source_text, target_text;  // as people read them
  bool target_given = false;             // by the user; otherwise the model's own translation
  TokenLine source;                      // ends with </s>
  TokenLine target;                      // written, ends with </s>
  TokenLine fed;  // begins with <s>: what the decoder was fed as it wrote `target`, token by token
  std::vector<AttentionLayer> layers;   // by kind, then by number
  std::vector<std::string> notes = {};  // said below every map

  // The sentences at the sides of a kind's matrices. A decoder's row is named after the token it writes.
  const TokenLine& rows(AttentionKind kind) const;
  const TokenLine& columns(AttentionKind kind) const;
  std::vector<const AttentionLayer*> layers_of(AttentionKind kind) const;
};

// Collects the attention of one sentence pair: self-attention, cross attention and the alignment of recurrent
// decoders, by the site of each call. Calls of one site are rows of one matrix, so a decoder may ask step by step
// or all at once.
class AttentionRecorder : public AttentionObserver {
 public:
  // Only calls of these kinds cost anything.
  explicit AttentionRecorder(std::vector<AttentionKind> kinds = {kAttentionKinds.begin(),
                                                                 kAttentionKinds.end()})
      : kinds_(std::move(kinds)) {}
  Capture capture(const Call& call) override;
  void observe(const Call& call, const Capture& capture, const Captured& captured) override;
  // What was seen, sorted.
  std::vector<AttentionLayer> take();

 private:
  std::vector<AttentionKind> kinds_;
  std::vector<AttentionLayer> layers_;
};

}  // namespace fovea
