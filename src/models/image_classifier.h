// What every image classifier is: a network that scores the classes of a picture.
#pragma once

#include <cstdint>
#include <span>

#include "autograd/ops_conv.h"
#include "nn/module.h"

namespace fovea::models {

class ImageClassifier : public nn::Module {
 public:
  // x: [N, H, W, channels] -> [N, classes]. An AttentionObserver sees gates and self-attention on the way.
  virtual Var logits(const Var& x, nn::Context& context) const = 0;
  virtual int64_t classes() const = 0;
  virtual int64_t channels() const = 0;
  // The only size of picture that the network takes; 0 x 0: any.
  virtual Size2d picture_size() const { return 0; }
  // Rows and columns of the patches that self-attention sees behind its class token; 0 x 0: there is none.
  virtual Size2d patch_grid() const { return 0; }

  // What training minimises: the mean cross-entropy; labels: one class for every picture. What hard attention
  // drew on the way is rewarded by the loss of its picture (nn/choices.h).
  Var loss(const Var& x, std::span<const int32_t> labels, float smoothing, nn::Context& context) const;
};

}  // namespace fovea::models
