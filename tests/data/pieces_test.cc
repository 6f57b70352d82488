// SentencePiece models that others have trained: ids against the SentencePiece library, Hugging Face's tokenizers and
// MarianTokenizer; and files that are damaged on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_of.h"
#include "data/encoder_tokenizer.h"
#include "data/files.h"
#include "data/marian_tokenizer.h"
#include "data/piece_model.h"
#include "data/replacement_table.h"
#include "data/unigram.h"
#include "data/wire_format.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"

namespace fovea::data {
namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;
using ::testing::HasSubstr;

const nlohmann::json& golden() {
  static const nlohmann::json json =
      parse_large_json(read_text(FOVEA_GOLDEN "/pieces.json", uint64_t{1} << 26), "pieces.json");
  return json;
}

const std::string& model_bytes() {
  static const std::string bytes = read_text(FOVEA_GOLDEN "/pieces.model", uint64_t{1} << 26);
  return bytes;
}

// The model's table of character replacements.
std::string table_bytes() {
  std::string found;
  visit_bytes(model_bytes(), [&](uint64_t field, std::string_view bytes) {
    if (field == 3)
      visit_bytes(bytes, [&](uint64_t inner, std::string_view table) {
        if (inner == 2) found = table;
      });
  });
  return found;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += i + j > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * j) & 63];
  }
  return text;
}

nlohmann::json tokenizer_json() {
  nlohmann::json json = golden()["tokenizer_json"];
  json["normalizer"]["precompiled_charsmap"] = base64(table_bytes());
  return json;
}

std::unique_ptr<MarkedTokenizer> from_json(const nlohmann::json& json) {
  return make_unigram(parse_unigram_json(json.dump(), "T"), "T");
}

uint64_t checksum(const Ids& ids) {
  uint64_t value = 0xcbf29ce484222325ull;
  for (const int32_t id : ids) value = (value ^ static_cast<uint64_t>(id)) * 0x100000001b3ull;
  return value >> 32;
}

// Every text that is cut otherwise; the first few are named.
void expect_ids(const MarkedTokenizer& tokenizer, const std::string& list) {
  const Texts texts = golden()["texts"].get<Texts>(), more = golden()["more"].get<Texts>();
  ASSERT_GT(texts.size(), 80u);
  ASSERT_GE(more.size(), 4000u);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer.encode(texts[i]), golden()[list][i].get<Ids>()) << texts[i];
  int wrong = 0;
  for (size_t i = 0; i < more.size(); ++i)
    if (checksum(tokenizer.encode(more[i])) != golden()["more_" + list][i].get<uint64_t>() && ++wrong <= 5)
      ADD_FAILURE() << "text " << i << ": " << more[i];
  EXPECT_EQ(wrong, 0);
}

TEST(Unigram, GivesTheLibrarysIdsFromTheModelFile) {
  const auto tokenizer = make_unigram(parse_xlm_roberta_model(model_bytes(), "M"), "M");
  expect_ids(*tokenizer, "library");
  EXPECT_EQ(tokenizer->size(), static_cast<int32_t>(golden()["tokenizer_json"]["model"]["vocab"].size()));
  const Marks& marks = tokenizer->marks();
  EXPECT_EQ((Ids{marks.begin, marks.pad, marks.end, marks.unknown, marks.mask}),
            (Ids{0, 1, 2, 3, tokenizer->size() - 1}));
}

TEST(Unigram, GivesHuggingFacesIdsFromTokenizerJson) {
  expect_ids(*from_json(tokenizer_json()), "tokenizers");
}

