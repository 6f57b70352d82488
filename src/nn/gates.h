// Attention whose weights are gates: over channels, places and branches of image networks.
//
// Each is a query that meets keys, and a selection: a squeezed image meets one learned key for every channel
// and a sigmoid opens or closes it (squeeze and excitation); a softmax chooses among branches. So
// each shows its weights to this thread's AttentionObserver as attend() does: [B, 1, queries, keys]. Nobody
// looking costs one test of a pointer. Images are [B, H, W, C].
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "attention/attention.h"
#include "nn/conv.h"
#include "nn/layers.h"

namespace fovea::nn {

// Hu et al. (2018): x * sigmoid(fc2(relu(fc1(mean over places)))).
// Parameters: fc1.weight [C / reduction, C], fc1.bias, fc2.weight [C, C / reduction], fc2.bias; the biases only
// where requested.
class SqueezeExcite : public Module {
 public:
  SqueezeExcite(int64_t channels, int64_t reduction, Rng& rng, bool with_bias = true);
  // Shown under `name`: one query, C keys.
  Var operator()(const Var& x, std::string_view name = {}, const AttentionSite& site = {}) const;
  Linear fc1, fc2;
};

// The first half of CBAM: one small network for the mean and the maximum over places, a sigmoid of the sum.
// Parameters as SqueezeExcite's.
class ChannelAttention : public Module {
 public:
  ChannelAttention(int64_t channels, int64_t reduction, Rng& rng, bool with_bias = true);
  Var operator()(const Var& x, std::string_view name = {}, const AttentionSite& site = {}) const;
  Linear fc1, fc2;
};

// The second half of CBAM: mean and maximum over channels, a convolution without bias, a sigmoid.
// Parameters: conv.weight [1, 2, kernel, kernel].
class SpatialAttention : public Module {
 public:
  explicit SpatialAttention(Rng& rng, int64_t kernel = 7);  // odd
  // Shown under `name`: one query, H W keys.
  Var operator()(const Var& x, std::string_view name = {}, const AttentionSite& site = {}) const;
  Conv2d conv;
};

struct CbamOptions {
  int64_t kernel = 7;  // of SpatialAttention; odd
  bool bias = true;    // of ChannelAttention's network; most published code has none
};

// Woo et al. (2018): which channels, then which places. Children: channel, spatial; shown as name +
// ".channel" and name + ".spatial".
class Cbam : public Module {
 public:
  Cbam(int64_t channels, int64_t reduction, Rng& rng, const CbamOptions& options = {});
  Var operator()(const Var& x, std::string_view name = {}, const AttentionSite& site = {}) const;
  ChannelAttention channel;
  SpatialAttention spatial;
};

struct SelectiveKernelOptions {
  int64_t channels = 0, filters = 0;
  int64_t stride = 1, groups = 1;
  int64_t branches = 2;  // 3 x 3 kernels of dilation 1, 2, ...: they see 3, 5, ... places across
  int64_t reduction = 16;
  int64_t least = 32;  // features of the descriptor: filters / reduction, and no fewer
};

// Li et al. (2019): branches with different fields of view; a softmax over branches chooses for every
// channel. Children: branches.i.conv, branches.i.norm; fc, norm of the descriptor; select.i, the logits of
// branch i.
class SelectiveKernel : public Module {
 public:
  SelectiveKernel(const SelectiveKernelOptions& options, Rng& rng);
  // x: [B, H, W, channels] -> [B, H', W', filters]. Shown under `name`: a query for every channel, a key for
  // every branch. Training wants at least two images: the descriptor is normalised over the batch.
  Var operator()(const Var& x, const Context& context, std::string_view name = {},
                 const AttentionSite& site = {}) const;

 private:
  struct Branch : Module {
    Branch(const SelectiveKernelOptions& options, int64_t dilation, Rng& rng);
    Conv2d conv;
    BatchNorm2d norm;
  };
  std::vector<std::unique_ptr<Branch>> branches_;
  Linear fc_;
  BatchNorm2d norm_;
  std::vector<std::unique_ptr<Linear>> select_;
};

}  // namespace fovea::nn
