// The answer to an input has the same bits alone and beside any others, on any number of threads: every kind of folder. Of
// convolutions, which pack the pictures of a call, only the number of threads does not matter to the last bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/pictures.h"
#include "io/temporary_directory.h"
#include "tasks/open.h"
#include "tasks/untrained_captioner.h"
#include "tasks/untrained_classifiers.h"
#include "tasks/untrained_encoder.h"
#include "tasks/untrained_series.h"
#include "tasks/untrained_translator.h"
#include "tasks/untrained_vision.h"

namespace fovea::tasks {
namespace {

// Weights large enough that ways of computing differ.
template <class Loaded>
Loaded enlarged(Loaded loaded) {
  Rng rng(8);
  for (const auto& [name, parameter] : loaded.network->parameters()) {
    const Tensor larger = parameter.value().clone();
    for (float& x : larger.span()) x = 1.5f * x + 0.05f * rng.normal();
    parameter.set_value(larger);
  }
  return loaded;
}

// Every number and text of an answer.
std::string all_of(const Answer& answer) {
  std::string bytes = answer.error;
  const auto add = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const AnsweredTranslation& each : answer.translations) {
    bytes += each.translation.text;
    add(each.translation.score);
    if (each.alignment)
      for (const float weight : each.alignment->weights.values) add(weight);
  }
  for (const float p : answer.prediction.probabilities) add(p);
  for (const Caption& caption : answer.captions) {
    bytes += caption.text;
    add(caption.score);
  }
  for (const float x : answer.vector) add(x);
  for (const float x : answer.numbers) add(x);
  for (const infer::FoundShip& found : answer.ships) add(found.score);
  return bytes;
}

std::vector<Input> texts() {
  Rng rng(3);
  const std::vector<std::string> words{"one", "two", "three", "four", "five", "six", ".", "fifty"};
  std::vector<Input> inputs;
  for (const int length : {3, 14, 1, 7, 15, 2, 0, 9, 12, 5, 40, 4, 11, 6, 13, 8, 10, 3}) {
    std::string text;
    for (int i = 0; i < length; ++i)
      text += words[static_cast<size_t>(rng.below(static_cast<int64_t>(words.size())))] + " ";
    inputs.push_back({text});
  }
  return inputs;
}

std::string picture(uint64_t seed) {
  Rng rng(seed);
  std::vector<uint8_t> pixels(3 * 16 * 16);
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(rng.bits());
  return data::png_bytes(16, 16, pixels);
}

std::vector<Input> pictures() {
  std::vector<Input> inputs;
  for (uint64_t i = 0; i < 19; ++i) inputs.push_back({picture(i), "picture"});
  return inputs;
}

std::vector<Input> clips() {
  std::vector<Input> inputs;
  uint64_t seed = 0;
  for (const int frames : {1, 7, 3, 12, 2, 5, 30, 4, 1, 9}) {
    Input clip{"", "clip"};
    for (int i = 0; i < frames; ++i) clip.frames.push_back(picture(++seed));
    inputs.push_back(clip);
  }
  return inputs;
}

std::vector<Input> cases(bool table) {
  Rng rng(4);
  std::vector<Input> inputs;
  for (const int steps : {9, 30, 8, 17, 120, 12, 64, 10, 11, 33}) {
    std::string rows = "load,heat\n", one, two;
    for (int i = 0; i < steps; ++i) {
      const std::string a = std::to_string(rng.normal()), b = std::to_string(rng.normal());
      rows += a + "," + b + "\n";
      one += (i > 0 ? "," : "") + a;
      two += (i > 0 ? "," : "") + b;
    }
    inputs.push_back({table ? rows : one + ":" + two});
  }
  return inputs;
}

class Neighbours : public testing::Test {
 protected:
  enum class Bits { same, last_may_differ };

