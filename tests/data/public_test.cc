// Reading, tokenising and batching of the public data sets.
#include <gtest/gtest.h>

#include "data/batches.h"
#include "data/files.h"
#include "data/idx.h"
#include "data/images.h"
#include "data/tar.h"
#include "data/text.h"
#include "infer/bleu.h"

namespace fovea::data {
namespace {

TEST(Multi30k, IsReadTokenisedAndBatched) {
  FOVEA_NEEDS_DATA(english, "multi30k-tok/train.en");
  FOVEA_NEEDS_DATA(german, "multi30k-tok/train.de");
  const ParallelText text = read_parallel(english, german);
  EXPECT_EQ(text.size(), 29000);
  const std::span<const std::string> texts[] = {text.source, text.target};
  const std::shared_ptr<const Tokenizer> joint = train_sentencepiece(texts, {.size = 10000});
  EXPECT_EQ(joint->size(), 10000);

  const ParallelIds ids = encode_parallel(text, {joint, joint}, 100);
  EXPECT_EQ(ids.size() + ids.dropped, 29000);
  EXPECT_LT(ids.dropped, 10);
  for (int64_t i = 0; i < ids.size(); i += 997) EXPECT_EQ(joint->decode(ids.target[i]), text.target[i]);
  EXPECT_LT(static_cast<double>(ids.target.tokens.size()) / 29000, 16) << "German sentences have 12.4 words";

  BatchStream stream(ids, {.max_tokens = 4096});
  int64_t pairs = 0, tokens = 0;
  for (int64_t i = 0; i < stream.batches_per_epoch(); ++i) {
    const Batch batch = stream.next();
    pairs += batch.size();
    tokens += static_cast<int64_t>(batch.target_out.size());
  }
  EXPECT_EQ(pairs, ids.size());
  EXPECT_GT(tokens, stream.batches_per_epoch() * 4096 * 8 / 10) << "batches are filled";
}

TEST(Multi30k, WordsComeBackAsTheyWere) {
  FOVEA_NEEDS_DATA(english, "multi30k-tok/val.en");
  const std::vector<std::string> lines = read_lines(english);
  EXPECT_EQ(lines.size(), 1014u);
  const std::span<const std::string> texts[] = {lines};
  const auto words = count_words(texts);
  std::vector<std::string> again;
  for (const std::string& line : lines) again.push_back(words->decode(words->encode(line)));
  const std::vector<std::vector<std::string>> references{lines};
  EXPECT_NEAR(infer::bleu(again, references, {.tokenize = "none", .lowercase = true}).score, 100, 1e-9);
}

TEST(Tatoeba, GivesChineseAndEnglishFromItsColumns) {
  FOVEA_NEEDS_DATA(path, "tatoeba-cmn-eng/cmn.txt");
  const ParallelText text = read_parallel_tsv(path, {.source_column = 2, .target_column = 1});
  EXPECT_EQ(text.size(), 22075);
  EXPECT_EQ(text.target[0], "Hi.");
  EXPECT_EQ(text.source[0], "嗨。");
  const std::span<const std::string> chinese[] = {text.source};
  const auto pieces = train_sentencepiece(chinese, {.type = "unigram", .size = 6000});
  for (int64_t i = 0; i < text.size(); i += 499) {
    std::string spaced;  // the one thing SentencePiece changes: runs of white space
    for (const std::string_view word : split_words(text.source[i]))
      spaced.append(spaced.empty() ? "" : " ").append(word);
    EXPECT_EQ(pieces->decode(pieces->encode(text.source[i])), spaced);
  }
}

TEST(Imdb, IsReadFromGzip) {
  FOVEA_NEEDS_DATA(path, "imdb/test.tsv.gz");
  EXPECT_EQ(read_lines(path).size(), 25000u);
}

TEST(Mnist, IsReadFromGzip) {
  FOVEA_NEEDS_DATA(images, "mnist/train-images-idx3-ubyte.gz");
  FOVEA_NEEDS_DATA(labels, "mnist/train-labels-idx1-ubyte.gz");
  const LabelledImages mnist = read_labelled_idx(images, labels);
  EXPECT_EQ(mnist.count, 60000);
  EXPECT_EQ(mnist.height, 28);
  EXPECT_EQ(mnist.width, 28);
  EXPECT_EQ(std::vector<int32_t>(mnist.labels.begin(), mnist.labels.begin() + 5),
            (std::vector<int32_t>{5, 0, 4, 1, 9}));
  double sum = 0;
  for (const uint8_t pixel : mnist.pixels) sum += pixel;
  EXPECT_NEAR(sum / (60000.0 * 28 * 28 * 255), 0.1307, 1e-4) << "the mean that everyone subtracts";
}

TEST(Flickr8k, EveryPhotographIsFoundInTheArchiveAndRead) {
  FOVEA_NEEDS_DATA(path, "flickr8k/images.tar");
  const TarFile tar(path);
  int64_t pictures = 0;
  for (const TarMember& member : tar.members()) {
    if (!member.name.ends_with(".jpg")) continue;
    if (pictures++ % 97 != 0) continue;
    const Image image = decode_image(tar.read(member), member.name);
    EXPECT_EQ(image.height, 160) << member.name;
    EXPECT_EQ(image.width, 160) << member.name;
  }
  EXPECT_EQ(pictures, 8091);
}

}  // namespace
}  // namespace fovea::data
