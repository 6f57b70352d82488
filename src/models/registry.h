// Models by name, a family for each task: from a config to a network, as a model folder needs it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "models/bahdanau.h"
#include "models/bert_pretraining.h"
#include "models/han.h"
#include "models/lstm_classifier.h"
#include "models/luong.h"
#include "models/partition.h"
#include "models/resnet.h"
#include "models/series_lstm.h"
#include "models/series_transformer.h"
#include "models/show_attend_tell.h"
#include "models/transformer.h"
#include "models/transformer_classifier.h"
#include "models/vit.h"

namespace fovea::models {

// A name and what belongs to it.
template <class ConfigType, class ModelType>
struct ModelEntry {
  using Config = ConfigType;
  using Model = ModelType;
  const char* name;
};

// A family calls visit(entry) for every model of a task: the one list that names, configs and flags are read
// from. kCounted are the settings that data decides, not a person; small_counts() are values of them that any
// model takes.
struct Translators {
  using Base = TranslationModel;
  static constexpr std::array kCounted = {"source_vocabulary", "target_vocabulary"};
  static Json small_counts() { return {{"source_vocabulary", 8}, {"target_vocabulary", 8}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<TransformerConfig, Transformer>{"transformer"});
    visit(ModelEntry<BahdanauConfig, Bahdanau>{"bahdanau"});
    visit(ModelEntry<LuongConfig, Luong>{"luong"});
    visit(ModelEntry<RnnConfig, Bahdanau>{"rnn"});
  }
};

struct Classifiers {
  using Base = ClassificationModel;
  static constexpr std::array kCounted = {"vocabulary", "classes", "pairs"};
  static Json small_counts() { return {{"vocabulary", 8}, {"classes", 2}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<LstmClassifierConfig, LstmClassifier>{"lstm"});
    visit(ModelEntry<HanConfig, Han>{"han"});
    visit(ModelEntry<TransformerClassifierConfig, TransformerClassifier>{"transformer"});
  }
};

struct ImageClassifiers {
  using Base = ImageClassifier;
  static constexpr std::array kCounted = {"classes", "channels", "picture_height", "picture_width"};
  static Json small_counts() { return {{"classes", 2}, {"channels", 1}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<ResNetConfig, ResNet>{"resnet"});
    visit(ModelEntry<VitConfig, Vit>{"vit"});
  }
};

struct Partitioners {
  using Base = Partition;
  static constexpr std::array<const char*, 0> kCounted = {};
  static Json small_counts() { return Json::object(); }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<PartitionConfig, Partition>{"partition"});
  }
};

struct SeriesModels {
  using Base = SeriesModel;
  static constexpr std::array kCounted = {"features", "known", "window", "targets", "outputs"};
  static Json small_counts() {
    return {{"features", 2}, {"known", 0}, {"window", 512}, {"targets", 2}, {"outputs", 2}};
  }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<SeriesTransformerConfig, SeriesTransformer>{"transformer"});
    visit(ModelEntry<SeriesLstmConfig, SeriesLstm>{"lstm"});
  }
};

struct Encoders {
  using Base = BertPretraining;
  static constexpr std::array kCounted = {"vocabulary"};
  static Json small_counts() { return {{"vocabulary", 8}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<BertPretrainingConfig, BertPretraining>{"bert"});
  }
};

struct Captioners {
  using Base = CaptionModel;
  static constexpr std::array kCounted = {"vocabulary", "channels"};
  static Json small_counts() { return {{"vocabulary", 8}, {"channels", 4}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<ShowAttendTellConfig, ShowAttendTell>{"show_attend_tell"});
  }
};

// The names that make_model knows.
template <class Family>
std::vector<std::string_view> model_names();

// The settings that a person may choose.
template <class Family>
std::vector<std::string_view> model_settings(const std::string& model);

// All settings of a model: `settings` over the defaults, and over both the counted ones that the model has.
// Throws Error on unknown names, beginning with `where`.
template <class Family>
Json model_config(const std::string& model, const Json& settings, const Json& counted = Json::object(),
                  const std::string& where = "model settings");

// Throws Error, beginning with `where` where a name or a number alone is wrong, when no network can have
// these settings, whatever the data: to be called before anything is read. Draws no weights. `counted`: what is
// known of the data already.
template <class Family>
void check_settings(const std::string& model, const Json& settings,
                    const std::string& where = "model settings",
                    const Json& counted = Family::small_counts());

// Whether a model of these settings, as a folder has them, has attention that can be shown. Throws Error on an unknown
// model or setting.
template <class Family>
bool has_attention(const std::string& model, const Json& settings);

// The counted settings of translators and of classifiers.
Json vocabularies(int64_t source, int64_t target);
Json vocabulary_and_classes(int64_t vocabulary, int64_t classes, bool pairs = false);
// Of image classifiers.
Json classes_and_size(int64_t classes, int64_t channels, int64_t height, int64_t width);

// A network with fresh weights.
template <class Family>
std::unique_ptr<typename Family::Base> make_model(const std::string& model, const Json& config, Rng& rng);

}  // namespace fovea::models
