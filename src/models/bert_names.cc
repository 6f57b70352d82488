// Tables of the parameter names that Hugging Face uses for each model type of the BERT family.
#include "models/bert_names.h"

namespace fovea::models {
namespace {

struct Row {
  const char* ours;
  std::vector<const char*> theirs;
};

struct Table {
  const char* prefix;
  const char* layers;  // where layer <i> stands
  std::vector<Row> embeddings, layer, pooler, masked_lm, classifier;
  std::vector<Row> next_sentence;  // none: the family has no such head
  std::vector<Row> untied;         // of a masked-token head that does not read the table of words
  bool pooler_of_head;             // the pooler belongs to the classifier
  // Of a classifier whose own dense layer takes the place of the encoder's pooler.
  std::vector<Row> classifier_pooler = {};
};

const std::vector<Row> kEmbeddings = {
    {"embeddings.word", {"embeddings.word_embeddings.weight"}},
    {"embeddings.position", {"embeddings.position_embeddings.weight"}},
    {"embeddings.type", {"embeddings.token_type_embeddings.weight"}},
    {"embeddings.norm.weight", {"embeddings.LayerNorm.weight"}},
    {"embeddings.norm.bias", {"embeddings.LayerNorm.bias"}},
};

const std::vector<Row> kBertLayer = {
    {"self_attn.in_proj_weight",
     {"attention.self.query.weight", "attention.self.key.weight", "attention.self.value.weight"}},
    {"self_attn.in_proj_bias",
     {"attention.self.query.bias", "attention.self.key.bias", "attention.self.value.bias"}},
    {"self_attn.out_proj.weight", {"attention.output.dense.weight"}},
    {"self_attn.out_proj.bias", {"attention.output.dense.bias"}},
    {"linear1.weight", {"intermediate.dense.weight"}},
    {"linear1.bias", {"intermediate.dense.bias"}},
    {"linear2.weight", {"output.dense.weight"}},
    {"linear2.bias", {"output.dense.bias"}},
    {"norm1.weight", {"attention.output.LayerNorm.weight"}},
    {"norm1.bias", {"attention.output.LayerNorm.bias"}},
    {"norm2.weight", {"output.LayerNorm.weight"}},
    {"norm2.bias", {"output.LayerNorm.bias"}},
};

const Table kBert = {
    .prefix = "bert.",
    .layers = "encoder.layer.",
    .embeddings = kEmbeddings,
    .layer = kBertLayer,
    .pooler = {{"pooler.weight", {"pooler.dense.weight"}}, {"pooler.bias", {"pooler.dense.bias"}}},
    .masked_lm = {{"masked_lm.dense.weight", {"cls.predictions.transform.dense.weight"}},
                  {"masked_lm.dense.bias", {"cls.predictions.transform.dense.bias"}},
                  {"masked_lm.norm.weight", {"cls.predictions.transform.LayerNorm.weight"}},
                  {"masked_lm.norm.bias", {"cls.predictions.transform.LayerNorm.bias"}},
                  {"masked_lm.bias", {"cls.predictions.bias"}}},
    .classifier = {{"classifier.weight", {"classifier.weight"}}, {"classifier.bias", {"classifier.bias"}}},
    .next_sentence = {{"next_sentence.weight", {"cls.seq_relationship.weight"}},
                      {"next_sentence.bias", {"cls.seq_relationship.bias"}}},
    .untied = {{"masked_lm.output", {"cls.predictions.decoder.weight"}},
               {"masked_lm.bias", {"cls.predictions.decoder.bias"}}},
    .pooler_of_head = false,
};

const Table kRoberta = {
    .prefix = "roberta.",
    .layers = "encoder.layer.",
    .embeddings = kEmbeddings,
    .layer = kBertLayer,
    .pooler = {{"pooler.weight", {"classifier.dense.weight"}}, {"pooler.bias", {"classifier.dense.bias"}}},
    .masked_lm = {{"masked_lm.dense.weight", {"lm_head.dense.weight"}},
                  {"masked_lm.dense.bias", {"lm_head.dense.bias"}},
                  {"masked_lm.norm.weight", {"lm_head.layer_norm.weight"}},
                  {"masked_lm.norm.bias", {"lm_head.layer_norm.bias"}},
                  {"masked_lm.bias", {"lm_head.bias"}}},
    .classifier = {{"classifier.weight", {"classifier.out_proj.weight"}},
                   {"classifier.bias", {"classifier.out_proj.bias"}}},
    .next_sentence = {},
    .untied = {{"masked_lm.output", {"lm_head.decoder.weight"}},
               {"masked_lm.bias", {"lm_head.decoder.bias"}}},
    .pooler_of_head = true,
};

const Table kDistilbert = {
    .prefix = "distilbert.",
    .layers = "transformer.layer.",
    .embeddings = kEmbeddings,
    .layer = {{"self_attn.in_proj_weight",
               {"attention.q_lin.weight", "attention.k_lin.weight", "attention.v_lin.weight"}},
              {"self_attn.in_proj_bias",
               {"attention.q_lin.bias", "attention.k_lin.bias", "attention.v_lin.bias"}},
              {"self_attn.out_proj.weight", {"attention.out_lin.weight"}},
              {"self_attn.out_proj.bias", {"attention.out_lin.bias"}},
              {"linear1.weight", {"ffn.lin1.weight"}},
              {"linear1.bias", {"ffn.lin1.bias"}},
              {"linear2.weight", {"ffn.lin2.weight"}},
              {"linear2.bias", {"ffn.lin2.bias"}},
              {"norm1.weight", {"sa_layer_norm.weight"}},
              {"norm1.bias", {"sa_layer_norm.bias"}},
              {"norm2.weight", {"output_layer_norm.weight"}},
              {"norm2.bias", {"output_layer_norm.bias"}}},
    .pooler = {{"pooler.weight", {"pre_classifier.weight"}}, {"pooler.bias", {"pre_classifier.bias"}}},
    .masked_lm = {{"masked_lm.dense.weight", {"vocab_transform.weight"}},
                  {"masked_lm.dense.bias", {"vocab_transform.bias"}},
                  {"masked_lm.norm.weight", {"vocab_layer_norm.weight"}},
                  {"masked_lm.norm.bias", {"vocab_layer_norm.bias"}},
                  {"masked_lm.bias", {"vocab_projector.bias"}}},
    .classifier = {{"classifier.weight", {"classifier.weight"}}, {"classifier.bias", {"classifier.bias"}}},
    .next_sentence = {},
    .untied = {{"masked_lm.output", {"vocab_projector.weight"}},
               {"masked_lm.bias", {"vocab_projector.bias"}}},
    .pooler_of_head = true,
};

// RoBERTa's names, the projections of global tokens, and an encoder that may have a pooler of its own.
const Table kLongformer = [] {
  Table table = kRoberta;
  table.prefix = "longformer.";
  table.layer.push_back({"self_attn.global_in_proj_weight",
                         {"attention.self.query_global.weight", "attention.self.key_global.weight",
                          "attention.self.value_global.weight"}});
  table.layer.push_back({"self_attn.global_in_proj_bias",
                         {"attention.self.query_global.bias", "attention.self.key_global.bias",
                          "attention.self.value_global.bias"}});
  table.classifier_pooler = table.pooler;
  table.pooler = kBert.pooler;
  table.pooler_of_head = false;
  return table;
}();

// BERT's names with RoBERTa's classifier.
const Table kBigBird = [] {
  Table table = kBert;
  table.pooler = {{"pooler.weight", {"pooler.weight"}}, {"pooler.bias", {"pooler.bias"}}};
  table.classifier_pooler = kRoberta.pooler;
  table.classifier = kRoberta.classifier;
  return table;
}();

// RoBERTa's heads on layers with names of their own, and one table of distances for all of them.
const Table kMpnet = [] {
  Table table = kRoberta;
  table.prefix = "mpnet.";
  std::erase_if(table.embeddings, [](const Row& row) { return row.ours == std::string("embeddings.type"); });
  table.embeddings.push_back({"relative_bias", {"encoder.relative_attention_bias.weight"}});
  table.layer = {
      {"self_attn.in_proj_weight",
       {"attention.attn.q.weight", "attention.attn.k.weight", "attention.attn.v.weight"}},
      {"self_attn.in_proj_bias", {"attention.attn.q.bias", "attention.attn.k.bias", "attention.attn.v.bias"}},
      {"self_attn.out_proj.weight", {"attention.attn.o.weight"}},
      {"self_attn.out_proj.bias", {"attention.attn.o.bias"}},
      {"linear1.weight", {"intermediate.dense.weight"}},
      {"linear1.bias", {"intermediate.dense.bias"}},
      {"linear2.weight", {"output.dense.weight"}},
      {"linear2.bias", {"output.dense.bias"}},
      {"norm1.weight", {"attention.LayerNorm.weight"}},
      {"norm1.bias", {"attention.LayerNorm.bias"}},
      {"norm2.weight", {"output.LayerNorm.weight"}},
      {"norm2.bias", {"output.LayerNorm.bias"}},
  };
  return table;
}();

const Table& table_of(const BertConfig& config) {
  if (config.model_type == "longformer") return kLongformer;
  if (config.model_type == "big_bird") return kBigBird;
  if (config.model_type == "mpnet") return kMpnet;
  if (config.model_type == "distilbert") return kDistilbert;
  return config.counts_from_pad() ? kRoberta : kBert;
}

}  // namespace

std::vector<BertName> bert_names(const BertConfig& config, const BertHeads& heads) {
  const Table& table = table_of(config);
  std::vector<BertName> names;
  const auto add = [&](const std::vector<Row>& rows, const std::string& ours, const std::string& theirs,
                       bool of_head) {
    for (const Row& row : rows) {
      BertName name{ours + row.ours, {}, of_head};
      for (const char* part : row.theirs) name.theirs.push_back(theirs + part);
      names.push_back(std::move(name));
    }
  };
  add(table.embeddings, "", "", false);
  if (config.type_vocab_size == 0)
    std::erase_if(names, [](const BertName& name) { return name.ours == "embeddings.type"; });
  if (config.added_global_tokens > 0)
    names.push_back({"embeddings.global", {"embeddings.global_embeddings.weight"}, false});
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string number = std::to_string(i) + ".";
    add(table.layer, "encoder.layers." + number, table.layers + number, false);
  }
  if (!config.use_bias)
    std::erase_if(names, [](const BertName& name) { return name.ours.ends_with("in_proj_bias"); });
  if (heads.labels > 0 && !table.classifier_pooler.empty())
    add(table.classifier_pooler, "", "", true);
  else if (heads.pooler || heads.next_sentence || heads.labels > 0)
    add(table.pooler, "", "", table.pooler_of_head);
  if (heads.masked_lm) add(table.masked_lm, "", "", true);
  if (heads.masked_lm && !config.tie_word_embeddings) {
    std::erase_if(names, [](const BertName& name) { return name.ours == "masked_lm.bias"; });
    add(table.untied, "", "", true);
  }
  if (heads.next_sentence) add(table.next_sentence, "", "", true);
  if (heads.labels > 0) add(table.classifier, "", "", true);
  return names;
}

std::string bert_prefix(const BertConfig& config) {
  return table_of(config).prefix;
}

std::vector<std::string> bert_spellings(const std::string& name) {
  std::vector<std::string> all{name};
  const auto respell = [&](const std::string& ending, const std::string& other) {
    if (name.ends_with(ending)) all.push_back(name.substr(0, name.size() - ending.size()) + other);
  };
  respell("LayerNorm.weight", "LayerNorm.gamma");
  respell("LayerNorm.bias", "LayerNorm.beta");
  // The bias of a masked-token head is in one place, in the other or in both.
  for (const std::string head : {"cls.predictions.", "lm_head."}) {
    respell(head + "decoder.bias", head + "bias");
    if (name == head + "bias") all.push_back(head + "decoder.bias");
  }
  return all;
}

}  // namespace fovea::models
