// Image captioning models. See models/registry.h.
#pragma once

#include "models/registry.h"
#include "models/show_attend_tell.h"

namespace fovea::models {

struct Captioners {
  using Base = CaptionModel;
  static constexpr std::array kDataSettings = {"vocabulary", "channels"};
  static Json small_data_settings() { return {{"vocabulary", 8}, {"channels", 4}}; }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<ShowAttendTellConfig, ShowAttendTell>{"show_attend_tell"});
  }
};

}  // namespace fovea::models
