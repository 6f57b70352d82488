// A model of the BERT family whose weights are prepared for use.
#include "models/bert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "autograd/ops.h"
#include "base/parallel.h"

namespace fovea {
namespace {

using models::Bert;
using models::BertConfig;
using models::Sentences;

BertConfig small_config(const std::string& type) {
  BertConfig config;
  config.model_type = type;
  config.vocab_size = 50;
  config.hidden_size = 36;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 3;
  config.intermediate_size = 52;
  config.max_position_embeddings = 700;
  config.type_vocab_size = type == "distilbert" || type == "mpnet" ? 0 : 2;
  config.pad_token_id = config.counts_from_pad() ? 1 : 0;
  config.initializer_range = 0.2f;
  return config;
}

struct Texts {
  explicit Texts(std::span<const int32_t> sizes) : lengths(sizes.begin(), sizes.end()) {
    Rng rng(3);
    for (const int32_t length : lengths)
      for (int32_t i = 0; i < length; ++i) {
        ids.push_back(static_cast<int32_t>(rng.below(50)));
        types.push_back(i > length / 2);
      }
  }
  std::vector<int32_t> lengths, ids, types;
};

class BertInUse : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, BertInUse,
                         testing::Values("bert", "distilbert", "roberta", "xlm-roberta", "mpnet"));

void expect_near(const Tensor& got, const Tensor& wanted, double most) {
  ASSERT_EQ(got.shape(), wanted.shape());
  const Tensor a = got.contiguous(), b = wanted.contiguous();
  for (int64_t i = 0; i < a.count(); ++i) ASSERT_NEAR(a.data()[i], b.data()[i], most) << i;
}

TEST_P(BertInUse, PreparedWeightsComputeWhatTheParametersDo) {
  Rng rng(1);
  const Bert model(small_config(GetParam()), {.masked_lm = true, .labels = 3}, rng);
  const int32_t sizes[] = {5, 1, 70, 2, 130};
  const Texts made(sizes);
  const Sentences texts(made.ids, made.lengths);
  nn::Context context;
  const NoGrad no_grad;
  const Var hidden = model.hidden(texts, made.types, context);
  const Var tokens = model.token_logits(hidden), classes = model.class_logits(hidden, texts.lengths, context);
  for (const Compute compute : {Compute::float32, Compute::int8}) {
    const nn::Prepared prepared(model, compute);
    const double near = compute == Compute::float32 ? 2e-4 : 1.5;
    const Var found = model.hidden(texts, made.types, context);
    expect_near(found.value(), hidden.value(), near);
    expect_near(model.token_logits(found).value(), tokens.value(), near);
    expect_near(model.class_logits(found, texts.lengths, context).value(), classes.value(), near);
    // The prepared weights were used: what the layers' own matrices hold by now does not matter.
    std::vector<std::pair<Tensor, Tensor>> kept;
    for (const nn::NamedParameter& parameter : model.parameters()) {
      if (parameter.value.rank() != 2 || parameter.name.find("layer") == std::string::npos) continue;
      const Tensor values = parameter.value.value();
      kept.emplace_back(values, values.clone());
      std::fill_n(values.data(), values.count(), 0.0f);
    }
    EXPECT_GE(kept.size(), 8u);
    EXPECT_EQ(model.hidden(texts, made.types, context).value().to_vector(), found.value().to_vector());
    for (const auto& [values, before] : kept) std::copy_n(before.data(), before.count(), values.data());
  }
  EXPECT_EQ(model.hidden(texts, made.types, context).value().to_vector(), hidden.value().to_vector());
}

TEST_P(BertInUse, NeighboursAndThreadsChangeNoBit) {
  Rng rng(1);
  const Bert model(small_config(GetParam()), {.masked_lm = true, .labels = 3}, rng);
  const int32_t sizes[] = {5, 1, 70, 2, 130, 33, 600, 64, 17};
  const Texts made(sizes);
  const NoGrad no_grad;
  nn::Context context;
  const int before = num_threads();
  for (const Compute compute : {Compute::float32, Compute::int8}) {
    const nn::Prepared prepared(model, compute);
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      const Sentences all(made.ids, made.lengths);
      const Var together = model.hidden(all, made.types, context);
      const Tensor logits = model.token_logits(together).value();
      const Tensor classes = model.class_logits(together, all.lengths, context).value();
      size_t begin = 0, text = 0;
      for (const int32_t length : made.lengths) {
        const auto own = static_cast<size_t>(length);
        set_num_threads(1);
        const Sentences one(std::span(made.ids).subspan(begin, own), {&length, 1});
        const Var alone = model.hidden(one, std::span(made.types).subspan(begin, own), context);
        const auto same = [&](const Tensor& a, const Tensor& rows, size_t first, const char* what) {
          const auto width = static_cast<size_t>(rows.size(1));
          EXPECT_EQ(std::memcmp(a.data(), rows.data() + first * width,
                                static_cast<size_t>(a.count()) * sizeof(float)),
                    0)
              << what << " of the text of " << length << " tokens";
        };
        same(alone.value(), together.value(), begin, "states");
        same(model.token_logits(alone).value(), logits, begin, "logits");
        same(model.class_logits(alone, one.lengths, context).value(), classes, text++, "classes");
        set_num_threads(threads);
        begin += own;
      }
    }
  }
  set_num_threads(before);
}

TEST(Bert, RefusesWhatItCannotRead) {
  Rng rng(1);
  const Bert model(small_config("bert"), {}, rng);
  nn::Context context;
  const auto complain = [&](const std::vector<int32_t>& ids,
                            const std::vector<int32_t>& types) -> std::string {
    const int32_t length[] = {static_cast<int32_t>(ids.size())};
    try {
      model.hidden({ids, length}, types, context);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(complain({1, 2}, {0, 1}), "no error");
  EXPECT_EQ(complain(std::vector<int32_t>(701, 4), {}),
            "bert: a text of 701 tokens, but places were learned up to 700");
  EXPECT_EQ(complain({1, 50}, {}), "bert: token 50 is not in the vocabulary; wanted 0 to 49");
  EXPECT_EQ(complain({-1}, {}), "bert: token -1 is not in the vocabulary; wanted 0 to 49");
  EXPECT_EQ(complain({1, 2}, {0, 2}), "bert: token type 2; wanted 0 to 1");
  EXPECT_EQ(complain({1, 2}, {0}), "bert: 1 kinds for 2 tokens");
  EXPECT_THROW(model.token_logits(Var(Tensor::zeros({1, 36}))), Error);
  const int64_t length[] = {1};
  EXPECT_THROW(model.class_logits(Var(Tensor::zeros({1, 36})), length, context), Error);
}

}  // namespace
}  // namespace fovea
