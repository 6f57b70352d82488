// Reads the tokenizer files of a Hugging Face folder, refuses what the tokenizers here would do differently, and makes
// the tokenizer.
#include "data/encoder_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "data/piece_model.h"
#include "data/vocabulary_json.h"
#include "io/file.h"

namespace fovea::data {
namespace fs = std::filesystem;
namespace {

using LargeJson = nlohmann::json;

// Larger than any that was ever published, and small enough to be read by mistake.
constexpr uint64_t kLargestFile = uint64_t{1} << 28;

// A token as it is shown in messages and texts: short, and on one line.
std::string token_text(const LargeJson& json, const std::string& where) {
  const LargeJson& text = json.is_object() && json.contains("content") ? json["content"] : json;
  require(text.is_string(), where, ": wanted a token");
  const auto& token = text.get_ref<const std::string&>();
  constexpr size_t kLongest = 200;
  const bool plain = std::none_of(token.begin(), token.end(),
                                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  require(!token.empty() && token.size() <= kLongest && plain, where, ": got the token ", in_quotes(token),
          ", wanted 1 to ", kLongest, " bytes without control characters");
  return token;
}

bool is_set(const LargeJson& json, const char* name) {
  return json.is_object() && json.contains(name) && json[name] != false;
}

// A token that was added to a vocabulary, or is in it and is never cut.
struct AddedToken {
  int64_t id;
  std::string text;
  bool strip_left;  // white space before it goes with it
};

AddedToken added_token(const LargeJson& json, int64_t id, const std::string& where) {
  require(json.is_object(), where, ": wanted objects for added tokens");
  AddedToken token{id, token_text(json, where), is_set(json, "lstrip")};
  for (const char* name : {"single_word", "rstrip"})
    require(!is_set(json, name), where, ": the added token ", in_quotes(token.text), " asks for ", name,
            ", which is not supported");
  return token;
}

template <class Options>
void set_mask_strip(const AddedToken& token, Options& options, const std::string& where) {
  if (token.text == options.mask)
    options.strip_before_mask = token.strip_left;
  else
    require(!token.strip_left, where, ": the added token ", in_quotes(token.text),
            " asks for lstrip, which is supported of the mask alone");
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// BERT's text is changed before it is cut, RoBERTa's is not: a token that wants to be found afterwards is the
// same there.
void check_added(const LargeJson& json, const AddedToken& token, WordPieceFile& file,
                 const std::string& where) {
  require(!is_set(json, "normalized"), where, ": the added token ", in_quotes(token.text),
          " asks for normalized, which is not supported");
  set_mask_strip(token, file.options, where);
}
void check_added(const LargeJson&, const AddedToken& token, ByteBpeFile& file, const std::string& where) {
  set_mask_strip(token, file.options, where);
}
// What is looked for in changed text could stand elsewhere than in raw text.
void check_added(const LargeJson& json, const AddedToken& token, UnigramFile& file,
                 const std::string& where) {
  require(!is_set(json, "normalized") || is_ascii(token.text), where, ": the added token ",
          in_quotes(token.text), " asks for normalized, which is not supported");
  set_mask_strip(token, file.options, where);
}

template <class File>
class AddedTokens {
 public:
  AddedTokens(File& file, const std::string& where) : file_(file), where_(where) {}

  void read(const LargeJson& json, int64_t id) {
    added_.push_back(added_token(json, id, where_));
    check_added(json, added_.back(), file_, where_);
  }
  // Those behind the vocabulary's end are appended to it.
  void apply() {
    std::sort(added_.begin(), added_.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (const AddedToken& token : added_) {
      const auto size = static_cast<int64_t>(file_.tokens.size());
      require(token.id >= 0 && token.id <= size, where_, ": the added token ", in_quotes(token.text),
              " has id ", token.id, ", but the vocabulary ends at ", size - 1);
      if (token.id == size) file_.tokens.push_back(token.text);
      require(file_.tokens[static_cast<size_t>(token.id)] == token.text, where_, ": the added token ",
              in_quotes(token.text), " has id ", token.id, ", which is another token of the vocabulary");
      file_.options.whole.push_back(token.text);
    }
  }

 private:
  File& file_;
  const std::string& where_;
  std::vector<AddedToken> added_;
};

// added_tokens of a tokenizer.json.
template <class File>
void read_added_list(const LargeJson& json, File& file, const std::string& name) {
  if (!json.contains("added_tokens")) return;
  require(json["added_tokens"].is_array(), name, ": added_tokens is no list");
  AddedTokens added(file, name);
  for (const LargeJson& token : json["added_tokens"]) {
    require(token.is_object() && token.contains("id") && token["id"].is_number_unsigned(), name,
            ": an added token has no id");
    const uint64_t id = std::min<uint64_t>(token["id"].get<uint64_t>(), std::numeric_limits<int32_t>::max());
    added.read(token, static_cast<int64_t>(id));
  }
  added.apply();
}

// added_tokens_decoder of a tokenizer_config.json.
template <class File>
void read_added_object(const LargeJson& json, File& file, const std::string& name) {
  if (!json.contains("added_tokens_decoder")) return;
  require(json["added_tokens_decoder"].is_object(), name, ": added_tokens_decoder is no object");
  AddedTokens added(file, name);
  for (const auto& item : json["added_tokens_decoder"].items()) {
    const std::string& id = item.key();
    require(!id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == std::string::npos, name,
            ": added_tokens_decoder names the id ", in_quotes(id));
    added.read(item.value(), std::stoll(id));
  }
  added.apply();
}

void read_flag(const LargeJson& json, const char* name, bool& value, const std::string& where) {
  if (!json.contains(name)) return;
  require(json[name].is_boolean(), where, ": ", name, " is neither true nor false");
  value = json[name].get<bool>();
}

void read_strip_accents(const LargeJson& json, std::optional<bool>& value, const std::string& where) {
  if (!json.contains("strip_accents")) return;
  value.reset();
  if (json["strip_accents"].is_null()) return;
  read_flag(json, "strip_accents", value.emplace(false), where);
}

// What both kinds say in tokenizer_config.json: the class, the spelling of marks, more whole tokens.
template <class File>
void read_marks(const LargeJson& json, std::initializer_list<std::string_view> classes, File& file,
                const std::string& name) {
  require(json.is_object(), name, ": wanted an object of named options");
  if (json.contains("tokenizer_class") && json["tokenizer_class"].is_string()) {
    std::string kind = json["tokenizer_class"].get<std::string>();
    if (kind.ends_with("Fast")) kind.resize(kind.size() - 4);
    const bool any = kind == "PreTrainedTokenizer" || kind == "TokenizersBackend";
    require(any || std::find(classes.begin(), classes.end(), kind) != classes.end(), name,
            ": tokenizer_class is ", in_quotes(kind), ", wanted ", *classes.begin());
  }
  auto& options = file.options;
  const auto read_mark = [&](const char* mark, std::string& spelling) {
    if (json.contains(mark) && !json[mark].is_null()) spelling = token_text(json[mark], name + ": " + mark);
  };
  read_mark("cls_token", options.begin);
  read_mark("sep_token", options.end);
  read_mark("unk_token", options.unknown);
  read_mark("mask_token", options.mask);
  read_mark("pad_token", options.pad);
  if (!json.contains("additional_special_tokens") || json["additional_special_tokens"].is_null()) return;
  require(json["additional_special_tokens"].is_array(), name, ": additional_special_tokens is no list");
  for (const LargeJson& token : json["additional_special_tokens"])
    options.whole.push_back(token_text(token, name + ": additional_special_tokens"));
}

// The member `name` of an object, which must be an object of this type.
const LargeJson& typed_member(const LargeJson& json, const char* name, const char* type,
                              const std::string& where) {
  require(json.contains(name) && json[name].is_object() && json[name].contains("type"), where, ": no ", name,
          ", wanted one of type ", type);
  const LargeJson& member = json[name];
  const std::string found =
      member["type"].is_string() ? member["type"].get<std::string>() : member["type"].dump();
  require(found == type, where, ": ", name, " is of type ", in_quotes(found), ", wanted ", type);
  return member;
}

// The bytes of base64 text. Throws Error on anything else.
std::string from_base64(std::string_view text, const std::string& where) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    require(digit != std::string_view::npos, where, ": precompiled_charsmap is not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

std::string type_of(const LargeJson& json) {
  return json.is_object() && json.contains("type") && json["type"].is_string()
             ? json["type"].get<std::string>()
             : std::string();
}

// Precompiled, alone or followed by what newer files put against white space.
void read_unigram_normalizer(const LargeJson& json, UnigramFile& file, const std::string& name) {
  if (json.is_null()) return;
  std::vector<const LargeJson*> steps;
  if (type_of(json) == "Sequence" && json.contains("normalizers") && json["normalizers"].is_array())
    for (const LargeJson& step : json["normalizers"]) steps.push_back(&step);
  else
    steps.push_back(&json);
  for (size_t i = 0; i < steps.size(); ++i) {
    const LargeJson& step = *steps[i];
    const std::string type = type_of(step);
    if (type == "Precompiled" && i == 0) {
      require(step.contains("precompiled_charsmap") && step["precompiled_charsmap"].is_string(), name,
              ": the normalizer has no precompiled_charsmap");
      file.replacements = from_base64(step["precompiled_charsmap"].get_ref<const std::string&>(), name);
      continue;
    }
    const bool strips_end = type == "Strip" && !is_set(step, "strip_left") && is_set(step, "strip_right");
    if (type == "Strip" && !is_set(step, "strip_left") && !strips_end) continue;  // strips nothing
    const bool joins_spaces =
        type == "Replace" && step.contains("pattern") && step["pattern"].is_object() &&
        step["pattern"].value("Regex", LargeJson()) == " {2,}" &&
        (step.value("content", LargeJson()) == " " || step.value("content", LargeJson()) == kWordMark);
    require(strips_end || joins_spaces, name, ": the normalizer ", in_quotes(type),
            " is not known, wanted Precompiled, Strip of the end or Replace of runs of spaces");
    (strips_end ? file.strip_end : file.join_spaces) = true;
  }
}

void check_metaspace(const LargeJson& json, const std::string& name) {
  require(type_of(json) == "Metaspace", name, ": the pre_tokenizer ", in_quotes(type_of(json)),
          " is not known, wanted Metaspace, or WhitespaceSplit and Metaspace");
  const bool always = json.contains("prepend_scheme")
                          ? json["prepend_scheme"] == "always"
                          : json.value("add_prefix_space", LargeJson(true)) == true;
  require(
      always && json.value("replacement", LargeJson(kWordMark)) == kWordMark &&
          json.value("split", LargeJson(true)) == true,
      name,
      ": Metaspace with other settings than replacement ▁, prepend_scheme always and split true, which is "
      "not supported");
}

void read_unigram_cutter(const LargeJson& json, UnigramFile& file, const std::string& name) {
  file.split_white = type_of(json) == "Sequence";
  if (!file.split_white) return check_metaspace(json, name);
  const LargeJson steps = json.value("pretokenizers", LargeJson());
  require(steps.is_array() && steps.size() == 2 && type_of(steps[0]) == "WhitespaceSplit", name,
          ": a pre_tokenizer of other steps than WhitespaceSplit and Metaspace, which is not supported");
  check_metaspace(steps[1], name);
}

// "a b", or ["a", "b"] in newer files.
Merge merge_of(const LargeJson& json, const std::string& where) {
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string())
    return {json[0].get<std::string>(), json[1].get<std::string>()};
  require(json.is_string(), where, ": merges is no list of pairs");
  const auto& text = json.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  require(space != std::string::npos, where, ": got the merge ", in_quotes(text), ", wanted two parts");
  return {text.substr(0, space), text.substr(space + 1)};
}

// Absurdly large where a tokenizer has no limit.
int64_t max_tokens_of(const LargeJson& json, const std::string& where) {
  if (!json.contains("model_max_length") || json["model_max_length"].is_null()) return 0;
  require(json["model_max_length"].is_number(), where, ": model_max_length is no number");
  const double length = json["model_max_length"].get<double>();
  require(length >= 1, where, ": model_max_length is ", length, ", wanted at least 1");
  return length < 1e9 ? static_cast<int64_t>(length) : 0;
}

// MPNet has BERT's pieces between RoBERTa's marks.
const WordPieceOptions kMpnetOptions = {.begin = "<s>",
                                        .end = "</s>",
                                        .mask = "<mask>",
                                        .pad = "<pad>",
                                        .strip_before_mask = true,
                                        .doubled = true};

// options: those that the files do not change.
WordPieceFile read_wordpiece(const fs::path& folder, std::string& name, const WordPieceOptions& options) {
  const fs::path lines = folder / "vocab.txt", json = folder / "tokenizer.json";
  if (path_exists(lines)) {
    name = lines.string();
    return {parse_wordpiece_tokens(read_text(lines, kLargestFile), name), options};
  }
  require(path_exists(json), folder.string(), " has no tokenizer, wanted vocab.txt or tokenizer.json");
  name = json.string();
  return parse_wordpiece_json(read_text(json, kLargestFile), name, options);
}

ByteBpeFile read_byte_bpe(const fs::path& folder, std::string& name) {
  const fs::path vocabulary = folder / "vocab.json", merges = folder / "merges.txt",
                 json = folder / "tokenizer.json";
  if (path_exists(vocabulary) && path_exists(merges)) {
    name = vocabulary.string();
    return {parse_vocabulary_json(read_text(vocabulary, kLargestFile), name),
            parse_merges(read_text(merges, kLargestFile), merges.string()),
            {}};
  }
  require(path_exists(json), folder.string(),
          " has no tokenizer, wanted vocab.json with merges.txt, or tokenizer.json");
  name = json.string();
  return parse_byte_bpe_json(read_text(json, kLargestFile), name);
}

// What transformers prefers comes first: tokenizer.json.
UnigramFile read_unigram(const fs::path& folder, std::string& name) {
  const fs::path json = folder / "tokenizer.json", model = folder / "sentencepiece.bpe.model";
  const bool from_json = path_exists(json);
  require(from_json || path_exists(model), folder.string(),
          " has no tokenizer, wanted sentencepiece.bpe.model or tokenizer.json");
  name = (from_json ? json : model).string();
  std::string text = read_text(name, kLargestFile);
  return from_json ? parse_unigram_json(text, name) : parse_xlm_roberta_model(text, name);
}

// Sets what tokenizer_config.json says, where there is one; gives the most tokens it allows.
template <class File>
int64_t read_tokenizer_config(const fs::path& folder, File& file) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!path_exists(path)) return 0;
  const LargeJson json = parse_large_json(read_text(path, kLargestFile), path.string());
  apply_tokenizer_config(json, file, path.string());
  return max_tokens_of(json, path.string());
}

// The type of the model in a folder's tokenizer.json: "BPE", "Unigram", "WordPiece"; empty: there is none.
std::string type_in_json(const fs::path& folder) {
  const fs::path path = folder / "tokenizer.json";
  if (!path_exists(path)) return {};
  const LargeJson json = parse_large_json(read_text(path, kLargestFile), path.string());
  return json.is_object() && json.contains("model") ? type_of(json["model"]) : std::string();
}

enum class Cutting { wordpiece, byte_bpe, pieces };

// A family is usually published with one kind of tokenizer, but a folder's files decide: many multilingual BERTs read
// XLM-RoBERTa's pieces, some RoBERTas read WordPiece, and Longformer and BigBird have the tokenizer of the model that they
// were made from.
Cutting cutting_of(const fs::path& folder, const std::string& model_type) {
  if (model_type == "xlm-roberta") return Cutting::pieces;
  if (path_exists(folder / "merges.txt")) return Cutting::byte_bpe;
  require(
      !path_exists(folder / "bpe.codes"), folder.string(),
      ": bpe.codes is of a tokenizer that is not supported; wanted WordPiece, byte-level BPE or SentencePiece");
  if (path_exists(folder / "vocab.txt")) return Cutting::wordpiece;
  if (path_exists(folder / "spiece.model") || path_exists(folder / "sentencepiece.bpe.model"))
    return Cutting::pieces;
  const std::string type = type_in_json(folder);
  if (type == "Unigram") return Cutting::pieces;
  if (type == "WordPiece") return Cutting::wordpiece;
  return type == "BPE" || model_type == "roberta" ? Cutting::byte_bpe : Cutting::wordpiece;
}

// What transformers prefers comes first: tokenizer.json.
UnigramFile read_big_bird(const fs::path& folder, std::string& name) {
  const fs::path json = folder / "tokenizer.json", model = folder / "spiece.model";
  const bool from_json = path_exists(json);
  name = (from_json ? json : model).string();
  std::string text = read_text(name, kLargestFile);
  return from_json ? parse_unigram_json(text, name, big_bird_options()) : parse_big_bird_model(text, name);
}

}  // namespace

void require_as_many_tokens(const MarkedTokenizer& tokenizer, int64_t rows, const std::string& where) {
  constexpr int64_t kFilledTo = 64, kMostFilling = 127;
  const int64_t more = rows - tokenizer.size();
  require(more >= 0, where, ": the tokenizer has ", tokenizer.size(), " tokens, but the embedding table ",
          rows, " rows; they belong to different models");
  // A list of lines may have lost its end without anyone noticing; a SentencePiece model cannot be read then.
  const bool lines = tokenizer.file_name() == "vocab.txt";
  require(more == 0 || ((!lines || rows % kFilledTo == 0) && more <= kMostFilling), where,
          ": the tokenizer has ", tokenizer.size(), " tokens, but the embedding table ", rows,
          " rows; the vocabulary file is cut short, or of another model");
}

WordPieceFile parse_wordpiece_json(std::string_view text, const std::string& name,
                                   const WordPieceOptions& marks) {
  const LargeJson json = parse_large_json(text, name);
  require(json.is_object(), name, ": wanted an object with model, normalizer and pre_tokenizer");
  const LargeJson& model = typed_member(json, "model", "WordPiece", name);
  const LargeJson& normalizer = typed_member(json, "normalizer", "BertNormalizer", name);
  typed_member(json, "pre_tokenizer", "BertPreTokenizer", name);
  require(model.contains("vocab"), name, ": the model has no vocab");
  WordPieceFile file{tokens_by_id(model["vocab"], name), marks};
  WordPieceOptions& options = file.options;
  if (model.contains("unk_token")) options.unknown = token_text(model["unk_token"], name + ": unk_token");
  if (model.contains("continuing_subword_prefix"))
    options.prefix = token_text(model["continuing_subword_prefix"], name + ": continuing_subword_prefix");
  if (model.contains("max_input_chars_per_word")) {
    const LargeJson& most = model["max_input_chars_per_word"];
    require(most.is_number_unsigned(), name, ": max_input_chars_per_word is no whole number");
    options.longest_word = static_cast<int64_t>(std::min<uint64_t>(most.get<uint64_t>(), 1'000'000));
  }
  read_flag(normalizer, "clean_text", options.clean, name);
  read_flag(normalizer, "handle_chinese_chars", options.split_chinese, name);
  read_flag(normalizer, "lowercase", options.lowercase, name);
  read_strip_accents(normalizer, options.strip_accents, name);
  read_added_list(json, file, name);
  return file;
}

ByteBpeFile parse_byte_bpe_json(std::string_view text, const std::string& name) {
  const LargeJson json = parse_large_json(text, name);
  require(json.is_object(), name, ": wanted an object with model and pre_tokenizer");
  const LargeJson& model = typed_member(json, "model", "BPE", name);
  const LargeJson& cutter = typed_member(json, "pre_tokenizer", "ByteLevel", name);
  require(!is_set(json, "normalizer") || json["normalizer"].is_null(), name,
          ": a normalizer, wanted none for byte-level BPE");
  require(model.contains("vocab") && model.contains("merges") && model["merges"].is_array(), name,
          ": the model has no vocab or no merges");
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    require(!model.contains(affix) || model[affix].is_null() || model[affix] == "", name, ": ", affix,
            " is set, which is not supported");
  ByteBpeFile file{tokens_by_id(model["vocab"], name), {}, {}};
  for (const LargeJson& merge : model["merges"]) file.merges.push_back(merge_of(merge, name));
  read_flag(cutter, "add_prefix_space", file.options.prefix_space, name);
  read_added_list(json, file, name);
  return file;
}

UnigramFile parse_unigram_json(std::string_view text, const std::string& name, const UnigramOptions& marks) {
  const LargeJson json = parse_large_json(text, name);
  require(json.is_object(), name, ": wanted an object with model and pre_tokenizer");
  const LargeJson& model = typed_member(json, "model", "Unigram", name);
  require(model.contains("vocab") && model["vocab"].is_array() && !model["vocab"].empty(), name,
          ": the model has no vocab");
  require(!is_set(model, "byte_fallback"), name, ": byte_fallback is set, which is not supported");
  UnigramFile file;
  file.options = marks;
  for (const LargeJson& entry : model["vocab"]) {
    require(entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number(), name,
            ": the vocabulary wants a piece and its score for each token");
    file.tokens.push_back(entry[0].get<std::string>());
    file.scores.push_back(entry[1].get<float>());
    require(std::isfinite(file.scores.back()), name, ": the score of ", in_quotes(file.tokens.back()),
            " is not finite");
  }
  const LargeJson unknown = model.value("unk_id", LargeJson());
  require(unknown.is_number_unsigned() && unknown.get<uint64_t>() < file.tokens.size(), name,
          ": unk_id is no token of the vocabulary");
  file.options.unknown = file.tokens[unknown.get<size_t>()];
  read_unigram_normalizer(json.value("normalizer", LargeJson()), file, name);
  read_unigram_cutter(json.value("pre_tokenizer", LargeJson()), file, name);
  file.options.strip_before_mask = false;  // unless an added token says so
  read_added_list(json, file, name);
  return file;
}

void apply_tokenizer_config(const LargeJson& json, UnigramFile& file, const std::string& name) {
  read_marks(json, {"XLMRobertaTokenizer", "BigBirdTokenizer"}, file, name);
  read_added_object(json, file, name);
}

void apply_tokenizer_config(const LargeJson& json, WordPieceFile& file, const std::string& name) {
  read_marks(json, {"BertTokenizer", "DistilBertTokenizer", "MPNetTokenizer"}, file, name);
  bool basic = true;
  read_flag(json, "do_basic_tokenize", basic, name);
  require(basic, name, ": do_basic_tokenize is false, which is not supported");
  read_flag(json, "do_lower_case", file.options.lowercase, name);
  read_flag(json, "tokenize_chinese_chars", file.options.split_chinese, name);
  read_strip_accents(json, file.options.strip_accents, name);
  read_added_object(json, file, name);
}

void apply_tokenizer_config(const LargeJson& json, ByteBpeFile& file, const std::string& name) {
  read_marks(json, {"RobertaTokenizer", "LongformerTokenizer"}, file, name);
  read_flag(json, "add_prefix_space", file.options.prefix_space, name);
  if (json.contains("mask_token") && json["mask_token"].is_object())
    file.options.strip_before_mask = is_set(json["mask_token"], "lstrip");
  read_added_object(json, file, name);
}

EncoderTokenizer load_encoder_tokenizer(const fs::path& folder, const std::string& model_type) {
  EncoderTokenizer loaded;
  std::string name;
  const Cutting cutting = cutting_of(folder, model_type);
  if (cutting == Cutting::byte_bpe) {
    ByteBpeFile file = read_byte_bpe(folder, name);
    loaded.max_tokens = read_tokenizer_config(folder, file);
    loaded.tokenizer = make_byte_bpe(std::move(file.tokens), file.merges, file.options, name);
    return loaded;
  }
  if (cutting == Cutting::pieces) {
    const bool big_bird = model_type == "big_bird" || model_type == "longformer";
    UnigramFile file = big_bird ? read_big_bird(folder, name) : read_unigram(folder, name);
    loaded.max_tokens = read_tokenizer_config(folder, file);
    loaded.tokenizer = make_unigram(std::move(file), name);
    return loaded;
  }
  WordPieceFile file =
      read_wordpiece(folder, name, model_type == "mpnet" ? kMpnetOptions : WordPieceOptions{});
  loaded.max_tokens = read_tokenizer_config(folder, file);
  loaded.tokenizer = make_wordpiece(std::move(file.tokens), file.options, name);
  return loaded;
}

}  // namespace fovea::data
