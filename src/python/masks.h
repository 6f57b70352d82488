// Masks that calls share, by number too, with the plans prepared for each.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "attention/strided.h"

namespace fovea::python {

// A mask with what was prepared for it.
struct SharedMask {
  explicit SharedMask(KeyMask given) : mask(std::make_shared<const KeyMask>(std::move(given))) {}
  const std::shared_ptr<const KeyMask> mask;
  PreparedCache cache{8};
};
// As Python holds it.
struct Mask {
  std::shared_ptr<SharedMask> shared;
};

// The mask of a number, as long as Python holds it; throws Error when it does not.
std::shared_ptr<SharedMask> find_mask(int64_t number);

// What is prepared for calls of this text and size, made when it is first needed. mask: may be null.
std::shared_ptr<const PreparedAttention> prepared_for(AttentionText text, const AttentionSizes& sizes,
                                                      SharedMask* mask);

void add_masks(nanobind::module_& module);

}  // namespace fovea::python
