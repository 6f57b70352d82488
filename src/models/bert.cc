// BERT and its relatives: reading and checking their configs, embeddings, encoder and heads.
#include "models/bert.h"

#include <algorithm>
#include <cmath>
#include <concepts>

#include "autograd/ops.h"
#include "models/added_tokens.h"
#include "models/long_attention.h"
#include "nn/init.h"
#include "nn/positions.h"

namespace fovea::models {
namespace {

struct Alias {
  const char* name;
  const char* distilbert;
};
// What DistilBERT's config calls otherwise.
constexpr Alias kAliases[] = {{"hidden_size", "dim"},
                              {"num_hidden_layers", "n_layers"},
                              {"num_attention_heads", "n_heads"},
                              {"intermediate_size", "hidden_dim"},
                              {"hidden_act", "activation"},
                              {"hidden_dropout_prob", "dropout"},
                              {"attention_probs_dropout_prob", "attention_dropout"},
                              {"classifier_dropout", "seq_classif_dropout"}};
// What it has no choice of.
constexpr const char* kNotDistilbert[] = {"type_vocab_size", "layer_norm_eps"};
constexpr const char* kOnlyBigBird[] = {"attention_type",     "block_size", "num_random_blocks",
                                        "rescale_embeddings", "use_bias",   "random_blocks"};

constexpr int64_t kMostAddedTokens = 1024;
constexpr const char* kRandomBlocks[] = {"paper", "hf-eval", "none"};

bool is_one_of(std::span<const char* const> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
constexpr const char* kRelative = "relative_attention_num_buckets";

std::string name_in_file(const std::string& model_type, const std::string& field) {
  if (model_type != "distilbert") return field;
  for (const Alias& alias : kAliases)
    if (field == alias.name) return alias.distilbert;
  return field;
}

bool is_in_file(const std::string& model_type, const std::string& field) {
  const bool big_bird = model_type == "big_bird";
  if (field == kRelative) return model_type == "mpnet";
  if (field == "type_vocab_size" && model_type == "mpnet") return false;
  if (field == "global_tokens" || field == "added_global_tokens")
    return big_bird || model_type == "longformer";
  if (is_one_of(kOnlyBigBird, field)) return big_bird;
  return model_type != "distilbert" || !is_one_of(kNotDistilbert, field);
}

// An int for all layers, or one for each.
std::vector<int64_t> read_windows(const Json& json, int64_t layers, const std::string& where) {
  constexpr int64_t kMostLayers = 1 << 20, kWidest = int64_t{1} << 30;
  require(layers >= 1 && layers <= kMostLayers, where, ": num_hidden_layers is ", layers, ", wanted 1 to ",
          kMostLayers);
  std::vector<int64_t> windows;
  const std::string name = where + ": attention_window";
  if (json.contains("attention_window") && json["attention_window"].is_array())
    value_from_json(json["attention_window"], windows, name);
  else if (int64_t both = 512; true) {
    if (json.contains("attention_window")) value_from_json(json["attention_window"], both, name);
    windows.assign(static_cast<size_t>(layers), both);
  }
  require(static_cast<int64_t>(windows.size()) == layers, name, " has ", windows.size(),
          " numbers, wanted one for each of the ", layers, " layers");
  for (const int64_t both : windows)
    require(both >= 2 && both <= kWidest && both % 2 == 0, name, " is ", both,
            ", wanted an even number from 2 on: half of it is seen on each side");
  return windows;
}

// Variants of the family that compute something else.
void refuse_variants(const Json& json, const std::string& where) {
  for (const char* name : {"is_decoder", "add_cross_attention"})
    require(!json.contains(name) || json[name] == false, where, ": ", name,
            " is set: a decoder, wanted an encoder");
  require(!json.contains("position_embedding_type") || json["position_embedding_type"] == "absolute", where,
          ": position_embedding_type is not absolute, which is the only one known");
  require(!json.contains("pruned_heads") || json["pruned_heads"].empty(), where,
          ": heads were pruned, which is not supported");
}

std::vector<std::string> read_labels(const Json& json, const std::string& where) {
  const bool listed = json.contains("id2label") && json["id2label"].is_object();
  int64_t count = 2;
  if (json.contains("num_labels"))
    value_from_json(json["num_labels"], count, where + ": num_labels");
  else if (listed)
    count = static_cast<int64_t>(json["id2label"].size());
  constexpr int64_t kMostLabels = 1'000'000;
  require(count >= 1 && count <= kMostLabels, where, ": ", count, " labels, wanted 1 to ", kMostLabels);
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back("LABEL_" + std::to_string(i));
  if (!listed) return labels;
  for (const auto& item : json["id2label"].items()) {
    const std::string& key = item.key();
    const bool number =
        !key.empty() && key.size() < 8 && key.find_first_not_of("0123456789") == std::string::npos;
    const int64_t id = number ? std::stoll(key) : -1;
    require(id >= 0 && id < count, where, ": id2label names the label ", in_quotes(key), " of ", count);
    value_from_json(item.value(), labels[static_cast<size_t>(id)], where + ": id2label");
  }
  return labels;
}

const BertConfig& checked(const BertConfig& c, const std::string& where) {
  const auto positive = [&](const char* name, int64_t value) {
    constexpr int64_t kMost = int64_t{1} << 31;
    require(value >= 1 && value < kMost, where, ": ", name_in_file(c.model_type, name), " is ", value,
            ", wanted 1 to ", kMost - 1);
  };
  positive("vocab_size", c.vocab_size);
  positive("hidden_size", c.hidden_size);
  positive("num_hidden_layers", c.num_hidden_layers);
  positive("num_attention_heads", c.num_attention_heads);
  positive("intermediate_size", c.intermediate_size);
  positive("max_position_embeddings", c.max_position_embeddings);
  require(c.type_vocab_size >= 0 && c.type_vocab_size < 1 << 20, where, ": type_vocab_size is ",
          c.type_vocab_size, ", wanted 0 to ", (1 << 20) - 1);
  require(c.hidden_size % c.num_attention_heads == 0, where, ": ", c.num_attention_heads,
          " heads do not divide the width ", c.hidden_size);
  require(c.pad_token_id.value_or(0) >= 0 && c.first_position() >= 0 && c.longest() >= 1, where,
          ": pad_token_id is ", c.pad_token_id.value_or(0), ", which leaves none of ",
          c.max_position_embeddings, " places");
  // Hugging Face's MPNet has 32 whatever the config says.
  require(c.model_type != "mpnet" || c.relative_attention_num_buckets == 32, where, ": ", kRelative, " is ",
          c.relative_attention_num_buckets, ", wanted 32");
  const auto probability = [&](const char* name, float value) {
    require(value >= 0 && value < 1, where, ": ", name_in_file(c.model_type, name), " is ", value,
            ", wanted 0 or more and less than 1");
  };
  probability("hidden_dropout_prob", c.hidden_dropout_prob);
  probability("attention_probs_dropout_prob", c.attention_probs_dropout_prob);
  probability("classifier_dropout", c.classifier_dropout.value_or(0));
  require(c.attention_type == "block_sparse" || c.attention_type == "original_full", where,
          ": attention_type is ", in_quotes(c.attention_type), ", wanted block_sparse or original_full");
  require(is_one_of(kRandomBlocks, c.random_blocks), where, ": random_blocks is ", in_quotes(c.random_blocks),
          ", wanted paper, hf-eval or none");
  constexpr int64_t kMostBlock = 1 << 20;
  require(c.block_size >= 1 && c.block_size <= kMostBlock && c.num_random_blocks >= 0 &&
              c.num_random_blocks <= kMostBlock,
          where, ": block_size ", c.block_size, " and num_random_blocks ", c.num_random_blocks,
          ", wanted at least 1 and 0, and at most ", kMostBlock);
  require(
      c.model_type != "longformer" || static_cast<int64_t>(c.attention_window.size()) == c.num_hidden_layers,
      where, ": attention_window has ", c.attention_window.size(), " numbers for ", c.num_hidden_layers,
      " layers");
  require(c.added_global_tokens >= 0 && c.added_global_tokens <= kMostAddedTokens, where,
          ": added_global_tokens is ", c.added_global_tokens, ", wanted 0 to ", kMostAddedTokens);
  require(c.added_global_tokens == 0 || c.is_long(), where,
          ": added_global_tokens are for Longformer and BigBird");
  require(c.layer_norm_eps > 0 && c.layer_norm_eps < 1, where, ": layer_norm_eps is ", c.layer_norm_eps,
          ", wanted a small number above 0");
  require(c.initializer_range >= 0 && c.initializer_range < 100, where, ": initializer_range is ",
          c.initializer_range, ", wanted a small number");
  try {
    bert_activation(c.hidden_act);
  } catch (const Error& error) {
    fail(where, ": ", error.what());
  }
  return c;
}

// MPNet's buckets of distances are T5's.
AttentionSpec layer_spec(const BertConfig& c) {
  AttentionSpec spec;
  if (c.model_type == "mpnet") spec.terms.relative = {.buckets = c.relative_attention_num_buckets};
  return spec;
}

nn::TransformerOptions layer_options(const BertConfig& c, const Var& relative) {
  return {.width = c.hidden_size,
          .heads = c.num_attention_heads,
          .hidden = c.intermediate_size,
          .dropout = c.hidden_dropout_prob,
          .attention_dropout = c.attention_probs_dropout_prob,
          .hidden_dropout = 0,
          .activation = bert_activation(c.hidden_act),
          .epsilon = c.layer_norm_eps,
          .spec = layer_spec(c),
          .qkv_bias = c.use_bias,
          .global_projections = c.model_type == "longformer",
          .relative = relative};
}

// RoBERTa and Longformer count the tokens that are no padding, and begin after the padding token's id, which
// is the place of padding itself: a text may spell it out.
std::vector<int32_t> positions_of(const Sentences& texts, const BertConfig& config) {
  std::vector<int32_t> positions = nn::packed_positions(texts.lengths);
  if (!config.counts_from_pad()) return positions;
  const auto pad = static_cast<int32_t>(config.first_position() - 1);
  int32_t place = pad;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] == 0) place = pad;
    positions[i] = texts.ids[i] == pad ? pad : ++place;
  }
  return positions;
}

}  // namespace