  void expect_no_influence(const std::string& what, const std::vector<Input>& inputs,
                           const AnswerOptions& options = {}, Bits bits = Bits::same) {
    for (const std::string compute : {"float32", "int8"}) {
      SCOPED_TRACE(what + ", " + compute);
      const auto model = open(folder_ / "model", {.compute = compute});
      AnswerOptions how = options;
      how.threads = 1;
      std::vector<Answer> alone;
      for (const Input& input : inputs) alone.push_back(model->answer({&input, 1}, how)[0]);
      EXPECT_TRUE(std::any_of(alone.begin(), alone.end(), [&](const Answer& one) {
        return all_of(one) != all_of(alone[0]);
      })) << "all inputs have the same answer";
      const std::vector<Answer> together = model->answer(inputs, how);
      how.threads = 3;
      const std::vector<Answer> threaded = model->answer(inputs, how);
      for (size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_EQ(together[i].error, "");
        EXPECT_TRUE(all_of(together[i]) == all_of(threaded[i])) << "input " << i << " on three threads";
        if (bits == Bits::same) {
          EXPECT_TRUE(all_of(together[i]) == all_of(alone[i])) << "input " << i;
        } else {
          EXPECT_THAT(together[i].prediction.probabilities,
                      testing::Pointwise(testing::FloatNear(1e-5f), alone[i].prediction.probabilities))
              << "input " << i;
        }
      }
    }
  }

  TemporaryDirectory folder_;
};

TEST_F(Neighbours, DoNotInfluenceTextClassifiers) {
  const Json small{{"embedding", 6}, {"width", 8}},
      heads{{"width", 16}, {"heads", 2}, {"hidden", 24}, {"layers", 2}};
  const auto with = [](Json json, const char* name, const Json& value) {
    json[name] = value;
    return json;
  };
  for (const auto& [model, settings] : std::vector<std::pair<std::string, Json>>{
           {"lstm", small},
           {"lstm", with(small, "selection", "hard")},
           {"lstm", with(small, "selection", "sparsemax")},
           {"lstm", with(small, "pooling", "mean")},
           {"lstm", with(small, "pooling", "last")},
           {"han", small},
           {"han", with(small, "selection", "top_k(4)")},
           {"transformer", heads},
           {"transformer", with(heads, "pooling", "mean")},
           {"transformer", with(heads, "self_attention", "cosine(0.1) / window(2,2) | global(0) / soft")}}) {
    save_classifier(folder_ / "model", enlarged(untrained_classifier(model, settings)));
    expect_no_influence(model + settings.dump(), texts());
  }
}

TEST_F(Neighbours, DoNotInfluenceTranslators) {
  save_translation(folder_ / "model", untrained_translator());
  expect_no_influence("translator", texts(), {.translate = {.beam = 2, .n_best = 2}, .alignment = "soft"});
}

TEST_F(Neighbours, DoNotInfluenceEncoders) {
  write_untrained_encoder(folder_ / "model");
  expect_no_influence("encoder", texts());
  write_untrained_encoder(folder_ / "model", {.labels = 3});
  expect_no_influence("published classifier", texts());
}

TEST_F(Neighbours, DoNotInfluenceImageClassifiers) {
  for (const char* gate : {"none", "se", "cbam", "sk"}) {
    save_image_classifier(folder_ / "model", enlarged(untrained_image_classifier(gate)));
    expect_no_influence(gate, pictures(), {}, Bits::last_may_differ);
  }
  save_image_classifier(folder_ / "model", enlarged(untrained_vit()));
  expect_no_influence("vit", pictures());
}

TEST_F(Neighbours, DoNotInfluenceGlimpsesAndClips) {
  for (const char* model : {"ram", "soft"}) {
    save_glimpse_classifier(folder_ / "model", enlarged(untrained_glimpse_classifier(model)));
    expect_no_influence(model, pictures());
  }
  for (const char* pooling : {"gated", "additive", "mean", "max"}) {
    save_clip_classifier(folder_ / "model", enlarged(untrained_clip_classifier(pooling)));
    expect_no_influence(pooling, clips(), {}, Bits::last_may_differ);
  }
}

TEST_F(Neighbours, DoNotInfluenceCaptioners) {
  for (const char* attention : {"soft", "hard"}) {
    save_captioner(folder_ / "model", enlarged(untrained_captioner(attention)));
    expect_no_influence(attention, pictures(), {.caption = {.beam = 2, .n_best = 2}});
  }
}

TEST_F(Neighbours, DoNotInfluenceSeries) {
  for (const char* model : {"transformer", "lstm"})
    for (const SeriesGoal goal : {SeriesGoal::forecast, SeriesGoal::classify, SeriesGoal::regress}) {
      save_series(folder_ / "model", enlarged(untrained_series(goal, model)));
      expect_no_influence(model + std::string(name_of(goal)), cases(goal == SeriesGoal::forecast));
    }
}

}  // namespace
}  // namespace fovea::tasks
