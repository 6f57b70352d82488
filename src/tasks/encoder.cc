// Opens encoders of the BERT family, computes embeddings of texts and spans, and fills masked words.
#include "tasks/encoder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops.h"
#include "base/stop_check.h"
#include "data/encoder_tokenizer.h"
#include "data/text.h"
#include "infer/length_batches.h"
#include "io/file.h"
#include "io/json.h"
#include "io/weight_folder.h"
#include "models/bert_folder.h"

namespace fovea::tasks {
namespace {

const LoadedEncoder& with_masked_head(const LoadedEncoder& loaded) {
  const bool made = std::any_of(loaded.fresh.begin(), loaded.fresh.end(),
                                [](const std::string& name) { return name.starts_with("masked_lm."); });
  require(loaded.network->masked_lm != nullptr && !made, loaded.folder,
          ": the model was saved without its head for masked tokens; wanted a folder such as "
          "BertForMaskedLM");
  require(loaded.tokenizer->marks().mask >= 0, loaded.folder,
          ": the vocabulary has no token for masked places");
  return loaded;
}

bool yes_or(const std::string& word, bool otherwise) {
  require(word.empty() || word == "yes" || word == "no", "normalize: got ", in_quotes(word),
          ", wanted yes or no");
  return word.empty() ? otherwise : word == "yes";
}

// The best `top` of a row of logits, with their share of all.
std::vector<MaskCandidate> best_of(std::span<const float> logits, int64_t top,
                                   const data::Tokenizer& tokenizer) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  // A model may have more rows than its vocabulary has tokens; such a row is no word.
  std::vector<int32_t> order(std::min(logits.size(), static_cast<size_t>(tokenizer.size())));
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min<int64_t>(top, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::vector<MaskCandidate> best;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t id = order[static_cast<size_t>(i)];
    const double logit = logits[static_cast<size_t>(id)];
    best.push_back({id, tokenizer.piece(id), std::exp(logit - largest) / sum});
  }
  return best;
}

}  // namespace

void take_global(models::Bert& network, const data::Tokenizer& tokenizer) {
  const std::string own = network.config().global_tokens;
  if (!own.empty()) network.choose_global(own, tokenizer);
}

namespace {

// The dense layers of a folder whose model has vectors of `width` features.
std::vector<DenseLayer> load_dense(std::span<const data::DenseModule> modules, int64_t width) {
  std::vector<DenseLayer> layers;
  for (const data::DenseModule& module : modules) {
    require(module.in == width, (module.folder / "config.json").string(), ": in_features is ", module.in,
            ", but the vectors that it gets have ", width, " features");
    width = module.out;
    const WeightFolder weights(module.folder);
    const auto take = [&](const char* name, const Shape& wanted) {
      require(weights.contains(name), weights.where(), ": no tensor ", in_quotes(name));
      const Shape& got = weights.entry(name).shape;
      require(got == wanted, weights.where(), ": ", in_quotes(name), " has shape ", got,
              ", but config.json says ", wanted);
      return Var(weights.tensor(name));
    };
    DenseLayer& layer = layers.emplace_back();
    layer.tanh = module.tanh;
    layer.weight = take("linear.weight", {module.out, module.in});
    if (module.bias) layer.bias = take("linear.bias", {module.out});
  }
  return layers;
}

LoadedEncoder load(const std::filesystem::path& folder, const std::optional<models::BertHeads>& heads,
                   std::optional<Compute> use) {
  require(is_folder(folder), "model folder ", in_quotes(folder.string()), " does not exist");
  LoadedEncoder loaded;
  loaded.compute = use.value_or(Compute::float32);
  loaded.folder = folder.string();
  loaded.modules = data::read_sentence_modules(folder);
  const std::filesystem::path& model = loaded.modules.model;
  const models::BertConfig config = models::read_bert_config(model);
  const data::EncoderTokenizer tokenizer = data::load_encoder_tokenizer(model, config.model_type);
  loaded.tokenizer = tokenizer.tokenizer;
  data::require_as_many_tokens(*loaded.tokenizer, config.vocab_size, model.string());
  int64_t& most = loaded.modules.max_tokens;
  if (most == 0) most = tokenizer.max_tokens;
  most = most == 0 ? config.longest() : std::min(most, config.longest());
  Rng rng(0);
  models::LoadedBert bert = models::load_bert(model, rng, heads, use);
  loaded.network = std::move(bert.network);
  loaded.fresh = std::move(bert.fresh);
  loaded.dense = load_dense(loaded.modules.dense, config.hidden_size);
  take_global(*loaded.network, *loaded.tokenizer);
  return loaded;
}

}  // namespace