Activation bert_activation(const std::string& hidden_act) {
  if (hidden_act == "gelu" || hidden_act == "gelu_python") return Activation::gelu;
  // transformers has several implementations of the same formula.
  for (const char* name : {"gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"})
    if (hidden_act == name) return Activation::gelu_tanh;
  if (hidden_act == "relu") return Activation::relu;
  if (hidden_act == "silu" || hidden_act == "swish") return Activation::silu;
  fail("hidden_act is ", in_quotes(hidden_act), ", wanted gelu, gelu_new, relu or silu");
}

BertConfig bert_config(const Json& json, const std::string& where) {
  const bool known = json.is_object() && (json.contains("model_type") || json.contains("hidden_size"));
  require(
      known, where,
      ": not the config of a BERT-family model; wanted model_type bert, distilbert, roberta, xlm-roberta, mpnet, "
      "longformer or big_bird");
  BertConfig config;
  if (json.contains("model_type"))
    value_from_json(json["model_type"], config.model_type, where + ": model_type");
  const std::string& type = config.model_type;
  constexpr const char* kTypes[] = {"bert",  "distilbert", "roberta", "xlm-roberta",
                                    "mpnet", "longformer", "big_bird"};
  require(is_one_of(kTypes, type), where, ": model_type is ", in_quotes(type),
          ", wanted bert, distilbert, roberta, xlm-roberta, mpnet, longformer or big_bird");
  refuse_variants(json, where);
  // Where a file is silent, Hugging Face's own defaults hold.
  if (type == "distilbert") {
    config.type_vocab_size = 0;
    config.num_hidden_layers = 6;
    config.classifier_dropout = 0.2f;
  }
  if (config.counts_from_pad()) config.pad_token_id = 1;
  if (type == "roberta") config.vocab_size = 50265;
  if (type == "mpnet") {
    config.vocab_size = 30527;
    config.type_vocab_size = 0;
  }
  if (type == "longformer") config.pad_token_id = 1;
  if (type == "big_bird") {
    config.vocab_size = 50358;
    config.max_position_embeddings = 4096;
    config.hidden_act = "gelu_new";
  }
  for_each_field<BertConfig>([&](const auto& field) {
    const std::string name = name_in_file(type, field.name);
    if (is_in_file(type, field.name) && json.contains(name))
      value_from_json(json[name], config.*field.member, where + ": " + name);
  });
  if (type == "longformer") config.attention_window = read_windows(json, config.num_hidden_layers, where);
  config.labels = read_labels(json, where);
  if (config.problem_type) {
    const std::string& problem = *config.problem_type;
    require(problem == "single_label_classification" || problem == "multi_label_classification" ||
                problem == "regression",
            where, ": problem_type is ", in_quotes(problem),
            ", wanted single_label_classification, multi_label_classification or regression");
  }
  return checked(config, where);
}

