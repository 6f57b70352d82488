// Token ids of every published family on thousands of texts with characters of every block of Unicode, against Hugging
// Face's tokenizers and the SentencePiece library (tests/golden/make_more_ids.py).
#include <gtest/gtest.h>

#include <functional>

#include "data/byte_bpe.h"
#include "data/encoder_tokenizer.h"
#include "data/marian_tokenizer.h"
#include "data/wordpiece.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"

namespace fovea::data {
namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;
constexpr size_t kGroup = 10;

nlohmann::json golden(const char* name) {
  return parse_large_json(read_text(FOVEA_GOLDEN "/" + std::string(name), uint64_t{1} << 26), name);
}

uint64_t checksum(const Ids& ids) {
  uint64_t value = 0xcbf29ce484222325ull;
  for (const int32_t id : ids) value = (value ^ static_cast<uint64_t>(id)) * 0x100000001b3ull;
  return value >> 32;
}

class MoreIds : public ::testing::Test {
 protected:
  // without_marks: texts that may hold marks are left out.
  void expect_ids(const Tokenizer& tokenizer, const std::string& family, bool without_marks = false) const {
    const auto wanted = golden("more_ids.json")[family].get<std::vector<uint64_t>>();
    ASSERT_GE(texts_.size(), 4000u);
    ASSERT_EQ(wanted.size() * kGroup, texts_.size());
    int wrong = 0;
    for (size_t group = 0; group < wanted.size(); ++group) {
      Ids all;
      for (size_t i = group * kGroup; i < (group + 1) * kGroup; ++i) {
        const bool left_out = without_marks && texts_[i].find_first_of("[<") != std::string::npos;
        const Ids ids = left_out ? Ids() : tokenizer.encode(texts_[i]);
        all.push_back(static_cast<int32_t>(ids.size()));
        all.insert(all.end(), ids.begin(), ids.end());
      }
      if (checksum(all) != wanted[group] && ++wrong <= 3)
        ADD_FAILURE() << family << ": one of the texts " << group * kGroup << " to "
                      << (group + 1) * kGroup - 1;
    }
    EXPECT_EQ(wrong, 0) << family << ": groups of " << kGroup << " texts";
  }

  nlohmann::json pieces_ = golden("pieces.json");
  Texts texts_ = pieces_["more"].get<Texts>();
};

TEST_F(MoreIds, OfBert) {
  const std::string path = FOVEA_GOLDEN "/wordpiece_vocab.txt";
  const Texts tokens = parse_wordpiece_tokens(read_text(path), path);
  expect_ids(*make_wordpiece(tokens, {}, path), "bert");
  expect_ids(*make_wordpiece(tokens, {.lowercase = false}, path), "bert_cased");
}

TEST_F(MoreIds, OfRoberta) {
  const nlohmann::json bpe = golden("byte_bpe.json");
  Texts tokens(bpe["vocab"].size());
  for (const auto& item : bpe["vocab"].items()) tokens[item.value().get<size_t>()] = item.key();
  expect_ids(*make_byte_bpe(tokens, bpe["merges"].get<std::vector<Merge>>(), {}, "golden"), "roberta");
}

TEST_F(MoreIds, OfMpnet) {
  const TemporaryDirectory folder;
  std::string lines;
  for (const std::string& token : pieces_["mpnet"]["tokens"].get<Texts>()) lines += token + "\n";
  write_atomically(folder / "vocab.txt", lines);
  expect_ids(*load_encoder_tokenizer(folder.path(), "mpnet").tokenizer, "mpnet");
}

TEST_F(MoreIds, OfMarian) {
  const TemporaryDirectory folder;
  const Texts tokens = pieces_["marian"]["tokens"].get<Texts>();
  nlohmann::json vocabulary = nlohmann::json::object();
  for (size_t i = 0; i < tokens.size(); ++i) vocabulary[tokens[i]] = i;
  write_atomically(folder / "vocab.json", vocabulary.dump());
  for (const char* name : {"source.spm", "target.spm"})
    write_atomically(folder / name, read_text(FOVEA_GOLDEN "/pieces.model", uint64_t{1} << 26));
  expect_ids(*load_marian_tokenizers(folder.path()).source, "marian");
}

TEST_F(MoreIds, OfBigBird) {
  const TemporaryDirectory library, json;
  write_atomically(library / "spiece.model", read_text(FOVEA_GOLDEN "/big_bird.model"));
  save_json(json / "tokenizer.json", load_json(FOVEA_GOLDEN "/big_bird_pieces.json")["tokenizer"]);
  expect_ids(*load_encoder_tokenizer(json.path(), "big_bird").tokenizer, "big_bird");
  expect_ids(*load_encoder_tokenizer(library.path(), "big_bird").tokenizer, "big_bird_library", true);
}

}  // namespace
}  // namespace fovea::data
