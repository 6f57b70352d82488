// Classifiers that see a picture in several glimpses. See models/registry.h.
#pragma once

#include "models/glimpse.h"
#include "models/registry.h"

namespace fovea::models {

struct GlimpseClassifiers {
  using Base = GlimpseClassifier;
  static constexpr std::array kDataSettings = {"classes", "channels"};
  static Json small_data_settings() { return {{"classes", 2}, {"channels", 1}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<RamConfig, Ram>{"ram"});
    visit(ModelEntry<SoftGlimpseConfig, SoftGlimpses>{"soft"});
  }
};

}  // namespace fovea::models