Json bert_config_json(const BertConfig& config) {
  Json json = Json::object();
  for_each_field<BertConfig>([&](const auto& field) {
    using Value = std::remove_cvref_t<decltype(config.*field.member)>;
    // What transformers leaves out when it is not known.
    if constexpr (std::same_as<Value, std::optional<std::string>> || std::same_as<Value, std::optional<bool>>)
      if (!(config.*field.member)) return;
    if (is_in_file(config.model_type, field.name))
      json[name_in_file(config.model_type, field.name)] = value_to_json(config.*field.member);
  });
  if (config.model_type == "longformer") json["attention_window"] = config.attention_window;
  // Fovea's own settings are written only where they differ from the default.
  if (config.global_tokens.empty()) json.erase("global_tokens");
  if (config.added_global_tokens == 0) json.erase("added_global_tokens");
  if (config.random_blocks == BertConfig().random_blocks) json.erase("random_blocks");
  if (config.labels.empty()) return json;
  for (size_t i = 0; i < config.labels.size(); ++i) {
    json["id2label"][std::to_string(i)] = config.labels[i];
    json["label2id"][config.labels[i]] = i;
  }
  return json;
}

Bert::MaskedLm::MaskedLm(const BertConfig& config, Rng& rng)
    : dense(config.hidden_size, config.hidden_size, rng), norm(config.hidden_size, config.layer_norm_eps) {
  add_child("dense", dense);
  add_child("norm", norm);
  bias = add_parameter("bias", nn::constant({config.vocab_size}, 0));
  if (!config.tie_word_embeddings)
    output = add_parameter("output", nn::constant({config.vocab_size, config.hidden_size}, 0));
}

