// Image classifiers. See models/registry.h.
#pragma once

#include "models/registry.h"
#include "models/resnet.h"
#include "models/vit.h"

namespace fovea::models {

struct ImageClassifiers {
  using Base = ImageClassifier;
  static constexpr std::array kDataSettings = {"classes", "channels", "picture_height", "picture_width"};
  static Json small_data_settings() { return {{"classes", 2}, {"channels", 1}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<ResNetConfig, ResNet>{"resnet"});
    visit(ModelEntry<VitConfig, Vit>{"vit"});
  }
};

}  // namespace fovea::models
