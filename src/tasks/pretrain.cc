// Documents, pairs of their sentences with masked words, a BERT that learns to tell them, and its folder.
#include "tasks/pretrain.h"

#include <algorithm>

#include "base/error_kinds.h"
#include "data/encoder_tokenizer.h"
#include "data/pack_texts.h"
#include "data/pretraining.h"
#include "data/wordpiece_trainer.h"
#include "io/file.h"
#include "models/bert_folder.h"
#include "tasks/encoder_files.h"
#include "tasks/train_settings.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kLeastVocabulary = 1000, kMostVocabulary = 30522;
// Pairs processed together in a validation, and in all.
constexpr int64_t kValidBatch = 64, kMostValidated = 4096;

// The lines of all documents, kept as they are until there is a vocabulary.
struct TextDocuments {
  std::vector<std::string> sentences;
  std::vector<int64_t> starts{0};

  void end_document() {
    const auto count = static_cast<int64_t>(sentences.size());
    if (count > starts.back()) starts.push_back(count);
  }
  int64_t size() const { return static_cast<int64_t>(starts.size()) - 1; }
};

TextDocuments read_text_documents(const std::vector<std::string>& paths) {
  TextDocuments documents;
  data::read_documents(
      paths, [&](const std::string& line) { documents.sentences.push_back(line); },
      [&] { documents.end_document(); });
  require(documents.size() > 0, paths[0],
          ": no text; wanted a sentence on each line, blank lines between documents");
  require(
      documents.size() > 1, paths[0],
      ": one document only; wanted blank lines between documents, so that sentences of other documents are known");
  return documents;
}

data::TokenDocuments encode(const TextDocuments& text, const data::MarkedTokenizer& tokenizer) {
  data::TokenDocuments documents;
  documents.sentences = data::pack_texts(static_cast<int64_t>(text.sentences.size()), [&](int64_t i) {
    return tokenizer.encode(text.sentences[static_cast<size_t>(i)]);
  });
  // Sentences without tokens go, and so do documents without sentences.
  data::TokenDocuments kept;
  for (size_t d = 0; d + 1 < text.starts.size(); ++d) {
    for (int64_t s = text.starts[d]; s < text.starts[d + 1]; ++s)
      if (documents.sentences.length(s) > 0) kept.sentences.append(documents.sentences[s]);
    if (kept.sentences.size() > kept.starts.back()) kept.starts.push_back(kept.sentences.size());
  }
  return kept;
}

// The tokenizer and its files, learnt or taken from a folder.
struct Tokenizer {
  std::shared_ptr<const data::MarkedTokenizer> tokenizer;
  TokenizerFiles files;
};

