// The families of models that look at pictures glimpse by glimpse and at clips frame by frame; see models/registry.h.
#pragma once

#include "models/clip.h"
#include "models/glimpse.h"
#include "models/registry.h"

namespace fovea::models {

struct GlimpseClassifiers {
  using Base = GlimpseClassifier;
  static constexpr std::array kCounted = {"classes", "channels"};
  static Json small_counts() { return {{"classes", 2}, {"channels", 1}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<RamConfig, Ram>{"ram"});
    visit(ModelEntry<SoftGlimpseConfig, SoftGlimpses>{"soft"});
  }
};

struct ClipClassifiers {
  using Base = ClipClassifier;
  static constexpr std::array kCounted = {"classes", "channels", "height", "width"};
  static Json small_counts() { return {{"classes", 2}, {"channels", 1}, {"height", 28}, {"width", 28}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<ClipConfig, ClipClassifier>{"lenet"});
  }
};

}  // namespace fovea::models
