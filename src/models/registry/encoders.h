// Encoders that are pre-trained on text. See models/registry.h.
#pragma once

#include "models/bert_pretraining.h"
#include "models/registry.h"

namespace fovea::models {

struct Encoders {
  using Base = BertPretraining;
  static constexpr std::array kDataSettings = {"vocabulary"};
  static Json small_data_settings() { return {{"vocabulary", 8}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<BertPretrainingConfig, BertPretraining>{"bert"});
  }
};

}  // namespace fovea::models
