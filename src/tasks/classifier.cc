#include "tasks/classifier.h"

#include "io/file.h"
#include "io/safetensors.h"
#include "models/registry.h"
#include "nn/int8_weights.h"
#include "nn/weights.h"
#include "tasks/bert_classifier.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {

namespace {

ClassifierParts read_classifier(const std::filesystem::path& folder) {
  if (is_foreign_folder(folder)) return load_bert_classifier(folder);
  const FolderConfig config = read_folder_config(folder, "classify");
  const std::string where = (folder / "config.json").string();
  ClassifierParts parts;
  parts.model = config.model;
  parts.config = config.settings;
  require(config.all.contains("labels"), where, ": a classifier without labels");
  value_from_json(config.all["labels"], parts.labels, where + ": labels");
  if (config.all.contains("target")) {
    std::string form;
    value_from_json(config.all["target"], form, where + ": target");
    parts.form = label_form_named(form, where + ": target");
  }
  if (config.all.contains("label_separator"))
    value_from_json(config.all["label_separator"], parts.label_separator, where + ": label_separator");
  if (config.all.contains("lowercase"))
    value_from_json(config.all["lowercase"], parts.encoding.lowercase, where + ": lowercase");
  if (config.all.contains("max_length"))
    value_from_json(config.all["max_length"], parts.encoding.max_tokens, where + ": max_length");
  if (config.model == kBertModel) return load_bert_checkpoint(folder, config.settings, std::move(parts));
  parts.tokenizer = data::load_tokenizers(folder).source;
  const int64_t vocabulary = config.settings.value("vocabulary", int64_t{0});
  const int64_t classes = config.settings.value("classes", int64_t{0});
  require(parts.tokenizer->size() == vocabulary, folder.string(), ": the tokenizer has ",
          parts.tokenizer->size(), " tokens, but config.json says ", vocabulary);
  const size_t outputs = parts.form == data::LabelForm::number ? 1 : parts.labels.size();
  require(static_cast<int64_t>(outputs) == classes, where, ": ", parts.labels.size(), " labels for ", classes,
          " classes");
  require(classes >= 2 || parts.form != data::LabelForm::one, where, ": ", classes,
          " classes, wanted at least 2");
  parts.network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    auto network = models::make_model<models::Classifiers>(config.model, config.settings, rng);
    network->read_as(parts.form);
    return network;
  });
  parts.network->use_tokenizer(*parts.tokenizer);
  parts.encoding.form = parts.network->form();
  parts.encoding.pairs = config.settings.value("pairs", false);
  return parts;
}

}  // namespace

const char* name_of(data::LabelForm form) {
  switch (form) {
    case data::LabelForm::one:
      return "one";
    case data::LabelForm::several:
      return "several";
    case data::LabelForm::number:
      break;
  }
  return "number";
}

data::LabelForm label_form_named(const std::string& name, const std::string& where) {
  for (const data::LabelForm form : {data::LabelForm::one, data::LabelForm::several, data::LabelForm::number})
    if (name == name_of(form)) return form;
  fail(where, ": got ", in_quotes(name), ", wanted one, several or number");
}

ClassifierParts load_classifier(const std::filesystem::path& folder, const std::string& compute) {
  const Compute kind = compute_named(compute);
  ClassifierParts parts = read_classifier(folder);
  if (kind == Compute::int8) nn::round_to_int8(*parts.network, folder.string());
  parts.prepared = nn::Prepared(*parts.network, kind);
  return parts;
}

void save_classifier_config(const std::filesystem::path& folder, const ClassifierParts& parts) {
  if (parts.tokenizer_files.empty()) data::save_tokenizers(folder, {parts.tokenizer, parts.tokenizer});
  for (const auto& [name, bytes] : parts.tokenizer_files) write_atomically(folder / name, bytes);
  save_json(folder / "config.json", Json{{"task", "classify"},
                                         {"model", parts.model},
                                         {"settings", parts.config},
                                         {"labels", parts.labels},
                                         {"target", name_of(parts.form)},
                                         {"label_separator", parts.label_separator},
                                         {"lowercase", parts.encoding.lowercase},
                                         {"max_length", parts.encoding.max_tokens}});
}

void save_classifier(const std::filesystem::path& folder, const ClassifierParts& parts) {
  make_directories(folder);
  if (parts.model == kBertModel) return save_bert_classifier(folder, parts);
  save_safetensors(folder / "model.safetensors", nn::weights_of(*parts.network), {{"format", "fovea"}});
  save_classifier_config(folder, parts);
}

std::vector<Prediction> classify_ids(const models::ClassificationModel& network,
                                     const data::EncodedTexts& texts, int64_t batch_tokens,
                                     const std::function<void(const data::TextBatch&)>& after_batch) {
  std::vector<Prediction> told(static_cast<size_t>(texts.size()));
  if (texts.size() == 0) return told;
  std::vector<data::BatchOrder::Size> sizes;
  for (int64_t i = 0; i < texts.size(); ++i) sizes.push_back({texts.length(i), 0});
  data::BatchOrder order(std::move(sizes), 0, {.max_tokens = batch_tokens, .shuffle = false});
  const NoGrad no_grad;
  const nn::Prepared prepared(network);
  nn::Context context;
  for (int64_t batch = 0; batch < order.batches_per_epoch(); ++batch) {
    const data::TextBatch packed = data::make_text_batch(texts, order.next());
    const Tensor outputs =
        network.outputs({packed.tokens, packed.lengths, packed.firsts}, context).value().contiguous();
    const int64_t classes = outputs.size(1);
    for (size_t i = 0; i < packed.places.size(); ++i)
      told[static_cast<size_t>(packed.places[i])] =
          prediction_of({outputs.data() + static_cast<int64_t>(i) * classes, static_cast<size_t>(classes)},
                        network.read_as());
    if (after_batch) after_batch(packed);
  }
  return told;
}

std::vector<Prediction> classify(const ClassifierParts& parts, std::span<const std::string> texts,
                                 int64_t batch_tokens) {
  return classify_ids(*parts.network, data::encode_texts(texts, *parts.tokenizer, parts.encoding),
                      batch_tokens);
}

}  // namespace fovea::tasks
