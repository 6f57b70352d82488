#include "models/sentences.h"

#include <algorithm>
#include <cmath>

#include "attention/compile.h"
#include "autograd/ops.h"
#include "nn/positions.h"

namespace fovea::models {

int64_t Sentences::longest() const {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

std::vector<int64_t> Sentences::single_lengths() const {
  if (!pairs()) return lengths;
  std::vector<int64_t> single;
  for (size_t i = 0; i < lengths.size(); ++i) {
    single.push_back(firsts[i]);
    single.push_back(lengths[i] - firsts[i]);
  }
  return single;
}

std::vector<int32_t> Sentences::types() const {
  std::vector<int32_t> types;
  for (size_t i = 0; i < firsts.size(); ++i) {
    types.insert(types.end(), static_cast<size_t>(firsts[i]), 0);
    types.insert(types.end(), static_cast<size_t>(lengths[i] - firsts[i]), 1);
  }
  return types;
}

Var embed_at(const Var& table, const Var& positions, std::span<const int32_t> ids,
             std::span<const int32_t> places, const EmbeddingForm& form) {
  const int64_t d = table.size(1);
  if (positions.defined() && !places.empty()) {
    const int64_t longest = int64_t{*std::max_element(places.begin(), places.end())} + 1;
    require(longest <= positions.size(0), "transformer: a sentence of ", longest,
            " tokens, but positions were learned up to ", positions.size(0));
  }
  const Var added =
      positions.defined() ? embedding(positions, places) : Var(nn::sinusoid(places, d, form.sinusoid));
  const Var x =
      embedding(table, ids, {.scale = form.scaled ? std::sqrt(static_cast<float>(d)) : 1.0f, .added = added});
  if (!x.requires_grad() || std::find(ids.begin(), ids.end(), form.constant_token) == ids.end()) return x;
  const Tensor learned({static_cast<int64_t>(ids.size()), 1}), constant(learned.shape());
  for (size_t i = 0; i < ids.size(); ++i) {
    constant.data()[i] = ids[i] == form.constant_token ? 1 : 0;
    learned.data()[i] = 1 - constant.data()[i];
  }
  return x * Var(learned) + x.detach() * Var(constant);
}

Var embed_at_positions(const Var& table, const Var& positions, const Sentences& tokens, float dropout,
                       nn::Context& context, const EmbeddingForm& form) {
  return dropped(embed_at(table, positions, tokens.ids, nn::packed_positions(tokens.lengths), form), dropout,
                 context);
}

AttentionSpec self_attention_spec(const std::string& text, int64_t heads) {
  AttentionSpec spec = parse_spec(text);
  const Pattern one_text = within({1}, spec.pattern);  // refuses what means nothing within a text
  if (heads > 0) compile(one_text, {.queries = 1, .keys = 1, .heads = heads});  // heads(...) fit the heads
  return spec;
}

Var dropped(const Var& x, float dropout, nn::Context& context) {
  const float rate = context.rate(dropout);
  return rate > 0 ? fovea::dropout(x, rate, context.next_seed()) : x;
}

}  // namespace fovea::models