Bert::Bert(const BertConfig& config, const BertHeads& heads, Rng& rng)
    : embedding_norm(checked(config, config.model_type).hidden_size, config.layer_norm_eps),
      relative_bias(config.model_type != "mpnet"
                        ? Var()
                        : add_parameter("relative_bias", nn::constant({config.relative_attention_num_buckets,
                                                                       config.num_attention_heads},
                                                                      0))),
      encoder(layer_options(config, relative_bias), config.num_hidden_layers, false, rng),
      config_(config),
      heads_(heads),
      token_output_([this] {
        return std::vector<nn::Projection::Part>{
            {masked_lm->output.defined() ? masked_lm->output : word_embedding, masked_lm->bias}};
      }) {
  const int64_t width = config.hidden_size;
  word_embedding = add_parameter("embeddings.word", nn::constant({config.vocab_size, width}, 0));
  position_embedding =
      add_parameter("embeddings.position", nn::constant({config.max_position_embeddings, width}, 0));
  if (config.type_vocab_size > 0)
    type_embedding = add_parameter("embeddings.type", nn::constant({config.type_vocab_size, width}, 0));
  add_child("embeddings.norm", embedding_norm);
  add_child("encoder", encoder);
  heads_.pooler |= heads.labels > 0 || heads.next_sentence;
  if (heads_.pooler) {
    pooler = std::make_unique<nn::Linear>(width, width, rng);
    add_child("pooler", *pooler);
  }
  if (heads.masked_lm) {
    masked_lm = std::make_unique<MaskedLm>(config, rng);
    add_child("masked_lm", *masked_lm);
    add_projection(token_output_);
  }
  if (heads.next_sentence) {
    require(config.model_type == "bert", config.model_type, ": it has no head for the next sentence");
    next_sentence = std::make_unique<nn::Linear>(width, 2, rng);
    add_child("next_sentence", *next_sentence);
  }
  if (heads.labels > 0) {
    classifier = std::make_unique<nn::Linear>(width, heads.labels, rng);
    add_child("classifier", *classifier);
  }
  if (static_cast<int64_t>(config_.labels.size()) != heads.labels) {
    config_.labels.clear();
    for (int64_t i = 0; i < heads.labels; ++i) config_.labels.push_back("LABEL_" + std::to_string(i));
  }
  if (config.added_global_tokens > 0)
    global_embedding =
        add_parameter("embeddings.global", nn::constant({config.added_global_tokens, width}, 0));
  if (config.model_type == "longformer" && heads.labels > 0) global_ = data::GlobalTokens::first();
  if (nn::parameters_are_drawn()) draw(parameters(), rng);
}