Tokenizer learn_tokenizer(const PretrainTraining& training, const TextDocuments& text,
                          const std::string& path) {
  const data::WordPieceOptions options{.lowercase = training.lowercase};
  data::WordCounts counts(options);
  for (const std::string& sentence : text.sentences) counts.add(sentence);
  require(!counts.counts().empty(), path, ": no word to learn a vocabulary from, wanted words of at most ",
          options.longest_word, " characters");
  std::vector<std::string> tokens =
      data::learn_wordpiece(counts.counts(), {.size = *training.vocabulary}, options);
  std::string lines;
  for (const std::string& token : tokens) lines += token + "\n";
  const Json config{{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", training.lowercase},
                    {"tokenize_chinese_chars", true},     {"strip_accents", nullptr},
                    {"unk_token", options.unknown},       {"sep_token", options.end},
                    {"pad_token", options.pad},           {"cls_token", options.begin},
                    {"mask_token", options.mask},         {"model_max_length", training.max_tokens}};
  return {data::make_wordpiece(std::move(tokens), options, "the vocabulary learnt"),
          {{"vocab.txt", lines}, {"tokenizer_config.json", config.dump(2) + "\n"}}};
}

Tokenizer tokenizer_of(const std::filesystem::path& folder, const models::BertConfig& config,
                       const PretrainTraining& training) {
  const data::EncoderTokenizer found = data::load_encoder_tokenizer(folder, config.model_type);
  data::require_as_many_tokens(*found.tokenizer, config.vocab_size, folder.string());
  require(found.tokenizer->marks().mask >= 0, folder.string(),
          ": its vocabulary has no token for masked words");
  TokenizerFiles files = read_tokenizer_files(folder);
  if (found.max_tokens > 0 && found.max_tokens < training.max_tokens)
    set_longest_text(files, training.max_tokens, folder.string());
  return {found.tokenizer, std::move(files)};
}

std::vector<data::SpanPair> pairs_of(const data::TokenDocuments& documents, const PretrainTraining& training,
                                     int64_t passes, Rng& rng) {
  std::vector<data::SpanPair> pairs;
  for (int64_t i = 0; i < passes; ++i) {
    const auto more = data::make_pairs(
        documents, {.max_tokens = training.max_tokens, .short_share = training.short_share}, rng);
    pairs.insert(pairs.end(), more.begin(), more.end());
  }
  return pairs;
}

// Text as training needs it.
struct PretrainText {
  data::TokenDocuments documents;
  std::vector<data::SpanPair> pairs;
};

// Says what makes a training, or its scores, useless without being wrong.
void note_weaknesses(const PretrainText& text, const data::MarkedTokenizer& tokenizer,
                     const std::string& path, RunObserver& observer) {
  if (std::none_of(text.pairs.begin(), text.pairs.end(), [](const auto& pair) { return pair.follows; }))
    observer.on_note(message(
        "note: ", path,
        ": no pair of sentences that follow one another, since documents have one line each; the head for ",
        "the next sentence learns and is scored on other pairs only; write each sentence on a line of its own"));
  const std::vector<int32_t>& tokens = text.documents.sentences.tokens;
  const auto unknown = std::count(tokens.begin(), tokens.end(), tokenizer.marks().unknown);
  if (2 * unknown > static_cast<std::ptrdiff_t>(tokens.size()))
    observer.on_note(message("note: ", path, ": ", unknown, " of ", tokens.size(),
                             " tokens are not in the vocabulary and are read as ",
                             tokenizer.piece(tokenizer.marks().unknown),
                             "; is the text in the language of the vocabulary?"));
}

models::PretrainingBatch draw_batch(const PretrainText& text, const data::MarkedTokenizer& tokenizer,
                                    const PretrainTraining& training, std::span<const int64_t> chosen,
                                    Rng& rng) {
  const data::MaskOptions options{training.masked, training.max_masked, training.whole_words};
  models::PretrainingBatch batch;
  for (const int64_t place : chosen) {
    const data::SpanPair& pair = text.pairs[static_cast<size_t>(place)];
    const data::MaskedPair masked = data::mask_pair(text.documents, pair, tokenizer, options, rng);
    const auto begin = static_cast<int32_t>(batch.tokens.size());
    for (const int32_t at : masked.places) batch.places.push_back(begin + at);
    batch.targets.insert(batch.targets.end(), masked.tokens.begin(), masked.tokens.end());
    batch.tokens.insert(batch.tokens.end(), masked.text.ids.begin(), masked.text.ids.end());
    batch.types.insert(batch.types.end(), masked.text.types.begin(), masked.text.types.end());
    batch.lengths.push_back(static_cast<int32_t>(masked.text.ids.size()));
    batch.next.push_back(pair.follows ? 0 : 1);
  }
  return batch;
}

// The same masks at every validation.
models::PretrainingScores score(const models::BertPretraining& network, const PretrainText& text,
                                const data::MarkedTokenizer& tokenizer, const PretrainTraining& training) {
  const nn::Prepared prepared(network);
  Rng rng(0x7a11da7e);
  models::PretrainingScores all;
  const int64_t count = std::min<int64_t>(kMostValidated, static_cast<int64_t>(text.pairs.size()));
  for (int64_t first = 0; first < count; first += kValidBatch) {
    std::vector<int64_t> places;
    for (int64_t i = first; i < std::min(count, first + kValidBatch); ++i) places.push_back(i);
    const models::PretrainingScores one = network.scores(draw_batch(text, tokenizer, training, places, rng));
    all.masked_loss += one.masked_loss;
    all.next_loss += one.next_loss;
    all.masked += one.masked;
    all.masked_right += one.masked_right;
    all.pairs += one.pairs;
    all.next_right += one.next_right;
  }
  return all;
}

double share(int64_t right, int64_t all) {
  return all > 0 ? 100 * static_cast<double>(right) / static_cast<double>(all) : 0;
}

train::Validation validation(const models::PretrainingScores& s) {
  const double masked_loss = s.masked > 0 ? s.masked_loss / static_cast<double>(s.masked) : 0,
               next_loss = s.next_loss / static_cast<double>(s.pairs);
  return {share(s.masked_right, s.masked),
          {{"valid_loss", masked_loss + next_loss},
           {"masked_accuracy", share(s.masked_right, s.masked)},
           {"masked_loss", masked_loss},
           {"next_accuracy", share(s.next_right, s.pairs)}}};
}

CardText card_text(const PretrainFiles& files, const models::Bert& bert) {
  return {.title = "A BERT pre-trained with Fovea",
          .about = message("Tells masked words and whether two texts follow one another: ",
                           bert.config().num_hidden_layers, " layers of ", bert.config().hidden_size, ", ",
                           bert.config().vocab_size, " tokens.\n"),
          .train = "`" + files.train[0] + "`" + (files.train.size() > 1 ? " and more" : ""),
          .valid = files.valid.empty() ? "" : "`" + files.valid[0] + "`",
          .use = "fovea fill " + files.out.string() + " \"a film of rare [MASK]\""};
}

void save_folder(const std::filesystem::path& out, const models::Bert& bert, const TokenizerFiles& files) {
  for (const auto& [name, bytes] : files) write_atomically(out / name, bytes);
  models::save_bert(out, bert);
}

uint64_t fingerprint(const TextDocuments& text) {
  DataFingerprint print;
  print.add(std::span<const std::string>(text.sentences));
  for (const int64_t start : text.starts) print.add(static_cast<uint64_t>(start));
  return print.value();
}

std::unique_ptr<models::BertPretraining> network_from(const std::filesystem::path& folder, Rng& rng) {
  const models::BertConfig config = models::read_bert_config(folder);
  require(
      config.model_type == "bert", folder.string(), " is a ", config.model_type,
      "; pre-training continues from a folder with model_type bert, which has a head for the next sentence");
  models::LoadedBert loaded = models::load_bert(
      folder, rng, models::BertHeads{.pooler = true, .masked_lm = true, .next_sentence = true});
  return std::make_unique<models::BertPretraining>(std::move(loaded.network));
}

}  // namespace

