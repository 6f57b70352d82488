// Classifiers of clips and bags of pictures. See models/registry.h.
#pragma once

#include "models/clip.h"
#include "models/registry.h"

namespace fovea::models {

struct ClipClassifiers {
  using Base = ClipClassifier;
  static constexpr std::array kDataSettings = {"classes", "channels", "height", "width"};
  static Json small_data_settings() {
    return {{"classes", 2}, {"channels", 1}, {"height", 28}, {"width", 28}};
  }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<ClipConfig, ClipClassifier>{"lenet"});
  }
};

}  // namespace fovea::models
