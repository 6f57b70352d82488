// Networks that find ships by several tasks with one trunk. See models/registry.h.
#pragma once

#include "models/partition.h"
#include "models/registry.h"

namespace fovea::models {

struct Partitioners {
  using Base = Partition;
  static constexpr std::array<const char*, 0> kDataSettings = {};
  static Json small_data_settings() { return Json::object(); }
  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(ModelEntry<PartitionConfig, Partition>{"partition"});
  }
};

}  // namespace fovea::models