// Where characters were replaced, a token stands for what became it, even if the replacement stands in the text too.
TEST(Unigram, TokensStandForTheCharactersOfTokenizers) {
  const nlohmann::json spans =
      parse_large_json(read_text(FOVEA_GOLDEN "/token_spans.json", uint64_t{1} << 26), "token_spans.json");
  const auto tokenizer = from_json(tokenizer_json());
  const auto read = make_unigram(parse_xlm_roberta_model(model_bytes(), "M"), "M");
  const Texts texts = spans["texts"].get<Texts>();
  ASSERT_GE(texts.size(), 100u);
  int compared = 0, different = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    // The last texts were written for this test.
    const bool random = i + 7 < texts.size();
    // The white space before the mask is part of the mask there, and not here.
    if (texts[i].find("<mask>") != std::string::npos) continue;
    Ids ids;
    const std::vector<TokenSpan> found = tokenizer->spans(texts[i]);
    const nlohmann::json& wanted = spans["unigram"][i];
    for (const TokenSpan& span : found) ids.push_back(span.id);
    EXPECT_EQ(ids, tokenizer->encode(texts[i])) << texts[i];
    ASSERT_EQ(found.size(), wanted.size()) << texts[i];
    for (size_t t = 0; t < found.size(); ++t) {
      SCOPED_TRACE(message(texts[i], ", token ", t, " ", tokenizer->piece(found[t].id)));
      if (tokenizer->piece(found[t].id) == kWordMark) {  // there it stands for the character after it
        EXPECT_EQ(found[t].begin, found[t].end);
        continue;
      }
      const std::vector<int64_t> own{found[t].begin, found[t].end};
      ++compared;
      if (random)
        different += wanted[t].get<std::vector<int64_t>>() != own;
      else
        EXPECT_EQ(own, wanted[t].get<std::vector<int64_t>>());
    }
    // From the model file: the same tokens as encode(), in the order of the text.
    ids.clear();
    int64_t before = 0;
    for (const TokenSpan& span : read->spans(texts[i])) {
      ids.push_back(span.id);
      EXPECT_GE(span.begin, before) << texts[i];
      EXPECT_GE(span.end, span.begin) << texts[i];
      before = span.begin;
    }
    EXPECT_EQ(ids, read->encode(texts[i])) << texts[i];
  }
  EXPECT_GT(compared, 1000);
  // Where a cluster of several characters is replaced by another number of them, `tokenizers` counts one by one, and may give
  // a part to the next character.
  EXPECT_LE(different, 5);
}

// multilingual-e5-small and paraphrase-multilingual-MiniLM-L12-v2 are BERTs with XLM-RoBERTa's vocabulary, and with a few
// rows more in their tables than it has tokens.
TEST(Unigram, IsFoundInFoldersOfOtherFamilies) {
  const TemporaryDirectory json, library, lines;
  write_atomically(json / "tokenizer.json", tokenizer_json().dump());
  write_atomically(library / "sentencepiece.bpe.model", model_bytes());
  for (const char* type : {"bert", "distilbert", "roberta", "xlm-roberta"}) {
    expect_ids(*load_encoder_tokenizer(json.path(), type).tokenizer, "tokenizers");
    expect_ids(*load_encoder_tokenizer(library.path(), type).tokenizer, "library");
  }
  const auto tokenizer = load_encoder_tokenizer(json.path(), "bert").tokenizer;
  const auto why = [&](const MarkedTokenizer& of, int64_t rows) {
    return error_of([&] { require_as_many_tokens(of, rows, "M"); });
  };
  EXPECT_EQ(why(*tokenizer, tokenizer->size() + 35), "no error");
  EXPECT_THAT(why(*tokenizer, tokenizer->size() + 128), HasSubstr("of another model"));
  EXPECT_THAT(why(*tokenizer, tokenizer->size() - 1), HasSubstr("different models"));
  // WordPiece in a RoBERTa: a list of lines that may have lost its end.
  write_atomically(lines / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfox\n");
  const auto words = load_encoder_tokenizer(lines.path(), "roberta").tokenizer;
  EXPECT_EQ(words->encode("Fox"), Ids{5});
  EXPECT_THAT(why(*words, 9), HasSubstr("cut short"));
  write_atomically(lines / "bpe.codes", "a b 3\n");
  EXPECT_THAT(error_of([&] { load_encoder_tokenizer(lines.path(), "roberta"); }), HasSubstr("bpe.codes"));
}

TEST(Unigram, MarksPairsAsRobertaDoes) {
  const auto tokenizer = from_json(tokenizer_json());
  for (const auto& pair : golden()["pairs"]) {
    const auto first = pair[0].get<std::string>(), second = pair[1].get<std::string>();
    const MarkedText marked = tokenizer->mark(tokenizer->encode(first), tokenizer->encode(second));
    EXPECT_EQ(marked.ids, pair[2].get<Ids>()) << pair;
    EXPECT_EQ(marked.types, Ids(marked.ids.size(), 0));
  }
}

TEST(Unigram, DecodesAndTellsWords) {
  const auto tokenizer = from_json(tokenizer_json());
  const Ids ids = tokenizer->encode("the quick brown fox");
  EXPECT_EQ(tokenizer->decode(ids), "the quick brown fox");
  EXPECT_EQ(tokenizer->words(ids).back(), 3);
  EXPECT_EQ(tokenizer->decode(tokenizer->mark(ids).ids), "the quick brown fox") << "marks are left out";
}

// Newer files cut at ▁ alone, after spaces were joined and those at the end taken off.
TEST(Unigram, ReadsTheNewerFormOfTokenizerJson) {
  nlohmann::json json = tokenizer_json();
  json["pre_tokenizer"] = json["pre_tokenizer"]["pretokenizers"][1];
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers",
                         {json["normalizer"],
                          {{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}},
                          {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "▁"}}}}};
  const auto newer = from_json(json), older = from_json(tokenizer_json());
  for (const char* text : {"the quick brown fox", "the  quick   brown ", "我喜欢 the"})
    EXPECT_EQ(newer->encode(text), older->encode(text)) << text;
}

