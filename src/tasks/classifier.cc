#include "tasks/classifier.h"

#include "base/stop_check.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/registry/classifiers.h"
#include "nn/int8_weights.h"
#include "nn/weights.h"
#include "tasks/bert_classifier.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {

namespace {

LoadedClassifier read_classifier(const std::filesystem::path& folder) {
  const FolderConfig config = read_folder_config(folder, "classify");
  const std::string where = (folder / "config.json").string();
  LoadedClassifier loaded;
  loaded.model = config.model;
  loaded.config = config.settings;
  require(config.all.contains("labels"), where, ": a classifier without labels");
  value_from_json(config.all["labels"], loaded.labels, where + ": labels");
  if (config.all.contains("target")) {
    std::string form;
    value_from_json(config.all["target"], form, where + ": target");
    loaded.form = label_form_named(form, where + ": target");
  }
  if (config.all.contains("label_separator"))
    value_from_json(config.all["label_separator"], loaded.label_separator, where + ": label_separator");
  if (config.all.contains("lowercase"))
    value_from_json(config.all["lowercase"], loaded.encoding.lowercase, where + ": lowercase");
  if (config.all.contains("max_length"))
    value_from_json(config.all["max_length"], loaded.encoding.max_tokens, where + ": max_length");
  require(loaded.encoding.max_tokens >= 0 && loaded.encoding.max_tokens < int64_t{1} << 31, where,
          ": max_length: got ", loaded.encoding.max_tokens, ", wanted 0 (all tokens of a text) to 2^31 - 1");
  if (config.model == kBertModel) return load_bert_checkpoint(folder, config.settings, std::move(loaded));
  loaded.tokenizer = data::load_tokenizers(folder).source;
  const int64_t vocabulary = config.settings.value("vocabulary", int64_t{0});
  const int64_t classes = config.settings.value("classes", int64_t{0});
  require(loaded.tokenizer->size() == vocabulary, folder.string(), ": the tokenizer has ",
          loaded.tokenizer->size(), " tokens, but config.json says ", vocabulary);
  const size_t outputs = loaded.form == data::LabelForm::number ? 1 : loaded.labels.size();
  require(static_cast<int64_t>(outputs) == classes, where, ": ", loaded.labels.size(), " labels for ",
          classes, " classes");
  require(classes >= 2 || loaded.form != data::LabelForm::one, where, ": ", classes,
          " classes, wanted at least 2");
  loaded.network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    auto network = models::make_model<models::Classifiers>(config.model, config.settings, rng);
    network->read_as(loaded.form);
    return network;
  });
  loaded.network->use_tokenizer(*loaded.tokenizer);
  loaded.encoding.form = loaded.network->form();
  loaded.encoding.pairs = config.settings.value("pairs", false);
  return loaded;
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

LoadedClassifier load_classifier(const std::filesystem::path& folder, const std::string& compute) {
  const Compute kind = compute_named(compute);
  const bool published = is_foreign_folder(folder);
  LoadedClassifier loaded = published ? load_bert_classifier(folder, compute) : read_classifier(folder);
  loaded.prepared = published ? nn::Prepared(*loaded.network, kind)
                              : nn::prepare_for_use(*loaded.network, kind, folder.string());
  return loaded;
}

void save_classifier_config(const std::filesystem::path& folder, const LoadedClassifier& loaded) {
  if (loaded.tokenizer_files.empty()) data::save_tokenizers(folder, {loaded.tokenizer, loaded.tokenizer});
  for (const auto& [name, bytes] : loaded.tokenizer_files) write_atomically(folder / name, bytes);
  save_json(folder / "config.json", Json{{"task", "classify"},
                                         {"model", loaded.model},
                                         {"settings", loaded.config},
                                         {"labels", loaded.labels},
                                         {"target", name_of(loaded.form)},
                                         {"label_separator", loaded.label_separator},
                                         {"lowercase", loaded.encoding.lowercase},
                                         {"max_length", loaded.encoding.max_tokens}});
}

void save_classifier(const std::filesystem::path& folder, const LoadedClassifier& loaded) {
  make_directories(folder);
  if (loaded.model == kBertModel) return save_bert_classifier(folder, loaded);
  save_safetensors(folder / "model.safetensors", nn::weights_of(*loaded.network), {{"format", "fovea"}});
  save_classifier_config(folder, loaded);
}

std::vector<Prediction> classify_ids(const models::ClassificationModel& network,
                                     const data::EncodedTexts& texts, int64_t batch_tokens,
                                     const std::function<void(const data::TextBatch&)>& after_batch) {
  std::vector<Prediction> predictions(static_cast<size_t>(texts.size()));
  if (texts.size() == 0) return predictions;
  std::vector<data::BatchOrder::Size> sizes;
  for (int64_t i = 0; i < texts.size(); ++i) sizes.push_back({texts.length(i), 0});
  data::BatchOrder order(std::move(sizes), 0, {.max_tokens = batch_tokens, .shuffle = false});
  const NoGrad no_grad;
  const nn::Prepared prepared(network);
  nn::Context context;
  for (int64_t batch = 0; batch < order.batches_per_epoch(); ++batch) {
    check_stop();
    const data::TextBatch packed = data::make_text_batch(texts, order.next());
    const Tensor outputs =
        network.outputs({packed.tokens, packed.lengths, packed.firsts}, context).value().contiguous();
    const int64_t classes = outputs.size(1);
    for (size_t i = 0; i < packed.places.size(); ++i)
      predictions[static_cast<size_t>(packed.places[i])] =
          prediction_of({outputs.data() + static_cast<int64_t>(i) * classes, static_cast<size_t>(classes)},
                        network.read_as());
    if (after_batch) after_batch(packed);
  }
  return predictions;
}

std::vector<Prediction> classify(const LoadedClassifier& loaded, std::span<const std::string> texts,
                                 int64_t batch_tokens) {
  return classify_ids(*loaded.network, data::encode_texts(texts, *loaded.tokenizer, loaded.encoding),
                      batch_tokens);
}

}  // namespace fovea::tasks
