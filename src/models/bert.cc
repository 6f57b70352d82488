#include "models/bert.h"

#include <algorithm>
#include <concepts>

#include "autograd/ops.h"
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

std::string name_in_file(const std::string& model_type, const std::string& field) {
  if (model_type != "distilbert") return field;
  for (const Alias& alias : kAliases)
    if (field == alias.name) return alias.distilbert;
  return field;
}

bool is_in_file(const std::string& model_type, const std::string& field) {
  return model_type != "distilbert" ||
         std::find(std::begin(kNotDistilbert), std::end(kNotDistilbert), field) == std::end(kNotDistilbert);
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
  const auto probability = [&](const char* name, float value) {
    require(value >= 0 && value < 1, where, ": ", name_in_file(c.model_type, name), " is ", value,
            ", wanted 0 or more and less than 1");
  };
  probability("hidden_dropout_prob", c.hidden_dropout_prob);
  probability("attention_probs_dropout_prob", c.attention_probs_dropout_prob);
  probability("classifier_dropout", c.classifier_dropout.value_or(0));
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

nn::TransformerOptions layer_options(const BertConfig& c) {
  return {.width = c.hidden_size,
          .heads = c.num_attention_heads,
          .hidden = c.intermediate_size,
          .dropout = c.hidden_dropout_prob,
          .attention_dropout = c.attention_probs_dropout_prob,
          .hidden_dropout = 0,
          .activation = bert_activation(c.hidden_act),
          .epsilon = c.layer_norm_eps};
}

std::vector<int32_t> packed_positions(std::span<const int64_t> lengths, int64_t first) {
  std::vector<int32_t> positions = nn::packed_positions(lengths);
  for (int32_t& position : positions) position += static_cast<int32_t>(first);
  return positions;
}

}  // namespace

Activation bert_activation(const std::string& hidden_act) {
  if (hidden_act == "gelu") return Activation::gelu;
  if (hidden_act == "gelu_new" || hidden_act == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (hidden_act == "relu") return Activation::relu;
  fail("hidden_act is ", in_quotes(hidden_act), ", wanted gelu, gelu_new, gelu_pytorch_tanh or relu");
}

BertConfig bert_config(const Json& json, const std::string& where) {
  const bool known = json.is_object() && (json.contains("model_type") || json.contains("hidden_size"));
  require(known, where,
          ": not the config of a BERT-family model; wanted model_type bert, distilbert or roberta");
  BertConfig config;
  if (json.contains("model_type"))
    value_from_json(json["model_type"], config.model_type, where + ": model_type");
  const std::string& type = config.model_type;
  require(type == "bert" || type == "distilbert" || type == "roberta", where, ": model_type is ",
          in_quotes(type), ", wanted bert, distilbert or roberta");
  refuse_variants(json, where);
  // Where a file is silent, Hugging Face's own defaults hold.
  if (type == "distilbert") {
    config.type_vocab_size = 0;
    config.num_hidden_layers = 6;
    config.classifier_dropout = 0.2f;
  }
  if (type == "roberta") {
    config.vocab_size = 50265;
    config.pad_token_id = 1;
  }
  for_each_field<BertConfig>([&](const auto& field) {
    const std::string name = name_in_file(type, field.name);
    if (is_in_file(type, field.name) && json.contains(name))
      value_from_json(json[name], config.*field.member, where + ": " + name);
  });
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
      encoder(layer_options(config), config.num_hidden_layers, false, rng),
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
  heads_.pooler |= heads.labels > 0;
  if (heads_.pooler) {
    pooler = std::make_unique<nn::Linear>(width, width, rng);
    add_child("pooler", *pooler);
  }
  if (heads.masked_lm) {
    masked_lm = std::make_unique<MaskedLm>(config, rng);
    add_child("masked_lm", *masked_lm);
    add_projection(token_output_);
  }
  if (heads.labels > 0) {
    classifier = std::make_unique<nn::Linear>(width, heads.labels, rng);
    add_child("classifier", *classifier);
  }
  if (static_cast<int64_t>(config_.labels.size()) != heads.labels) {
    config_.labels.clear();
    for (int64_t i = 0; i < heads.labels; ++i) config_.labels.push_back("LABEL_" + std::to_string(i));
  }
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
  const std::vector<int32_t> positions = packed_positions(texts.lengths, config_.first_position());
  Var added = embedding(position_embedding, positions);
  if (type_embedding.defined()) {
    const std::vector<int32_t> zeros(types.empty() ? texts.ids.size() : 0);
    added = embedding(type_embedding, types.empty() ? zeros : types, {.added = added});
  }
  const Var x = embedding_norm(embedding(word_embedding, texts.ids, {.added = added}));
  const Var in =
      dropped(reshape(x, {1, texts.total(), config_.hidden_size}), config_.hidden_dropout_prob, context);
  return reshape(encoder(in, context, {.self = documents(texts.lengths)}),
                 {texts.total(), config_.hidden_size});
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
  return config_.model_type == "distilbert" ? (*pooler)(first, Activation::relu) : tanh((*pooler)(first));
}

Var Bert::pooled(const Var& hidden, std::span<const int64_t> lengths) const {
  return through_pooler(first_tokens(hidden, lengths));
}

Var Bert::class_logits(const Var& hidden, std::span<const int64_t> lengths, nn::Context& context) const {
  require(classifier != nullptr, config_.model_type, ": the model has no classifier");
  const float dropout = config_.classifier_dropout.value_or(config_.hidden_dropout_prob);
  Var first = first_tokens(hidden, lengths);
  if (config_.model_type == "roberta") first = dropped(first, dropout, context);
  return (*classifier)(dropped(through_pooler(first), dropout, context));
}

Var Bert::token_logits(const Var& rows) const {
  require(masked_lm != nullptr, config_.model_type, ": the model has no head for masked tokens");
  // RoBERTa's head is gelu whatever the layers are.
  const Activation activation =
      config_.model_type == "roberta" ? Activation::gelu : bert_activation(config_.hidden_act);
  return token_output_(masked_lm->norm(masked_lm->dense(rows, activation)));
}

}  // namespace fovea::models