TEST(Unigram, RefusesWhatItDoesNotKnowInOneLine) {
  const auto with = [](auto change) {
    nlohmann::json json = tokenizer_json();
    change(json);
    return error_of([&] { from_json(json); });
  };
  EXPECT_EQ(with([](auto&) {}), "no error");
  EXPECT_THAT(with([](auto& json) { json["model"]["type"] = "BPE"; }), HasSubstr("wanted Unigram"));
  EXPECT_THAT(with([](auto& json) { json["model"]["unk_id"] = 9999; }), HasSubstr("unk_id"));
  EXPECT_THAT(with([](auto& json) { json["model"]["unk_id"] = nullptr; }), HasSubstr("unk_id"));
  EXPECT_THAT(with([](auto& json) { json["model"]["vocab"] = "x"; }), HasSubstr("no vocab"));
  EXPECT_THAT(with([](auto& json) { json["model"]["vocab"][7] = {"x"}; }),
              HasSubstr("a piece and its score"));
  EXPECT_THAT(with([](auto& json) { json["model"]["vocab"][7] = {"x", 1e300}; }), HasSubstr("not finite"));
  EXPECT_THAT(with([](auto& json) { json["model"]["vocab"][7] = json["model"]["vocab"][8]; }),
              HasSubstr("tokens 7 and 8 are the same"));
  EXPECT_THAT(with([](auto& json) { json["model"]["byte_fallback"] = true; }), HasSubstr("byte_fallback"));
  EXPECT_THAT(with([](auto& json) { json["normalizer"]["precompiled_charsmap"] = "%%"; }),
              HasSubstr("base64"));
  EXPECT_THAT(with([](auto& json) { json["normalizer"]["precompiled_charsmap"] = "AAAA"; }),
              HasSubstr("cut short"));
  EXPECT_THAT(with([](auto& json) { json["normalizer"]["type"] = "NFKC"; }),
              HasSubstr("'NFKC' is not known"));
  EXPECT_THAT(with([](auto& json) { json["pre_tokenizer"]["pretokenizers"][0]["type"] = "Whitespace"; }),
              HasSubstr("other steps"));
  EXPECT_THAT(with([](auto& json) { json["pre_tokenizer"]["pretokenizers"][1]["prepend_scheme"] = "first"; }),
              HasSubstr("prepend_scheme always"));
}