void apply_preset(const std::string& name, PretrainTraining& training, Json& settings) {
  if (!training.from.empty()) {
    settings = Json::object();
    training.learning_rate = 1e-4;
    return;
  }
  const int64_t width = name == "tiny" ? 128 : name == "mini" ? 256 : 512;
  settings = {
      {"width", width}, {"heads", width / 64}, {"hidden", 4 * width}, {"layers", name == "tiny" ? 2 : 4}};
}

void check_training(const PretrainTraining& training, const Json& model_settings) {
  check_rates(training.learning_rate, training.warmup, 0);
  const auto within = [](const char* name, auto value, decltype(value) low, decltype(value) high) {
    require(value >= low && value <= high, name, ": got ", value, ", wanted ", low, " to ", high);
  };
  within("masked", training.masked, 0.01, 0.9);
  within("max_masked", training.max_masked, 1, 1 << 20);
  within("short_share", training.short_share, 0, 1);
  within("passes", training.passes, 1, 1000);
  within("batch", training.batch, 1, 1 << 20);
  within("max_tokens", training.max_tokens, 8, 1 << 20);
  within("weight_decay", training.weight_decay, 0, 100);
  if (training.vocabulary) within("vocabulary", *training.vocabulary, 100, 1'000'000);
  const Json positions =
      model_settings.contains("max_positions") ? model_settings["max_positions"] : Json(512);
  require(!training.from.empty() || !positions.is_number_integer() ||
              training.max_tokens <= positions.get<int64_t>(),
          "max_tokens: got ", training.max_tokens, ", more than --max-positions ", positions.dump());
}

