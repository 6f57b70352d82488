// Keeps the weights of pooling and of an encoder's heads while a model reads one input.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "explain/attention_record.h"
#include "nn/attention_pooling.h"

namespace fovea::tasks {

// Keeps the weights of pooling, and hands the encoder's to a recorder.
class PoolingRecorder : public AttentionObserver {
 public:
  explicit PoolingRecorder(bool with_heads) : with_heads_(with_heads) {}
  Capture capture(const Call& call) override {
    if (call.site.kind != AttentionSite::Kind::pooling) return with_heads_ ? heads.capture(call) : Capture{};
    Capture all{{0}, std::vector<int32_t>(static_cast<size_t>(call.queries))};
    std::iota(all.rows.begin(), all.rows.end(), 0);
    return all;
  }
  void observe(const Call& call, const Capture& capture, const Captured& captured) override {
    if (call.site.kind != AttentionSite::Kind::pooling) return heads.observe(call, capture, captured);
    const bool of_words = call.site.layer == static_cast<int64_t>(nn::PoolingLevel::words);
    WeightMatrix& matrix = of_words ? words : sentences;
    matrix = WeightMatrix::zeros(call.queries, call.keys);
    std::copy_n(captured.weights.contiguous().data(), matrix.values.size(), matrix.values.begin());
  }
  WeightMatrix words, sentences;  // without rows where the model has none
  AttentionRecorder heads{{AttentionKind::encoder}};

 private:
  bool with_heads_;
};

}  // namespace fovea::tasks