void Bert::draw(std::span<const nn::NamedParameter> parameters, Rng& rng) const {
  for (const auto& [name, parameter] : parameters) {
    const Shape& shape = parameter.shape();
    if (shape.rank() == 2)
      parameter.set_value(nn::normal(shape, 0, config_.initializer_range, rng));
    else
      parameter.set_value(Tensor::full(shape, name.ends_with("weight") ? 1 : 0));
  }
}

void Bert::name_labels(std::vector<std::string> labels) {
  require(static_cast<int64_t>(labels.size()) == heads_.labels, config_.model_type, ": ", labels.size(),
          " names for ", heads_.labels, " labels");
  config_.labels = std::move(labels);
}

void Bert::choose_global(const std::string& choice, const data::Tokenizer& tokenizer) {
  require(config_.is_long(), "global tokens are for Longformer and BigBird; in a model of type ",
          config_.model_type, " every token sees all tokens");
  global_ = choice == "none" ? data::GlobalTokens() : data::GlobalTokens(choice, tokenizer);
  config_.global_tokens = choice;
}

void Bert::add_global_tokens(int64_t count, Rng& rng) {
  require(config_.is_long(), "added global tokens are for Longformer and BigBird; in a model of type ",
          config_.model_type, " every token sees all tokens");
  require(count >= 1 && count <= kMostAddedTokens, "added global tokens: got ", count, ", wanted 1 to ",
          kMostAddedTokens);
  const int64_t there = config_.added_global_tokens;
  if (count == there) return;
  require(there == 0, "added global tokens: got ", count, ", but the model has learned ", there,
          " already; leave the option out");
  config_.added_global_tokens = count;
  global_embedding = add_parameter("embeddings.global", nn::constant({count, config_.hidden_size}, 0));
  draw(std::vector<nn::NamedParameter>{{"embeddings.global", global_embedding}}, rng);
}

std::vector<int64_t> Bert::global_places(std::span<const int32_t> ids) const {
  if (!config_.is_long()) return {};
  const auto tokens = static_cast<int32_t>(ids.size());
  const LongAttention limited(config_, {ids, {&tokens, 1}}, global_, false);
  std::vector<int64_t> places;
  for (const int64_t row : limited.global_rows())
    if (row >= config_.added_global_tokens) places.push_back(row - config_.added_global_tokens);
  return places;
}

void Bert::choose_random_blocks(const std::string& choice) {
  require(config_.model_type == "big_bird", "random blocks are for BigBird; this model is of type ",
          config_.model_type);
  require(is_one_of(kRandomBlocks, choice), "random blocks: got ", in_quotes(choice),
          ", wanted paper, hf-eval or none");
  config_.random_blocks = choice;
}

void Bert::describe_task(const std::optional<std::string>& problem_type, bool pairs) {
  config_.problem_type = problem_type;
  config_.pairs = pairs ? std::optional(true) : std::nullopt;
}

Var Bert::dropped(const Var& x, float dropout, nn::Context& context) const {
  const float rate = context.rate(dropout);
  return fovea::dropout(x, rate, rate > 0 ? context.next_seed() : 0);
}

