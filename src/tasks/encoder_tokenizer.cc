#include "tasks/encoder_tokenizer.h"

#include <algorithm>
#include <limits>
#include <map>

#include "io/file.h"

namespace fovea::tasks {
namespace fs = std::filesystem;
namespace {

// Larger than any that was ever published, and small enough to be read by mistake.
constexpr uint64_t kLargestFile = uint64_t{1} << 28;

// A token that stands in messages and in texts: short, and on one line.
std::string token_text(const auto& json, const std::string& where) {
  const auto* text = &json;
  if (json.is_object() && json.contains("content")) text = &json["content"];
  require(text->is_string(), where, ": wanted a token");
  const auto& token = text->template get_ref<const std::string&>();
  constexpr size_t kLongest = 200;
  const bool plain = std::none_of(token.begin(), token.end(),
                                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  require(!token.empty() && token.size() <= kLongest && plain, where, ": got the token ", in_quotes(token),
          ", wanted 1 to ", kLongest, " bytes without control characters");
  return token;
}

// A token that was added to a vocabulary, or stands in it and is never cut.
struct AddedToken {
  int64_t id;
  std::string text;
};

AddedToken added_token(const auto& json, int64_t id, const std::string& where) {
  require(json.is_object(), where, ": wanted objects for added tokens");
  AddedToken token{id, token_text(json, where)};
  for (const char* name : {"single_word", "lstrip", "rstrip", "normalized"})
    require(!json.contains(name) || json[name] == false, where, ": the added token ", in_quotes(token.text),
            " asks for ", name, ", which is not supported");
  return token;
}

void add_tokens(std::vector<AddedToken> added, WordPieceParts& parts, const std::string& name) {
  std::sort(added.begin(), added.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (const AddedToken& token : added) {
    const auto size = static_cast<int64_t>(parts.tokens.size());
    require(token.id >= 0 && token.id <= size, name, ": the added token ", in_quotes(token.text), " has id ",
            token.id, ", but the vocabulary ends at ", size - 1);
    if (token.id == size) parts.tokens.push_back(token.text);
    require(parts.tokens[static_cast<size_t>(token.id)] == token.text, name, ": the added token ",
            in_quotes(token.text), " has id ", token.id, ", which is another token of the vocabulary");
    parts.options.whole.push_back(token.text);
  }
}

void read_flag(const auto& json, const char* name, bool& value, const std::string& where) {
  if (!json.contains(name)) return;
  require(json[name].is_boolean(), where, ": ", name, " is neither true nor false");
  value = json[name].template get<bool>();
}

void read_strip_accents(const auto& json, std::optional<bool>& value, const std::string& where) {
  if (!json.contains("strip_accents")) return;
  value.reset();
  if (json["strip_accents"].is_null()) return;
  read_flag(json, "strip_accents", value.emplace(false), where);
}

// The member `name` of an object, which must be an object of this type; or null.
const nlohmann::json* typed_member(const nlohmann::json& json, const char* name, const char* type,
                                   const std::string& where) {
  require(json.contains(name) && json[name].is_object() && json[name].contains("type"), where, ": no ", name,
          ", wanted one of type ", type);
  const nlohmann::json& member = json[name];
  const std::string found =
      member["type"].is_string() ? member["type"].get<std::string>() : member["type"].dump();
  require(found == type, where, ": ", name, " is of type ", in_quotes(found), ", wanted ", type);
  return &member;
}

std::vector<std::string> tokens_by_id(const nlohmann::json& vocabulary, const std::string& where) {
  require(vocabulary.is_object(), where, ": model.vocab is no object of tokens and ids");
  std::vector<std::string> tokens(vocabulary.size());
  for (const auto& item : vocabulary.items()) {
    const bool number = item.value().is_number_unsigned();
    const uint64_t id = number ? item.value().get<uint64_t>() : std::numeric_limits<uint64_t>::max();
    require(id < tokens.size(), where, ": ids of model.vocab are not the numbers from 0 to ",
            tokens.size() - 1);
    require(tokens[id].empty() && !item.key().empty(), where, ": two tokens of model.vocab have the id ", id,
            ", or one is empty");
    tokens[id] = item.key();
  }
  return tokens;
}

const std::map<std::string, std::string data::WordPieceOptions::*>& mark_names() {
  using Options = data::WordPieceOptions;
  static const std::map<std::string, std::string Options::*> names{{"cls_token", &Options::begin},
                                                                   {"sep_token", &Options::end},
                                                                   {"unk_token", &Options::unknown},
                                                                   {"mask_token", &Options::mask},
                                                                   {"pad_token", &Options::pad}};
  return names;
}

WordPieceParts read_wordpiece(const fs::path& folder, std::string& name) {
  const fs::path lines = folder / "vocab.txt", json = folder / "tokenizer.json";
  if (fs::exists(lines)) {
    name = lines.string();
    return {data::parse_wordpiece_tokens(read_text(lines, kLargestFile), name), {}};
  }
  require(fs::exists(json), folder.string(), " has no tokenizer, wanted vocab.txt or tokenizer.json");
  name = json.string();
  return parse_wordpiece_json(read_text(json, kLargestFile), name);
}

// Absurdly large where a tokenizer has no limit.
int64_t max_tokens_of(const nlohmann::json& json, const std::string& where) {
  if (!json.contains("model_max_length") || json["model_max_length"].is_null()) return 0;
  require(json["model_max_length"].is_number(), where, ": model_max_length is no number");
  const double length = json["model_max_length"].get<double>();
  require(length >= 1, where, ": model_max_length is ", length, ", wanted at least 1");
  return length < 1e9 ? static_cast<int64_t>(length) : 0;
}

}  // namespace

WordPieceParts parse_wordpiece_json(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_large_json(text, name);
  require(json.is_object(), name, ": wanted an object with model, normalizer and pre_tokenizer");
  const nlohmann::json& model = *typed_member(json, "model", "WordPiece", name);
  const nlohmann::json& normalizer = *typed_member(json, "normalizer", "BertNormalizer", name);
  typed_member(json, "pre_tokenizer", "BertPreTokenizer", name);
  require(model.contains("vocab"), name, ": the model has no vocab");
  WordPieceParts parts{tokens_by_id(model["vocab"], name), {}};
  data::WordPieceOptions& options = parts.options;
  if (model.contains("unk_token")) options.unknown = token_text(model["unk_token"], name + ": unk_token");
  if (model.contains("continuing_subword_prefix"))
    options.prefix = token_text(model["continuing_subword_prefix"], name + ": continuing_subword_prefix");
  if (model.contains("max_input_chars_per_word")) {
    require(model["max_input_chars_per_word"].is_number_unsigned(), name,
            ": max_input_chars_per_word is no whole number");
    options.longest_word = static_cast<int64_t>(
        std::min<uint64_t>(model["max_input_chars_per_word"].get<uint64_t>(), 1'000'000));
  }
  read_flag(normalizer, "clean_text", options.clean, name);
  read_flag(normalizer, "handle_chinese_chars", options.split_chinese, name);
  read_flag(normalizer, "lowercase", options.lowercase, name);
  read_strip_accents(normalizer, options.strip_accents, name);
  if (!json.contains("added_tokens")) return parts;
  require(json["added_tokens"].is_array(), name, ": added_tokens is no list");
  std::vector<AddedToken> added;
  for (const nlohmann::json& token : json["added_tokens"]) {
    require(token.is_object() && token.contains("id") && token["id"].is_number_unsigned(), name,
            ": an added token has no id");
    const uint64_t id = std::min<uint64_t>(token["id"].get<uint64_t>(), std::numeric_limits<int32_t>::max());
    added.push_back(added_token(token, static_cast<int64_t>(id), name));
  }
  add_tokens(std::move(added), parts, name);
  return parts;
}

void apply_tokenizer_config(const nlohmann::json& json, WordPieceParts& parts, const std::string& name) {
  require(json.is_object(), name, ": wanted an object of named options");
  data::WordPieceOptions& options = parts.options;
  if (json.contains("tokenizer_class") && json["tokenizer_class"].is_string()) {
    std::string kind = json["tokenizer_class"].get<std::string>();
    if (kind.ends_with("Fast")) kind.resize(kind.size() - 4);
    constexpr std::string_view kKnown[] = {"BertTokenizer", "DistilBertTokenizer", "PreTrainedTokenizer",
                                           "TokenizersBackend"};
    require(std::find(std::begin(kKnown), std::end(kKnown), kind) != std::end(kKnown), name,
            ": tokenizer_class is ", in_quotes(kind), ", wanted BertTokenizer");
  }
  bool basic = true;
  read_flag(json, "do_basic_tokenize", basic, name);
  require(basic, name, ": do_basic_tokenize is false, which is not supported");
  read_flag(json, "do_lower_case", options.lowercase, name);
  read_flag(json, "tokenize_chinese_chars", options.split_chinese, name);
  read_strip_accents(json, options.strip_accents, name);
  if (json.contains("added_tokens_decoder")) {
    require(json["added_tokens_decoder"].is_object(), name, ": added_tokens_decoder is no object");
    std::vector<AddedToken> added;
    for (const auto& item : json["added_tokens_decoder"].items()) {
      const std::string& id = item.key();
      require(!id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == std::string::npos, name,
              ": added_tokens_decoder names the id ", in_quotes(id));
      added.push_back(added_token(item.value(), std::stoll(id), name));
    }
    add_tokens(std::move(added), parts, name);
  }
  for (const auto& [mark, member] : mark_names())
    if (json.contains(mark) && !json[mark].is_null())
      options.*member = token_text(json[mark], name + ": " + mark);
  if (!json.contains("additional_special_tokens") || json["additional_special_tokens"].is_null()) return;
  require(json["additional_special_tokens"].is_array(), name, ": additional_special_tokens is no list");
  for (const nlohmann::json& token : json["additional_special_tokens"])
    options.whole.push_back(token_text(token, name + ": additional_special_tokens"));
}

EncoderTokenizer load_encoder_tokenizer(const fs::path& folder, const std::string& model_type) {
  require(model_type == "bert" || model_type == "distilbert", folder.string(), ": the tokenizer of a ",
          model_type, " model is not known");
  std::string name;
  WordPieceParts parts = read_wordpiece(folder, name);
  EncoderTokenizer loaded;
  const fs::path config = folder / "tokenizer_config.json";
  if (fs::exists(config)) {
    const nlohmann::json json = parse_large_json(read_text(config, kLargestFile), config.string());
    apply_tokenizer_config(json, parts, config.string());
    loaded.max_tokens = max_tokens_of(json, config.string());
  }
  loaded.tokenizer = data::make_wordpiece(std::move(parts.tokens), parts.options, name);
  return loaded;
}

}  // namespace fovea::tasks
