// MarianMT folders against Hugging Face's: losses, every gradient, ten steps of Adam, greedy and beam search; and
// folders that are broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/parallel.h"
#include "infer/beam.h"
#include "infer/inference.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "io/temporary_directory.h"
#include "models/golden_folder.h"
#include "models/marian.h"
#include "train/optimizer.h"

namespace fovea::models {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;
constexpr int32_t kEnd = 0, kPad = 33;

class GoldenMarians {
 public:
  GoldenMarians()
      : file_(FOVEA_GOLDEN "/marian.safetensors"), list_(load_json(FOVEA_GOLDEN "/marian.json")) {}
  size_t size() const { return list_["cases"].size(); }
  const Json& entry(size_t i) const { return list_["cases"][i]; }
  const Json& sources() const { return list_["sources"]; }
  Tensor tensor(size_t i, const std::string& name) const {
    return file_->tensor(std::to_string(i) + "/" + name);
  }
  std::vector<std::string> names(size_t i, const std::string& kind) const {
    const std::string prefix = std::to_string(i) + "/" + kind;
    std::vector<std::string> names;
    for (const TensorEntry& entry : file_->entries())
      if (entry.name.starts_with(prefix)) names.push_back(entry.name.substr(prefix.size()));
    return names;
  }
  // The sentence pairs as one packed batch.
  data::Batch batch() const {
    data::ParallelIds ids;
    ids.source_marks = ids.target_marks = {.begin = kPad, .end = kEnd, .never = kPad};
    std::vector<int64_t> all;
    for (size_t i = 0; i < sources().size(); ++i) {
      all.push_back(static_cast<int64_t>(i));
      auto source = sources()[i].get<std::vector<int32_t>>();
      auto target = list_["targets"][i].get<std::vector<int32_t>>();
      source.pop_back();  // the end, which the batch adds
      target.pop_back();
      ids.source.append(source);
      ids.target.append(target);
    }
    return data::make_batch(ids, all);
  }
  // Writes model i as a folder.
  void write(
      size_t i, const fs::path& folder,
      const ChangeTensor& change = [](TensorToWrite&) { return true; }) const {
    write_golden_folder(file_, i, entry(i)["config"], folder, change);
  }

