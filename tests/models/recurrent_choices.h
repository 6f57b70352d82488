// The recurrent translators in all their variants.
#pragma once

#include <vector>

#include "models/registry/translators.h"

namespace fovea::testing {

struct ModelChoice {
  const char* model;
  Json settings;
};

inline std::vector<ModelChoice> recurrent_choices() {
  std::vector<ModelChoice> all;
  for (const char* score :
       {"additive", "dot", "scaled_dot", "cosine(0.2)", "bilinear", "general", "concat", "location"})
    all.push_back({"bahdanau", {{"score", score}, {"output", all.size() % 2 == 0 ? "maxout" : "linear"}}});
  all.push_back({"bahdanau", {{"tie", "all"}, {"attention_width", 7}}});
  all.push_back({"rnn", {{"tie", "output"}}});
  for (const char* selection : {"hard", "gumbel(0.5,straight_through)", "sparsemax", "top_k(2)", "sigmoid"}) {
    all.push_back({"bahdanau", {{"selection", selection}, {"score", "additive"}}});
    all.push_back({"luong", {{"selection", selection}, {"locality", "local_p"}, {"window", 2}}});
    all.push_back({"luong", {{"selection", selection}, {"input_feeding", false}}});
  }
  for (const char* spec :
       {"additive / window(2,1)", "cosine(0.2) / full / sparsemax", "concat / window(1,0) / soft(0.1)"}) {
    all.push_back({"bahdanau", {{"attention", spec}}});
    all.push_back({"luong", {{"attention", spec}}});
  }
  // What the fused kernels cannot do.
  for (const char* spec : {"additive / causal", "dot / window(1,1,2) | global(0)",
                           "scaled_dot / strided(3) | random_blocks(2,1,5)", "bilinear + alibi / full",
                           "additive + relative(8,16) + sink / window(2,1)",
                           "dot + soft_cap(2) / block_window(4,1,0) / sparsemax"}) {
    all.push_back({"bahdanau", {{"attention", spec}}});
    all.push_back({"luong", {{"attention", spec}, {"input_feeding", all.size() % 4 < 2}}});
  }
  all.push_back({"luong", {{"attention", "dot + soft_cap(2) + alibi + gaussian(0.7) / window(2,2)"}}});
  all.push_back({"luong", {{"attention", "bilinear + gaussian(0.7) / window(2,2) / top_k(2)"}}});
  for (const char* score : {"dot", "general", "concat", "location", "cosine(0.2)"})
    for (const char* locality : {"global", "local_m", "local_p"})
      for (const bool feeding : {false, true})
        all.push_back({"luong",
                       {{"score", score},
                        {"locality", locality},
                        {"window", 2},
                        {"layers", all.size() % 2 == 0 ? 1 : 2},
                        {"bidirectional", all.size() % 3 == 0},
                        {"input_feeding", feeding}}});
  return all;
}

}  // namespace fovea::testing
