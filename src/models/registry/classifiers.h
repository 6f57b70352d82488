// Text classifiers. See models/registry.h.
#pragma once

#include "models/han.h"
#include "models/lstm_classifier.h"
#include "models/registry.h"
#include "models/transformer_classifier.h"

namespace fovea::models {

struct Classifiers {
  using Base = ClassificationModel;
  static constexpr std::array kDataSettings = {"vocabulary", "classes", "pairs"};
  static Json small_data_settings() { return {{"vocabulary", 8}, {"classes", 2}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<LstmClassifierConfig, LstmClassifier>{"lstm"});
    visit(ModelEntry<HanConfig, Han>{"han"});
    visit(ModelEntry<TransformerClassifierConfig, TransformerClassifier>{"transformer"});
  }
};

}  // namespace fovea::models