 private:
  SafetensorsFile file_;
  Json list_;
};

const GoldenMarians& golden() {
  static const GoldenMarians all;
  return all;
}

std::unique_ptr<Transformer> load(const fs::path& folder) {
  return load_marian(folder,
                     marian_config(load_json(folder / "config.json"), (folder / "config.json").string()));
}

void expect_near(const Tensor& got, const Tensor& wanted, float tolerance, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  for (int64_t e = 0; e < wanted.count(); ++e)
    ASSERT_NEAR(got.data()[e], wanted.data()[e], tolerance * std::max(1.0f, std::abs(wanted.data()[e])))
        << what << " element " << e;
}

TEST(MarianGolden, LossesGradientsAndTenStepsEqualHuggingFaces) {
  ASSERT_EQ(golden().size(), 4u);
  for (size_t i = 0; i < golden().size(); ++i) {
    SCOPED_TRACE(message("case ", i));
    const TemporaryDirectory folder;
    golden().write(i, folder / "m");
    const auto network = load(folder / "m");
    // There the bias of the logits is not trained.
    std::vector<nn::NamedParameter> trained;
    for (const nn::NamedParameter& parameter : network->parameters())
      if (parameter.name != "output_bias") trained.push_back(parameter);
    train::Optimizer optimizer(trained, train::Adam{.learning_rate = 0.01});
    const Tensor losses = golden().tensor(i, "losses");
    nn::Context context{.training = true};
    for (int64_t step = 0; step < losses.count(); ++step) {
      network->clear_grad();
      const Var loss = network->loss(golden().batch(), 0, context).loss;
      loss.backward();
      EXPECT_NEAR(loss.value().item(), losses.data()[step], 1e-4 * (1 + static_cast<double>(step)))
          << "step " << step;
      if (step == 0) {
        // Gradients travel as weights would, so that names and shares of both directions are seen.
        const auto gradients = load(folder / "m");
        for (size_t p = 0; p < network->parameters().size(); ++p)
          gradients->parameters()[p].value.set_value(network->parameters()[p].value.grad());
        save_marian(folder / "g", *gradients, golden().entry(i)["config"]);
        const SafetensorsFile written(folder / "g/model.safetensors");
        const auto names = golden().names(i, "grad/");
        ASSERT_GT(names.size(), 40u);
        for (const std::string& name : names)
          if (name != "lm_head.weight" || (*written).contains(name))
            expect_near((*written).tensor(name), golden().tensor(i, "grad/" + name), 5e-5f, name);
      }
      optimizer.step();
    }
  }
}

std::vector<std::vector<Hypothesis>> search(const Transformer& network, int beam, int32_t limit, size_t first,
                                            size_t count) {
  std::vector<int32_t> tokens, lengths;
  for (size_t s = first; s < first + count; ++s) {
    const auto source = golden().sources()[s].get<std::vector<int32_t>>();
    tokens.insert(tokens.end(), source.begin(), source.end());
    lengths.push_back(static_cast<int32_t>(source.size()));
  }
  const Inference inference(network);
  const auto decoder = inference.start(models::Sentences{tokens, lengths});
  const std::vector<int32_t> limits(count, limit);
  return beam_search(
      *decoder, limits,
      {.beam = beam, .n_best = beam, .scores = beam > 1, .begin = kPad, .end = kEnd, .never = kPad});
}

TEST(MarianGolden, GreedyAndBeamSearchWriteWhatHuggingFaceWrites) {
  constexpr int32_t kBeamLimit = 40;
  std::set<std::vector<int32_t>> different;
  int compared = 0;
  for (size_t i = 0; i < golden().size(); ++i) {
    const TemporaryDirectory folder;
    golden().write(i, folder / "m");
    const auto network = load(folder / "m");
    for (const bool beam : {false, true}) {
      const Json& wanted = golden().entry(i)[beam ? "beam" : "greedy"];
      const auto found = search(*network, beam ? 4 : 1, beam ? kBeamLimit : 12, 0, golden().sources().size());
      for (size_t s = 0; s < wanted.size(); ++s) {
        // An end that is forced has probability 1 there; here it keeps the model's.
        const bool forced = std::any_of(wanted[s].begin(), wanted[s].end(),
                                        [](const Json& one) { return one["tokens"].size() >= kBeamLimit; });
        if (beam && forced) continue;
        ++compared;
        ASSERT_EQ(found[s].size(), wanted[s].size());
        for (size_t rank = 0; rank < wanted[s].size(); ++rank) {
          SCOPED_TRACE(message("case ", i, beam ? " beam" : " greedy", ", sentence ", s, ", rank ", rank));
          EXPECT_EQ(found[s][rank].tokens, wanted[s][rank]["tokens"].get<std::vector<int32_t>>());
          if (beam) {
            EXPECT_NEAR(found[s][rank].score, wanted[s][rank]["score"].get<double>(), 1e-4);
          }
          different.insert(found[s][rank].tokens);
        }
        // Alone it is the same to the last bit.
        const auto alone = search(*network, beam ? 4 : 1, beam ? kBeamLimit : 12, s, 1);
        ASSERT_EQ(alone[0].size(), found[s].size());
        for (size_t rank = 0; rank < alone[0].size(); ++rank) {
          EXPECT_EQ(alone[0][rank].tokens, found[s][rank].tokens);
          EXPECT_EQ(alone[0][rank].score, found[s][rank].score);
        }
      }
    }
  }
  EXPECT_GE(compared, 28) << "of 32 searches";
  EXPECT_GT(different.size(), 20u) << "the golden models must not write the same few sentences";
}

TEST(MarianGolden, SearchDoesNotDependOnTheNumberOfThreads) {
  const TemporaryDirectory folder;
  golden().write(0, folder / "m");
  const auto network = load(folder / "m");
  set_num_threads(1);
  const auto one = search(*network, 4, 40, 0, golden().sources().size());
  set_num_threads(3);
  const auto three = search(*network, 4, 40, 0, golden().sources().size());
  set_num_threads(0);
  for (size_t s = 0; s < one.size(); ++s)
    for (size_t rank = 0; rank < one[s].size(); ++rank) {
      EXPECT_EQ(one[s][rank].tokens, three[s][rank].tokens);
      EXPECT_EQ(one[s][rank].score, three[s][rank].score);
    }
}

class MarianFolders : public testing::Test {
 protected:
  std::string complaint() {
    try {
      load(folder_ / "m");
    } catch (const Error& error) {
      std::string text = error.what();
      const std::string prefix = (folder_ / "m").string();
      for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.replace(at, prefix.size(), "M");
      EXPECT_EQ(text.find('\n'), std::string::npos);
      return text;
    }
    return "no error";
  }
  std::string complaint_with(const std::string& name, const Json& value) {
    golden().write(0, folder_ / "m");
    Json json = golden().entry(0)["config"];
    json[name] = value;
    save_json(folder_ / "m/config.json", json);
    return complaint();
  }
  std::string complaint_without(const std::string& tensor) {
    golden().write(0, folder_ / "m", [&](TensorToWrite& entry) { return entry.name != tensor; });
    return complaint();
  }
  TemporaryDirectory folder_;
};

TEST_F(MarianFolders, SavedOnesAreTheSameBytesAndLoadAgain) {
  for (size_t i = 0; i < golden().size(); ++i) {
    golden().write(i, folder_ / "m");
    const auto network = load(folder_ / "m");
    save_marian(folder_ / "n", *network, load_json(folder_ / "m/config.json"));
    const auto again = load(folder_ / "n");
    ASSERT_EQ(network->parameters().size(), again->parameters().size());
    for (size_t p = 0; p < network->parameters().size(); ++p) {
      EXPECT_EQ(network->parameters()[p].name, again->parameters()[p].name);
      EXPECT_EQ(network->parameters()[p].value.value().to_vector(),
                again->parameters()[p].value.value().to_vector());
    }
    EXPECT_EQ(load_json(folder_ / "n/config.json")["model_type"], "marian");
    EXPECT_EQ(load_json(folder_ / "n/config.json")["architectures"], Json::array({"MarianMTModel"}));
  }
}

TEST_F(MarianFolders, ConfigsThatLieAreRefusedInOneLineBeforeMemoryIsTaken) {
  EXPECT_EQ(complaint_with("d_model", 12), "no error");
  EXPECT_THAT(complaint_with("model_type", "bart"), HasSubstr("wanted model_type marian"));
  EXPECT_THAT(complaint_with("d_model", 24), HasSubstr("has shape [34, 12], but config.json says [34, 24]"));
  EXPECT_THAT(complaint_with("vocab_size", 35), HasSubstr("but one table is shared"));
  EXPECT_THAT(complaint_with("decoder_vocab_size", -1), HasSubstr("but one table is shared"));
  EXPECT_THAT(complaint_with("encoder_layers", 1),
              HasSubstr("'model.encoder.layers.1.fc1.bias', which has no place"));
  EXPECT_THAT(complaint_with("decoder_layers", 3), HasSubstr("numbers"));
  EXPECT_THAT(complaint_with("encoder_layers", 1000), HasSubstr("numbers"));
  EXPECT_THAT(complaint_with("encoder_layers", 1'000'000'000), HasSubstr("encoder_layers is 1000000000"));
  EXPECT_THAT(complaint_with("encoder_ffn_dim", 65536), HasSubstr("wanted the same number"));
  EXPECT_THAT(complaint_with("decoder_attention_heads", 4), HasSubstr("wanted the same number"));
  EXPECT_THAT(complaint_with("activation_function", "mish"), HasSubstr("activation 'mish'"));
  EXPECT_THAT(complaint_with("pad_token_id", 34), HasSubstr("pad_token_id is 34, wanted 0 to 33"));
  EXPECT_THAT(complaint_with("decoder_start_token_id", -1), HasSubstr("decoder_start_token_id is -1"));
  EXPECT_THAT(complaint_with("eos_token_id", "x"), HasSubstr("eos_token_id"));
  EXPECT_THAT(complaint_with("bad_words_ids", Json::array({Json::array({5})})), HasSubstr("bad_words_ids"));
  EXPECT_THAT(complaint_with("tie_word_embeddings", false), HasSubstr("tie_word_embeddings is false"));
  EXPECT_THAT(complaint_with("dropout", 2), HasSubstr("dropout is 2"));
  EXPECT_THAT(complaint_with("activation_dropout", 1), HasSubstr("activation_dropout is 1"));
}

TEST_F(MarianFolders, MissingAndForeignTensorsAreNamed) {
  EXPECT_EQ(complaint_without("model.decoder.layers.1.encoder_attn.k_proj.bias"),
            "M/model.safetensors: no tensor 'model.decoder.layers.1.encoder_attn.k_proj.bias'");
  EXPECT_THAT(complaint_without("model.shared.weight"), HasSubstr("no tensor 'model.shared.weight'"));
  EXPECT_EQ(complaint_without("final_logits_bias"), "no error") << "it is 0 then";
  golden().write(0, folder_ / "m", [](TensorToWrite& entry) {
    if (entry.name == "model.encoder.layers.0.fc2.bias") entry.name = "model.encoder.layers.0.fc3.bias";
    return true;
  });
  EXPECT_THAT(complaint(), HasSubstr("fc3.bias', which has no place"));
  // Older files repeat the table under the names of those who share it.
  golden().write(0, folder_ / "m", [](TensorToWrite& entry) {
    if (entry.name == "model.shared.weight") entry.name = "model.encoder.embed_tokens.weight";
    return true;
  });
  EXPECT_EQ(complaint(), "no error");
  golden().write(0, folder_ / "m", [](TensorToWrite& entry) {
    if (entry.name == "final_logits_bias") entry.shape = Shape{34};
    return true;
  });
  EXPECT_THAT(complaint(), HasSubstr("'final_logits_bias' has shape [34], wanted [1, 34]"));
}

}  // namespace
}  // namespace fovea::models
