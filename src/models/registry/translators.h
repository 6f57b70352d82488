// Translation models. See models/registry.h.
#pragma once

#include "models/bahdanau.h"
#include "models/luong.h"
#include "models/registry.h"
#include "models/transformer.h"

namespace fovea::models {

struct Translators {
  using Base = TranslationModel;
  static constexpr std::array kDataSettings = {"source_vocabulary", "target_vocabulary"};
  static Json small_data_settings() { return {{"source_vocabulary", 8}, {"target_vocabulary", 8}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<TransformerConfig, Transformer>{"transformer"});
    visit(ModelEntry<BahdanauConfig, Bahdanau>{"bahdanau"});
    visit(ModelEntry<LuongConfig, Luong>{"luong"});
    visit(ModelEntry<RnnConfig, Bahdanau>{"rnn"});
  }
};

}  // namespace fovea::models
