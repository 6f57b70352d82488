#include "models/sentences.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "nn/positions.h"

namespace fovea::models {

int64_t Sentences::longest() const {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

Var embed_at_positions(const Var& table, const Var& positions, const Sentences& tokens, float dropout,
                       nn::Context& context) {
  const std::vector<int32_t> places = nn::packed_positions(tokens.lengths);
  const int64_t d = table.size(1);
  const int64_t longest = tokens.longest(), most = positions.defined() ? positions.size(0) : longest;
  require(longest <= most, "transformer: a sentence of ", longest,
          " tokens, but positions were learned up to ", most);
  const Var added = positions.defined() ? embedding(positions, places) : Var(nn::sinusoid(places, d));
  const Var x = embedding(table, tokens.ids, {.scale = std::sqrt(static_cast<float>(d)), .added = added});
  return dropped(x, dropout, context);
}

Var dropped(const Var& x, float dropout, nn::Context& context) {
  const float rate = context.rate(dropout);
  return rate > 0 ? fovea::dropout(x, rate, context.next_seed()) : x;
}

}  // namespace fovea::models