TEST(ReplacementTable, DamagedOnesNeverLeadOutOfThemselves) {
  const std::string bytes = table_bytes();
  ASSERT_GT(bytes.size(), 100'000u);
  EXPECT_EQ(error_of([&] { ReplacementTable(bytes, "T"); }), "no error");
  EXPECT_THAT(error_of([&] { ReplacementTable("", "T"); }), HasSubstr("cut short"));
  EXPECT_THAT(error_of([&] { ReplacementTable(bytes.substr(0, 1000), "T"); }), HasSubstr("bytes are a trie"));
  EXPECT_THAT(error_of([&] { ReplacementTable(bytes.substr(0, bytes.size() - 1), "T"); }),
              HasSubstr("no end"));
  // Any unit with a far offset: refused, or out of reach; never followed.
  int refused = 0;
  for (size_t at = 4; at < 4 + 4 * 2000; at += 4) {
    std::string damaged = bytes;
    damaged.replace(at, 4, std::string("\x61\xff\xff\x7f", 4));
    const std::string why =
        error_of([&] { ReplacementTable(damaged, "T").replace_clusters("abc ａｂｃ é"); });
    refused += why != "no error";
  }
  EXPECT_GT(refused, 0);
}

TEST(PieceModel, DamagedFilesAreRefusedInOneLine) {
  EXPECT_THAT(error_of([&] { PieceModel("", "M"); }), HasSubstr("M"));
  EXPECT_THAT(error_of([&] { PieceModel("nonsense", "M"); }), HasSubstr("not a SentencePiece model"));
  EXPECT_THAT(error_of([&] { PieceModel(model_bytes().substr(0, 5000), "M"); }), HasSubstr("M"));
  std::string damaged = model_bytes();
  const size_t table = damaged.find(table_bytes());
  for (size_t at = table + 4; at < table + 4000; at += 4)
    damaged.replace(at, 4, std::string("\x61\xff\xff\x7f", 4));
  EXPECT_THAT(error_of([&] { PieceModel(damaged, "M"); }), HasSubstr("leads out of itself"));
}

TEST(PieceModel, PiecesThatTheLibraryCannotHoldAreRefused) {
  const std::vector<float> scores{0, 0};
  const auto model = [&](const std::string& piece) {
    return error_of([&] {
      PieceModel::verbatim(std::vector<std::string>{"<unk>", piece}, scores, 0, {}, "M");
    });
  };
  EXPECT_THAT(model(std::string("\0Pad", 4)), HasSubstr("contains a zero byte"));
  EXPECT_THAT(model(""), HasSubstr("not a SentencePiece model"));
  const std::vector<std::string> twice{"<unk>", "a", "a"};
  const std::vector<float> three{0, 0, 0};
  EXPECT_THAT(error_of([&] { PieceModel::verbatim(twice, three, 0, {}, "M"); }), HasSubstr("stands twice"));
}

// The library reads what a model of given pieces is as a file, and cuts the same: unused pieces are not found in text,
// bytes that are not UTF-8 are U+FFFD, and the spaces stay.
TEST(PieceModel, PiecesTakenVerbatimCutAsTheLibraryDoes) {
  const std::vector<std::string> pieces{"<s>", "a", "<unk>", "b", "ab", "\uFFFD", " ", "s", "aba"};
  const std::vector<float> scores{0, -1, 0, -2, -2.5f, -3, -1, -4, -9};
  const int32_t unused[] = {0};
  const PieceModel given = PieceModel::verbatim(pieces, scores, 2, unused, "M");
  const PieceModel read(given.bytes(), "M");
  EXPECT_EQ(given.size(), 9);
  EXPECT_EQ(given.unknown(), 2);
  EXPECT_EQ(given.piece(4), "ab");
  for (const std::string text :
       {"", "ababa", "<s>a", " a  b ", "a\xff\xe4\xb8!b", "xyz", "\xf0\x9f\x98\x80 ab"}) {
    EXPECT_EQ(given.ids(text), read.ids(text)) << text;
    EXPECT_EQ(given.pieces(text), read.pieces(text)) << text;
  }
  EXPECT_EQ(given.ids("ab a\xff"), (std::vector<int32_t>{4, 6, 1, 5}));
}

class MarianTokenizers : public ::testing::Test {
 protected:
  MarianTokenizers() {
    nlohmann::json vocabulary = nlohmann::json::object();
    const Texts tokens = golden()["marian"]["tokens"].get<Texts>();
    for (size_t i = 0; i < tokens.size(); ++i) vocabulary[tokens[i]] = i;
    write_atomically(folder_ / "vocab.json", vocabulary.dump());
    for (const char* name : {"source.spm", "target.spm"}) write_atomically(folder_ / name, model_bytes());
  }
  std::string why() {
    return error_of([&] { load_marian_tokenizers(folder_.path()); });
  }
  TemporaryDirectory folder_;
};

TEST_F(MarianTokenizers, GiveMarianTokenizersIdsAndTexts) {
  const Tokenizers tokenizers = load_marian_tokenizers(folder_.path());
  const auto& list = golden()["marian"];
  const Texts texts = list["texts"].get<Texts>();
  for (size_t i = 0; i < texts.size(); ++i) {
    const Ids ids = tokenizers.source->encode(texts[i]);
    EXPECT_EQ(ids, list["ids"][i].get<Ids>()) << texts[i];
    Ids known;  // how "<unk>" is written depends on what the library thinks of it
    for (const int32_t id : ids)
      if (id != 1) known.push_back(id);
    if (known == ids) {
      EXPECT_EQ(tokenizers.target->decode(ids), list["decoded"][i].get<std::string>()) << texts[i];
    }
  }
  const SequenceMarks marks = tokenizers.target->sequence_marks();
  const auto last = static_cast<int32_t>(list["tokens"].size()) - 1;
  EXPECT_EQ((Ids{marks.begin, marks.end, marks.never}), (Ids{last, 0, last}));
  EXPECT_TRUE(tokenizers.joint());
  EXPECT_EQ(target_languages(folder_.path()), (Texts{">>deu<<", ">>fra<<", ">>cmn_Hans<<"}));
}

TEST_F(MarianTokenizers, TravelAsTheFilesTheyCameIn) {
  const TemporaryDirectory other;
  save_tokenizers(other.path(), load_marian_tokenizers(folder_.path()));
  for (const char* name : {"source.spm", "target.spm", "vocab.json"})
    EXPECT_EQ(read_text(other / name, 1 << 26), read_text(folder_ / name, 1 << 26)) << name;
  EXPECT_EQ(load_tokenizers(other.path()).source->encode("the dog"),
            load_marian_tokenizers(folder_.path()).source->encode("the dog"));
}

TEST_F(MarianTokenizers, MissingAndDamagedFilesAreNamed) {
  std::filesystem::remove(folder_ / "target.spm");
  EXPECT_THAT(why(), HasSubstr("has no target.spm"));
  write_atomically(folder_ / "target.spm", "nonsense");
  EXPECT_THAT(why(), HasSubstr("target.spm: not a SentencePiece model"));
  write_atomically(folder_ / "target.spm", model_bytes());
  write_atomically(folder_ / "vocab.json", R"({"</s>": 0, "<unk>": 1})");
  EXPECT_THAT(why(), HasSubstr("no '<pad>' among its 2 tokens"));
  write_atomically(folder_ / "vocab.json", R"({"</s>": 0, "<unk>": 7})");
  EXPECT_THAT(why(), HasSubstr("not the numbers from 0 to 1"));
  write_atomically(folder_ / "vocab.json", R"({"</s>": 0, "<unk>": 4294967296000})");
  EXPECT_THAT(why(), HasSubstr("not the numbers from 0 to 1"));
  write_atomically(folder_ / "vocab.json", "[1]");
  EXPECT_THAT(why(), HasSubstr("no object"));
}

TEST(Mpnet, HasBertsPiecesBetweenRobertasMarks) {
  const auto& list = golden()["mpnet"];
  const TemporaryDirectory folder;
  std::string lines;
  for (const auto& token : list["tokens"]) lines += token.get<std::string>() + "\n";
  write_atomically(folder / "vocab.txt", lines);
  const EncoderTokenizer loaded = load_encoder_tokenizer(folder.path(), "mpnet");
  const Texts texts = list["texts"].get<Texts>();
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(loaded.tokenizer->encode(texts[i]), list["ids"][i].get<Ids>()) << texts[i];
  for (const auto& pair : list["pairs"])
    EXPECT_EQ(loaded.tokenizer
                  ->mark(loaded.tokenizer->encode(pair[0].get<std::string>()),
                         loaded.tokenizer->encode(pair[1].get<std::string>()))
                  .ids,
              pair[2].get<Ids>())
        << pair;
}

}  // namespace
}  // namespace fovea::data
