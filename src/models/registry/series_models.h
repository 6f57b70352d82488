// Models of sequences of numbers. See models/registry.h.
#pragma once

#include "models/registry.h"
#include "models/series_lstm.h"
#include "models/series_transformer.h"

namespace fovea::models {

struct SeriesModels {
  using Base = SeriesModel;
  static constexpr std::array kDataSettings = {"features", "known", "window", "targets", "outputs"};
  static Json small_data_settings() {
    return {{"features", 2}, {"known", 0}, {"window", 512}, {"targets", 2}, {"outputs", 2}};
  }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<SeriesTransformerConfig, SeriesTransformer>{"transformer"});
    visit(ModelEntry<SeriesLstmConfig, SeriesLstm>{"lstm"});
  }
};

}  // namespace fovea::models
