// Compares a network with the golden values of its folder: outputs, every gradient, the losses of ten steps of
// Adam.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "autograd/ops.h"
#include "models/bert_names.h"
#include "models/golden_bert.h"
#include "train/optimizer.h"

namespace fovea::models {

// Golden tensors of one of our parameters, joined where it is made of several; undefined where no gradient
// reached it.
inline Tensor golden_of(const GoldenBerts& golden, size_t i, const std::string& kind, const BertName& name,
                        const BertConfig& config) {
  std::vector<Var> parts;
  for (const std::string& theirs : name.theirs) {
    const std::string prefixed = bert_prefix(config) + theirs;
    const std::string found = kind + (golden.contains(i, kind + theirs) ? theirs : prefixed);
    if (!golden.contains(i, found)) return {};
    parts.emplace_back(golden.tensor(i, found));
  }
  return concat(parts, 0).value();
}

inline void expect_near(const Tensor& got, const Tensor& wanted, float tolerance, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  for (int64_t e = 0; e < wanted.count(); ++e)
    ASSERT_NEAR(got.data()[e], wanted.data()[e], tolerance) << what << " element " << e;
}

inline Var cube_mean(const Var& x) {
  return mean(x * x * x);
}

struct GoldenPass {
  Var loss;
  std::vector<std::pair<std::string, Var>> outputs;
};

inline GoldenPass run_golden(const GoldenBerts& golden, const Bert& network, nn::Context& context) {
  const Sentences texts = golden.texts();
  const Var hidden = network.hidden(texts, golden.types(network.config()), context);
  if (network.classifier) {
    const Var logits = network.class_logits(hidden, texts.lengths, context);
    return {cross_entropy(logits, golden.labels()), {{"logits", logits}}};
  }
  if (network.masked_lm) {
    const Var logits = network.token_logits(gather(hidden, golden.first_tokens()));
    return {cross_entropy(logits, golden.words()), {{"logits", logits}}};
  }
  GoldenPass pass{cube_mean(hidden), {{"hidden", hidden}}};
  if (!network.pooler) return pass;
  pass.outputs.emplace_back("pooled", network.pooled(hidden, texts.lengths));
  pass.loss = pass.loss + cube_mean(pass.outputs.back().second);
  return pass;
}

inline void expect_golden(const GoldenBerts& golden, size_t i, const Bert& network, nn::Context context) {
  const bool classifies = golden.name(i).ends_with("ForSequenceClassification");
  EXPECT_EQ(network.heads().labels, classifies ? 3 : 0);
  EXPECT_EQ(network.heads().masked_lm, golden.name(i).ends_with("ForMaskedLM"));
  const Tensor losses = golden.tensor(i, "losses");
  train::Optimizer optimizer(network.parameters(), train::Adam{.learning_rate = 0.01});
  for (int64_t step = 0; step < losses.count(); ++step) {
    optimizer.clear_grad();
    const GoldenPass pass = run_golden(golden, network, context);
    pass.loss.backward();
    EXPECT_NEAR(pass.loss.value().item(), losses.data()[step],
                1e-4 * (1 + static_cast<double>(step)) * std::max(1.0f, std::abs(losses.data()[step])))
        << "step " << step;
    if (step == 0) {
      for (const auto& [name, output] : pass.outputs)
        expect_near(output.value(), golden.tensor(i, name), 2e-5f, name);
      std::map<std::string, Var> parameters;
      for (const auto& [name, parameter] : network.parameters()) parameters.emplace(name, parameter);
      const auto names = bert_names(network.config(), network.heads());
      ASSERT_EQ(names.size(), parameters.size());
      for (const BertName& name : names) {
        const Tensor wanted = golden_of(golden, i, "grad/", name, network.config());
        if (wanted.defined())
          expect_near(parameters.at(name.ours).grad(), wanted, 5e-5f, name.ours);
        else
          EXPECT_FALSE(parameters.at(name.ours).grad().defined()) << name.ours;
      }
    }
    optimizer.step();
  }
}

}  // namespace fovea::models
