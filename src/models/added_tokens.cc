#include "models/added_tokens.h"

#include "autograd/ops.h"

namespace fovea::models {

AddedTokens::AddedTokens(std::span<const int64_t> lengths, int64_t added) {
  auto token = static_cast<int32_t>(added);
  for (const int64_t length : lengths) {
    lengths_.push_back(length + added);
    for (int32_t i = 0; i < added; ++i) rows_.push_back(i);
    for (int64_t i = 0; i < length; ++i) {
      own_.push_back(static_cast<int32_t>(rows_.size()));
      rows_.push_back(token++);
    }
  }
}

Var AddedTokens::put_in_front(const Var& added, const Var& tokens) const {
  return gather(concat(std::vector<Var>{added, tokens}, 0), rows_);
}

Var AddedTokens::own(const Var& extended) const {
  return gather(extended, own_);
}

}  // namespace fovea::models
