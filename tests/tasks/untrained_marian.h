// A MarianMT folder nobody trained: small, made in an instant, with the tokenizer of tests/golden/make_pieces.py.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/json.h"
#include "models/marian.h"

namespace fovea::tasks {

inline void write_untrained_marian(const std::filesystem::path& folder, int64_t width = 16) {
  make_directories(folder);
  const nlohmann::json pieces =
      parse_large_json(read_text(FOVEA_GOLDEN "/pieces.json", uint64_t{1} << 26), "pieces.json");
  const auto tokens = pieces["marian"]["tokens"].get<std::vector<std::string>>();
  nlohmann::json vocabulary = nlohmann::json::object();
  for (size_t i = 0; i < tokens.size(); ++i) vocabulary[tokens[i]] = i;
  write_atomically(folder / "vocab.json", vocabulary.dump());
  for (const char* name : {"source.spm", "target.spm"})
    write_atomically(folder / name, read_text(FOVEA_GOLDEN "/pieces.model", uint64_t{1} << 26));
  const auto last = static_cast<int64_t>(tokens.size()) - 1;
  const Json config{{"model_type", "marian"},
                    {"vocab_size", last + 1},
                    {"d_model", width},
                    {"encoder_layers", 2},
                    {"decoder_layers", 2},
                    {"encoder_attention_heads", 2},
                    {"decoder_attention_heads", 2},
                    {"encoder_ffn_dim", 2 * width},
                    {"decoder_ffn_dim", 2 * width},
                    {"activation_function", "swish"},
                    {"scale_embedding", true},
                    {"static_position_embeddings", true},
                    {"pad_token_id", last},
                    {"decoder_start_token_id", last},
                    {"eos_token_id", 0}};
  Rng rng(4);
  const models::Transformer network(models::marian_config(config, "config").network, rng);
  models::save_marian(folder, network, config);
}

}  // namespace fovea::tasks
