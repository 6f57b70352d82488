#include "infer/bert_inference.h"

#include <gtest/gtest.h>

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
  config.type_vocab_size = type == "distilbert" ? 0 : 2;
  config.pad_token_id = type == "roberta" ? 1 : 0;
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

class BertInferenceOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, BertInferenceOf, testing::Values("bert", "distilbert", "roberta"));

void expect_near(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(got.shape(), wanted.shape());
  const Tensor a = got.contiguous(), b = wanted.contiguous();
  for (int64_t i = 0; i < a.count(); ++i) ASSERT_NEAR(a.data()[i], b.data()[i], 2e-4) << i;
}

TEST_P(BertInferenceOf, ComputesWhatTheModelComputes) {
  Rng rng(1);
  const Bert model(small_config(GetParam()), {.masked_lm = true, .labels = 3}, rng);
  const BertInference inference(model);
  const int32_t sizes[] = {5, 1, 70, 2, 130};
  const Texts made(sizes);
  const Sentences texts(made.ids, made.lengths);
  nn::Context context;
  const NoGrad no_grad;
  const Var hidden = model.hidden(texts, made.types, context);
  const Tensor found = inference.hidden(texts, made.types);
  expect_near(found, hidden.value());
  expect_near(inference.token_logits(found), model.token_logits(hidden).value());
  std::vector<int32_t> firsts{0, 5, 6, 76, 78};
  expect_near(inference.class_logits(gather(Var(found), firsts).value()),
              model.class_logits(hidden, texts.lengths, context).value());
}

TEST_P(BertInferenceOf, NeighboursAndThreadsChangeNoBit) {
  Rng rng(1);
  const Bert model(small_config(GetParam()), {.masked_lm = true, .labels = 3}, rng);
  const BertInference inference(model);
  const int32_t sizes[] = {5, 1, 70, 2, 130, 33, 600, 64, 17};
  const Texts made(sizes);
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    const Tensor together = inference.hidden(Sentences(made.ids, made.lengths), made.types);
    const Tensor logits = inference.token_logits(together), classes = inference.class_logits(together);
    size_t begin = 0;
    for (const int32_t length : made.lengths) {
      const auto own = static_cast<size_t>(length);
      set_num_threads(1);
      const Tensor alone = inference.hidden({std::span(made.ids).subspan(begin, own), {&length, 1}},
                                            std::span(made.types).subspan(begin, own));
      const auto same = [&](const Tensor& a, const Tensor& all, const char* what) {
        const auto width = static_cast<size_t>(all.size(1));
        EXPECT_EQ(std::memcmp(a.data(), all.data() + begin * width, own * width * sizeof(float)), 0)
            << what << " of the text of " << length << " tokens";
      };
      same(alone, together, "states");
      same(inference.token_logits(alone), logits, "logits");
      same(inference.class_logits(alone), classes, "classes");
      set_num_threads(threads);
      begin += own;
    }
  }
  set_num_threads(before);
}

TEST(BertInference, RefusesWhatItCannotRead) {
  Rng rng(1);
  const Bert model(small_config("bert"), {}, rng);
  const BertInference inference(model);
  const auto complain = [&](const std::vector<int32_t>& ids,
                            const std::vector<int32_t>& types) -> std::string {
    const int32_t length[] = {static_cast<int32_t>(ids.size())};
    try {
      inference.hidden({ids, length}, types);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(complain({1, 2}, {0, 1}), "no error");
  EXPECT_EQ(complain(std::vector<int32_t>(701, 4), {}),
            "bert: a text of 701 tokens, but places were learned up to 700");
  EXPECT_EQ(complain({1, 50}, {}), "bert: token 50 of a vocabulary of 50");
  EXPECT_EQ(complain({-1}, {}), "bert: token -1 of a vocabulary of 50");
  EXPECT_EQ(complain({1, 2}, {0, 2}), "bert: kind 2 of 2");
  EXPECT_EQ(complain({1, 2}, {0}), "bert: 1 kinds for 2 tokens");
  EXPECT_THROW(inference.token_logits(Tensor::zeros({1, 36})), Error);
  EXPECT_THROW(inference.class_logits(Tensor::zeros({1, 36})), Error);
}

}  // namespace
}  // namespace fovea