PretrainOutcome pretrain(const PretrainFiles& files, const TrainSettings<PretrainTraining>& settings,
                         const std::string& command, RunObserver& observer,
                         const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  check_settings(settings);
  PretrainTraining training = settings.training;
  Rng rng(settings.options.seed);
  std::unique_ptr<models::BertPretraining> network;
  Tokenizer cut;
  if (!training.from.empty()) {
    network = errors_as<ModelError>([&] { return network_from(training.from, rng); });
    cut = errors_as<ModelError>(
        [&] { return tokenizer_of(training.from, network->bert().config(), training); });
    require(training.max_tokens <= network->bert().config().longest(), "max_tokens: got ",
            training.max_tokens, ", but ", training.from, " reads at most ",
            network->bert().config().longest());
  }
  observer.on_note("reading " + files.train[0] + (files.train.size() > 1 ? " and more" : ""));
  const TextDocuments text = errors_as<FileError>([&] { return read_text_documents(files.train); });
  const TextDocuments valid_text =
      files.valid.empty() ? TextDocuments{}
                          : errors_as<FileError>([&] { return read_text_documents(files.valid); });
  if (training.from.empty() && !training.vocabulary)
    training.vocabulary = std::clamp<int64_t>(static_cast<int64_t>(text.sentences.size()) / 10,
                                              kLeastVocabulary, kMostVocabulary);
  const RunFolder folder(files.out,
                         run_identity<PretrainTraining>({training, settings.options, settings.model},
                                                        fingerprint(text), counted(text.size(), "document")),
                         observer);
  if (training.from.empty()) {
    observer.on_note(
        message("learning ", *training.vocabulary, " pieces from ", text.sentences.size(), " sentences"));
    cut = learn_tokenizer(training, text, files.train[0]);
    network = models::make_model<models::Encoders>(
        training.model,
        models::model_config<models::Encoders>(training.model, settings.model,
                                               Json{{"vocabulary", int64_t{cut.tokenizer->size()}}}),
        rng);
  }
  Rng pairing = Rng(settings.options.seed).split(1), pairing_valid = Rng(0x7a11da7e).split(1);
  PretrainText train{encode(text, *cut.tokenizer), {}}, valid{encode(valid_text, *cut.tokenizer), {}};
  train.pairs = pairs_of(train.documents, training, training.passes, pairing);
  require(!train.pairs.empty(), files.train[0],
          ": no pair of sentences; wanted documents of several sentences");
  note_weaknesses(train, *cut.tokenizer, files.train[0], observer);
  if (!files.valid.empty()) {
    valid.pairs = pairs_of(valid.documents, training, 1, pairing_valid);
    require(!valid.pairs.empty(), files.valid[0],
            ": no pair of sentences with words; wanted two documents or more, or leave out --valid");
    note_weaknesses(valid, *cut.tokenizer, files.valid[0], observer);
  }
  const models::Bert& bert = network->bert();
  observer.on_note(message(text.size(), " documents, ", train.documents.sentences.tokens.size(), " tokens, ",
                           train.pairs.size(), " pairs, ", bert.config().vocab_size, " pieces, ",
                           network->parameter_count(), " parameters"));

  TrainingPlan plan;
  plan.network = network.get();
  // The optimiser of the original code.
  plan.rule = train::AdamW{.learning_rate = training.learning_rate,
                           .weight_decay = training.weight_decay,
                           .epsilon = 1e-6,
                           .bias_correction = false};
  plan.groups = train::without_decay_on_vectors(network->parameters());
  plan.schedule = schedule_of("linear", training.warmup);
  plan.options = settings.options;
  plan.passes = 10;
  plan.sizes.assign(train.pairs.size(), {1, 0});
  plan.batch_size = training.batch;
  plan.batch_unit = plan.unit = "pairs";
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    const models::PretrainingBatch batch = draw_batch(train, *cut.tokenizer, training, chosen, context.rng);
    return train::BatchLoss{network->loss(batch, context), static_cast<double>(chosen.size())};
  };
  if (!valid.pairs.empty())
    plan.validate = [&] { return validation(score(*network, valid, *cut.tokenizer, training)); };
  plan.score_name = "accuracy of masked words";
  plan.score_unit = "%";
  plan.should_stop = should_stop;
  plan.save_config = [&](const std::filesystem::path& out) {
    for (const auto& [name, bytes] : cut.files) write_atomically(out / name, bytes);
  };
  plan.save_model = [&](const std::filesystem::path& out) { save_folder(out, bert, cut.files); };
  plan.card = card_text(files, bert);
  plan.command = command;
  PretrainOutcome outcome;
  static_cast<TrainingOutcome&>(outcome) = run_training(folder, plan, observer);
  if (plan.validate && outcome.outcome != train::Outcome::interrupted) {
    const models::PretrainingScores scores = score(*network, valid, *cut.tokenizer, training);
    outcome.next_accuracy = share(scores.next_right, scores.pairs);
  }
  return outcome;
}

}  // namespace fovea::tasks
