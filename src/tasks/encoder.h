// Reading with an encoder of the BERT family: texts to vectors, and words for masked places. From a Hugging
// Face or sentence-transformers folder, as it is.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "data/marked_tokenizer.h"
#include "data/sentence_modules.h"
#include "models/bert.h"

namespace fovea::tasks {

// A dense layer behind the pooling of a sentence-transformers folder.
struct DenseLayer {
  Var weight, bias;  // [out, in] and [out]; the bias is undefined where there is none
  bool tanh = false;
};

// A model with its tokenizer. Several threads may use one that was opened for use at once, as long as none changes it.
struct LoadedEncoder {
  std::string folder;  // for messages
  std::unique_ptr<models::Bert> network;
  std::shared_ptr<const data::MarkedTokenizer> tokenizer;
  data::SentenceModules modules;       // max_tokens is set: the most that the model can read, or fewer
  std::vector<DenseLayer> dense;       // of modules.dense
  std::vector<std::string> fresh;      // parameters that the folder lacks
  Compute compute = Compute::float32;  // what the network is to be prepared for
};

// heads: as models::load_bert() has them. Throws Error naming the file when something is missing, damaged or does not
// fit.
LoadedEncoder load_encoder(const std::filesystem::path& folder,
                           const std::optional<models::BertHeads>& heads = {});
// The same for use alone, with the weights in memory once. compute: "float32" or "int8".
LoadedEncoder open_encoder(const std::filesystem::path& folder, const std::optional<models::BertHeads>& heads,
                           const std::string& compute);

// Longformer and BigBird: the global tokens that the folder's config names, where it names any.
void take_global(models::Bert& network, const data::Tokenizer& tokenizer);

struct EmbedOptions {
  std::string pooling = "";    // empty: as the folder says, or mean
  std::string normalize = "";  // "yes" or "no"; empty: as the folder says, or no
  int64_t max_tokens = 0;
  int64_t batch_tokens = 2048;
  bool tokens = false;
  int64_t chunks = 0;

  static constexpr auto fields() {
    using T = EmbedOptions;
    return std::tuple{
        Field{
            "pooling", &T::pooling,
            "how the states of all tokens become one vector: mean, cls (the state of the first token) or max "
            "(default: as the folder says, or mean)"},
        Field{"normalize", &T::normalize,
              "scale vectors to length 1: yes or no (default: as the folder says, or no)"},
        Field{
            "max_tokens", &T::max_tokens,
            "maximum number of tokens read from a text, including [CLS] and [SEP]; longer texts are cut, and a "
            "notice on standard error says so; 0: as many as the folder says"},
        Field{"batch_tokens", &T::batch_tokens,
              "tokens read at once; changes speed and memory, not the result"},
        Field{"tokens", &T::tokens,
              "print a vector for each token, with its place in characters, instead of one for the text; "
              "[CLS] and [SEP] are left out"},
        Field{
            "chunks", &T::chunks,
            "print a vector for each part of this many tokens, with its place in characters; the whole text is read in "
            "one pass (late chunking); 0: one vector for the text"}};
  }
};

// A token or a part of a text and its vector.
struct EmbeddedSpan {
  std::string token = {};      // as the vocabulary spells it; empty for a part
  int64_t begin = 0, end = 0;  // characters of the text, counted from 0
  std::vector<float> vector = {};
};

struct Embeddings {
  Tensor rows;               // [lines, width]
  std::vector<uint8_t> cut;  // [lines]: whether a line was longer than max_tokens
};

// Its const members may be called by several threads at once.
class Embedder {
 public:
  // The parts must outlive this object. Throws Error on options that make no sense.
  Embedder(const LoadedEncoder& loaded, const EmbedOptions& options);

  // A line's vector does not depend on the other lines. An empty line has one too.
  Embeddings embed(std::span<const std::string> lines) const;
  // The same of tokens or parts, as the options say. An empty line has none.
  struct SpanEmbeddings {
    std::vector<std::vector<EmbeddedSpan>> lines;
    std::vector<uint8_t> cut;
  };
  SpanEmbeddings embed_spans(std::span<const std::string> lines) const;
  bool of_spans() const { return tokens_ || chunk_ > 0; }
  bool of_tokens() const { return tokens_; }
  // Features of a vector: those of the model, or of the dense layers that the folder has behind its pooling. A token's
  // vector is always the model's.
  int64_t width() const;
  int64_t max_tokens() const { return max_tokens_; }

 private:
  struct EncodedLine {
    std::vector<data::TokenSpan> spans;  // of the tokens that are read; filled where spans are requested
    std::vector<int32_t> ids;            // with their marks
    bool cut = false;
  };
  EncodedLine encode(const std::string& line) const;
  // Calls use(line, states) for each line, in batches of similar length.
  void for_each_line(std::span<const EncodedLine> lines,
                     const std::function<void(size_t line, const float* states)>& use) const;
  std::vector<EmbeddedSpan> spans_of(const EncodedLine& line, const float* states) const;
  // row: [width()].
  void pool(const float* states, int64_t tokens, float* row) const;

  std::shared_ptr<const data::MarkedTokenizer> tokenizer_;
  data::SentenceModules modules_;
  int64_t max_tokens_, batch_tokens_;
  bool tokens_;
  int64_t chunk_;
  const models::Bert& network_;
  std::span<const DenseLayer> dense_;
  nn::Prepared prepared_;
};

struct MaskCandidate {
  int32_t token = 0;
  std::string text;  // as the vocabulary spells it
  double probability = 0;
};

// fill() may be called by several threads at once.
class MaskFiller {
 public:
  // The parts must outlive this object. Throws Error when the folder has no head for masked tokens.
  explicit MaskFiller(const LoadedEncoder& loaded);

  // For each masked place of the text its `top` best tokens, best first. Throws Error on a text without one,
  // or longer than the model can read.
  std::vector<std::vector<MaskCandidate>> fill(const std::string& text, int64_t top) const;

 private:
  std::shared_ptr<const data::MarkedTokenizer> tokenizer_;
  int64_t max_tokens_;
  const models::Bert& network_;
  nn::Prepared prepared_;
};

// The head that MaskFiller needs from load_encoder(): the masked-token head.
inline constexpr models::BertHeads kMaskedHead{.masked_lm = true};

}  // namespace fovea::tasks