LoadedEncoder load_encoder(const std::filesystem::path& folder,
                           const std::optional<models::BertHeads>& heads) {
  return load(folder, heads, {});
}

LoadedEncoder open_encoder(const std::filesystem::path& folder, const std::optional<models::BertHeads>& heads,
                           const std::string& compute) {
  return load(folder, heads, compute_named(compute));
}

Embedder::Embedder(const LoadedEncoder& loaded, const EmbedOptions& options)
    : tokenizer_(loaded.tokenizer),
      modules_(loaded.modules),
      max_tokens_(options.max_tokens == 0 ? loaded.modules.max_tokens : options.max_tokens),
      batch_tokens_(options.batch_tokens),
      tokens_(options.tokens),
      chunk_(options.chunks),
      network_(*loaded.network),
      dense_(loaded.dense),
      prepared_(network_, loaded.compute) {
  if (!options.pooling.empty()) modules_.pooling = data::pooling_named(options.pooling);
  modules_.normalize = yes_or(options.normalize, modules_.normalize);
  const int64_t marks = tokenizer_->marks_around(false), longest = network_.config().longest();
  require(max_tokens_ >= marks && max_tokens_ <= longest, "max_tokens: got ", max_tokens_, ", wanted ", marks,
          " to ", longest);
  require(batch_tokens_ > 0, "batch_tokens: got ", batch_tokens_, ", wanted 1 or more");
  require(chunk_ >= 0, "chunks: got ", chunk_, ", wanted the tokens of a part, or 0 for no parts");
  require(!tokens_ || chunk_ == 0, "tokens and chunks: wanted one of the two");
  require(!tokens_ || options.pooling.empty(),
          "pooling: a token's vector is its state; leave it out with tokens");
  require(chunk_ == 0 || modules_.pooling != data::Pooling::cls,
          "chunks: the pooling is cls, which takes the first token of a text; wanted mean or max");
  require(!of_spans() || modules_.prompt.empty(),
          "tokens and chunks: the folder puts a prompt before every text, to which no characters belong");
}

int64_t Embedder::width() const {
  return tokens_ || dense_.empty() ? network_.config().hidden_size : dense_.back().weight.value().shape()[0];
}

void Embedder::pool(const float* states, int64_t tokens, float* row) const {
  const int64_t width = network_.config().hidden_size;
  Tensor pooled({1, width});
  for (int64_t i = 0; i < width; ++i) {
    double sum = 0;
    float largest = states[i];
    for (int64_t t = 0; t < tokens; ++t) {
      sum += states[t * width + i];
      largest = std::max(largest, states[t * width + i]);
    }
    pooled.data()[i] = modules_.pooling == data::Pooling::cls ? states[i]
                       : modules_.pooling == data::Pooling::max
                           ? largest
                           : static_cast<float>(sum / static_cast<double>(tokens));
  }
  if (!tokens_)
    for (const DenseLayer& layer : dense_) {
      pooled = linear(Var(pooled), layer.weight, layer.bias).value();
      if (layer.tanh)
        for (float& value : pooled.span()) value = std::tanh(value);
    }
  std::copy(pooled.span().begin(), pooled.span().end(), row);
  if (!modules_.normalize) return;
  double squares = 0;
  for (int64_t i = 0; i < this->width(); ++i) squares += double{row[i]} * row[i];
  const double length = std::max(std::sqrt(squares), 1e-12);
  for (int64_t i = 0; i < this->width(); ++i) row[i] = static_cast<float>(row[i] / length);
}

Embedder::EncodedLine Embedder::encode(const std::string& line) const {
  EncodedLine encoded;
  const std::string text = modules_.prompt + line;
  const std::string read = modules_.lowercase ? data::lowercase(text) : text;
  std::vector<int32_t> ids;
  if (of_spans()) {
    encoded.spans = tokenizer_->spans(read);
    for (const data::TokenSpan& span : encoded.spans) ids.push_back(span.id);
  } else {
    ids = tokenizer_->encode(read);
  }
  const int64_t marks = tokenizer_->marks_around(false);
  encoded.ids = tokenizer_->mark(ids, max_tokens_).ids;
  encoded.cut = static_cast<int64_t>(ids.size()) + marks > max_tokens_;
  if (!of_spans()) return encoded;
  encoded.spans.resize(encoded.ids.size() - static_cast<size_t>(marks));
  return encoded;
}