Var Bert::hidden(const Sentences& texts, std::span<const int32_t> types, nn::Context& context) const {
  require(texts.longest() <= config_.longest(), config_.model_type, ": a text of ", texts.longest(),
          " tokens, but places were learned up to ", config_.longest());
  require(types.empty() || types.size() == texts.ids.size(), config_.model_type, ": ", types.size(),
          " kinds for ", texts.ids.size(), " tokens");
  for (const int32_t id : texts.ids)
    require(id >= 0 && id < config_.vocab_size, config_.model_type, ": token ", id,
            " is not in the vocabulary; wanted 0 to ", config_.vocab_size - 1);
  for (const int32_t type : types)
    require(type >= 0 && (type < config_.type_vocab_size || !type_embedding.defined()), config_.model_type,
            ": token type ", type, "; wanted 0 to ", config_.type_vocab_size - 1);
  const std::vector<int32_t> positions = positions_of(texts, config_);
  Var added = embedding(position_embedding, positions);
  if (type_embedding.defined()) {
    const std::vector<int32_t> zeros(types.empty() ? texts.ids.size() : 0);
    added = embedding(type_embedding, types.empty() ? zeros : types, {.added = added});
  }
  const float scale = config_.rescale_embeddings ? std::sqrt(static_cast<float>(config_.hidden_size)) : 1;
  Var sum = embedding(word_embedding, texts.ids, {.scale = scale, .added = added});
  std::optional<AddedTokens> extended;
  if (global_embedding.defined()) {
    extended.emplace(texts.lengths, config_.added_global_tokens);
    sum = extended->put_in_front(global_embedding, sum);
  }
  const Shape packed{1, sum.size(0), config_.hidden_size};
  const float rate = config_.hidden_dropout_prob;
  const Var in = config_.model_type == "big_bird"
                     ? embedding_norm(dropped(reshape(sum, packed), rate, context))
                     : dropped(reshape(embedding_norm(sum), packed), rate, context);
  std::optional<LongAttention> limited;
  if (config_.is_long()) limited.emplace(config_, texts, global_, context.training);
  const nn::Visibility visible =
      limited ? limited->visibility() : nn::Visibility{.self = documents(texts.lengths)};
  const Var states = reshape(encoder(in, context, visible), sum.shape());
  return extended ? extended->own(states) : states;
}

Var Bert::first_tokens(const Var& hidden, std::span<const int64_t> lengths) const {
  require(pooler != nullptr, config_.model_type, ": the model has no pooler");
  std::vector<int32_t> places;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    require(length > 0, config_.model_type, ": an empty text has no first token");
    places.push_back(static_cast<int32_t>(begin));
    begin += length;
  }
  require(hidden.rank() == 2 && hidden.size(0) == begin, config_.model_type, ": got states of shape ",
          hidden.shape(), " for texts of ", begin, " tokens");
  return gather(hidden, places);
}

Var Bert::through_pooler(const Var& first) const {
  if (config_.model_type == "distilbert") return (*pooler)(first, Activation::relu);
  if (config_.model_type == "big_bird" && heads_.labels > 0)
    return (*pooler)(first, bert_activation(config_.hidden_act));
  return tanh((*pooler)(first));
}

Var Bert::pooled(const Var& hidden, std::span<const int64_t> lengths) const {
  return through_pooler(first_tokens(hidden, lengths));
}

Var Bert::class_logits(const Var& hidden, std::span<const int64_t> lengths, nn::Context& context) const {
  require(classifier != nullptr, config_.model_type, ": the model has no classifier");
  const float dropout = config_.classifier_dropout.value_or(config_.hidden_dropout_prob);
  Var first = first_tokens(hidden, lengths);
  if (config_.counts_from_pad() || config_.is_long()) first = dropped(first, dropout, context);
  return (*classifier)(dropped(through_pooler(first), dropout, context));
}

Var Bert::masked_states(const Var& rows) const {
  require(masked_lm != nullptr, config_.model_type, ": the model has no head for masked tokens");
  // RoBERTa's and Longformer's head is gelu whatever the layers are.
  const Activation activation =
      config_.counts_from_pad() ? Activation::gelu : bert_activation(config_.hidden_act);
  return masked_lm->norm(masked_lm->dense(rows, activation));
}

Var Bert::token_logits(const Var& rows) const {
  return token_output_(masked_states(rows));
}

Var Bert::masked_loss(const Var& rows, std::span<const int32_t> targets) const {
  const Var& output = masked_lm->output.defined() ? masked_lm->output : word_embedding;
  return linear_cross_entropy(masked_states(rows), output, masked_lm->bias, targets).loss;
}

Var Bert::next_logits(const Var& hidden, std::span<const int64_t> lengths) const {
  require(next_sentence != nullptr, config_.model_type, ": the model has no head for the next sentence");
  return (*next_sentence)(pooled(hidden, lengths));
}

}  // namespace fovea::models