void Embedder::for_each_line(std::span<const EncodedLine> lines,
                             const std::function<void(size_t line, const float* states)>& use) const {
  std::vector<int64_t> lengths;
  for (const EncodedLine& line : lines) lengths.push_back(static_cast<int64_t>(line.ids.size()));
  for_length_batches(lengths, {.tokens = batch_tokens_}, [&](std::span<const size_t> members) {
    std::vector<int32_t> ids, sizes;
    for (const size_t i : members) {
      ids.insert(ids.end(), lines[i].ids.begin(), lines[i].ids.end());
      sizes.push_back(static_cast<int32_t>(lines[i].ids.size()));
    }
    const NoGrad no_grad;
    nn::Context context;
    const Tensor hidden = network_.hidden({ids, sizes}, {}, context).value();
    const float* states = hidden.data();
    for (const size_t i : members) {
      use(i, states);
      states += lengths[i] * network_.config().hidden_size;
    }
  });
}

Embeddings Embedder::embed(std::span<const std::string> lines) const {
  std::vector<EncodedLine> encoded;
  Embeddings result{Tensor({static_cast<int64_t>(lines.size()), width()}), {}};
  for (const std::string& line : lines) {
    check_stop();
    encoded.push_back(encode(line));
    result.cut.push_back(encoded.back().cut);
  }
  for_each_line(encoded, [&](size_t i, const float* states) {
    pool(states, static_cast<int64_t>(encoded[i].ids.size()),
         result.rows.data() + static_cast<int64_t>(i) * width());
  });
  return result;
}

// The first mark goes with the first part, the last with the last one: they were read with the text.
std::vector<EmbeddedSpan> Embedder::spans_of(const EncodedLine& line, const float* states) const {
  const auto count = static_cast<int64_t>(line.spans.size()), step = tokens_ ? int64_t{1} : chunk_;
  const int64_t behind = static_cast<int64_t>(line.ids.size()) - count - 1;  // marks after the text
  const int64_t features = network_.config().hidden_size;
  std::vector<EmbeddedSpan> found;
  for (int64_t first = 0; first < count; first += step) {
    const int64_t last = std::min(first + step, count) - 1;
    EmbeddedSpan span{.begin = line.spans[static_cast<size_t>(first)].begin,
                      .end = line.spans[static_cast<size_t>(last)].end,
                      .vector = std::vector<float>(static_cast<size_t>(width()))};
    if (tokens_) {
      span.token = tokenizer_->piece(line.spans[static_cast<size_t>(first)].id);
      pool(states + (first + 1) * features, 1, span.vector.data());
    } else {
      const int64_t begin = first == 0 ? 0 : first + 1,
                    end = last + 1 == count ? count + 1 + behind : last + 2;
      pool(states + begin * features, end - begin, span.vector.data());
    }
    found.push_back(std::move(span));
  }
  return found;
}

Embedder::SpanEmbeddings Embedder::embed_spans(std::span<const std::string> lines) const {
  std::vector<EncodedLine> encoded;
  SpanEmbeddings result;
  for (const std::string& line : lines) {
    check_stop();
    encoded.push_back(encode(line));
    result.cut.push_back(encoded.back().cut);
  }
  result.lines.resize(lines.size());
  for_each_line(encoded,
                [&](size_t i, const float* states) { result.lines[i] = spans_of(encoded[i], states); });
  return result;
}

MaskFiller::MaskFiller(const LoadedEncoder& loaded)
    : tokenizer_(with_masked_head(loaded).tokenizer),
      max_tokens_(loaded.modules.max_tokens),
      network_(*loaded.network),
      prepared_(network_, loaded.compute) {}

std::vector<std::vector<MaskCandidate>> MaskFiller::fill(const std::string& text, int64_t top) const {
  require(top >= 1, "top: got ", top, ", wanted 1 or more");
  require(data::is_utf8(text), "the text is not UTF-8");
  const std::vector<int32_t> ids = tokenizer_->mark(tokenizer_->encode(text)).ids;
  const auto tokens = static_cast<int32_t>(ids.size());
  const std::string mask = tokenizer_->piece(tokenizer_->marks().mask);
  require(std::find(ids.begin(), ids.end(), tokenizer_->marks().mask) != ids.end(), "no ", mask,
          " in the text; put one where a word is to be found");
  require(tokens <= max_tokens_, "the text has ", tokens, " tokens, wanted at most ", max_tokens_);
  const NoGrad no_grad;
  nn::Context context;
  const Var hidden = network_.hidden({ids, {&tokens, 1}}, {}, context);
  std::vector<std::vector<MaskCandidate>> found;
  for (int64_t i = 0; i < tokens; ++i) {
    if (ids[static_cast<size_t>(i)] != tokenizer_->marks().mask) continue;
    const Tensor logits = network_.token_logits(slice(hidden, 0, i, 1)).value();
    found.push_back(best_of(logits.span(), top, *tokenizer_));
  }
  return found;
}

}  // namespace fovea::tasks
