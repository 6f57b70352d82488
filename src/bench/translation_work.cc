// Makes synthetic translation models and batches of fixed sizes, and counts the operations of a training step.
#include "bench/translation_work.h"

#include "base/rng.h"
#include "models/registry/translators.h"
#include "models/transformer.h"
#include "tasks/train_translate.h"

namespace fovea::bench {
namespace {

std::vector<int32_t> draw_tokens(int64_t count, int64_t vocabulary, Rng& rng) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(
        data::kSpecials +
        static_cast<int64_t>(rng.below(static_cast<uint64_t>(vocabulary - data::kSpecials)))));
  return tokens;
}

// Weights that a token passes by: in the encoder, in the decoder, and those that a source token passes by on
// the decoder's behalf (keys and values of cross attention).
struct Passed {
  double encoder, decoder, cross, output;
};

Passed passed(const models::TransformerConfig& c) {
  const auto w = static_cast<double>(c.width), h = static_cast<double>(c.hidden);
  const auto encoders = static_cast<double>(c.encoder_layers),
             decoders = static_cast<double>(c.decoder_layers);
  return {encoders * (4 * w * w + 2 * w * h), decoders * (6 * w * w + 2 * w * h), decoders * 2 * w * w,
          w * static_cast<double>(c.target_vocabulary)};
}

// Of Bahdanau's model and the one without attention.
struct RnnPassed {
  double source, target, pair;
};

RnnPassed passed(const models::Bahdanau& model) {
  const models::RnnConfig& c = model.config();
  const auto h = static_cast<double>(c.width), e = static_cast<double>(c.embedding);
  const auto readout = static_cast<double>(model.readout_width());
  const double encoder = 2 * 3 * h * (e + h), values = 2 * h * (3 * h + readout);
  const double target = 3 * h * (e + h) + readout * (e + h) + e * static_cast<double>(c.target_vocabulary);
  // Without attention the context's part is made once a sentence: too little to be counted.
  if (!model.attention) return {encoder, target, 0};
  const Var key = model.attention->key_weight(), query = model.attention->query_weight();
  const auto size = [](const Var& v) { return v.defined() ? static_cast<double>(v.count()) : 0; };
  const double d = query.defined() ? static_cast<double>(query.size(0)) : h;
  return {encoder + values + size(key), target + size(query), d + 3 * h + readout};
}

}  // namespace

TranslationWork translation_work(const std::string& model, const std::string& preset) {
  TranslationWork work{.model = model, .preset = preset};
  if (model != "transformer") {
    work.preset = "default";
    work.sentences = 64;
    work.shortest = 10;
    work.longest = 20;
  } else if (preset == "tiny") {
    work.sentences = 270;
    work.shortest = 8;
    work.longest = 22;
  } else if (preset == "base") {
    work.sentences = 82;
    work.shortest = 18;
    work.longest = 32;
  } else if (preset == "marian") {  // the size of most OPUS-MT models
    work.vocabulary = 58101;
    work.sentences = 82;
    work.shortest = 18;
    work.longest = 32;
  } else {
    fail("preset: got ", in_quotes(preset), ", wanted tiny, base or marian");
  }
  return work;
}

std::unique_ptr<models::TranslationModel> TranslationWork::make_network() const {
  tasks::TranslateTraining training;
  Json settings = Json::object();
  if (model == "transformer") tasks::apply_preset(preset == "marian" ? "base" : preset, training, settings);
  if (preset == "marian")
    settings.update({{"activation", "swish"}, {"positions", "sinusoid_halves"}, {"output_bias", true}});
  Rng rng(1);
  return models::make_model<models::Translators>(
      model,
      models::model_config<models::Translators>(model, settings,
                                                models::vocabularies(vocabulary, vocabulary)),
      rng);
}

data::Batch TranslationWork::training_batch() const {
  Rng rng(2);
  data::ParallelIds ids;
  std::vector<int64_t> pairs;
  for (int64_t i = 0; i < sentences; ++i) {
    ids.source.append(draw_tokens(source_length(i) - 1, vocabulary, rng));
    ids.target.append(draw_tokens(target_length(i) - 1, vocabulary, rng));
    pairs.push_back(i);
  }
  return data::make_batch(ids, pairs);
}

std::vector<std::vector<int32_t>> TranslationWork::sources(int64_t count) const {
  Rng rng(3);
  std::vector<std::vector<int32_t>> result;
  for (int64_t i = 0; i < count; ++i) {
    result.push_back(draw_tokens(source_length(i) - 1, vocabulary, rng));
    result.back().push_back(data::kEnd);
  }
  return result;
}

double TranslationWork::training_flops(const models::TranslationModel& network) const {
  if (const auto* rnn = dynamic_cast<const models::Bahdanau*>(&network)) {
    const RnnPassed weights = passed(*rnn);
    double sum = 0;
    for (int64_t i = 0; i < sentences; ++i) {
      const auto s = static_cast<double>(source_length(i)), t = static_cast<double>(target_length(i));
      sum += s * weights.source + t * weights.target + s * t * weights.pair;
    }
    return 6 * sum;
  }
  const auto* transformer = dynamic_cast<const models::Transformer*>(&network);
  if (transformer == nullptr) return 0;
  const models::TransformerConfig& c = transformer->config();
  const Passed weights = passed(c);
  double source = 0, target = 0, own = 0, causal = 0, cross = 0;  // tokens and pairs of tokens
  for (int64_t i = 0; i < sentences; ++i) {
    const auto s = static_cast<double>(source_length(i)), t = static_cast<double>(target_length(i));
    source += s;
    target += t;
    own += s * s;
    causal += t * (t + 1) / 2;
    cross += s * t;
  }
  const double dense =
      source * (weights.encoder + weights.cross) + target * (weights.decoder + weights.output);
  const double pairs =
      static_cast<double>(c.encoder_layers) * own + static_cast<double>(c.decoder_layers) * (causal + cross);
  return 6 * dense + 14 * static_cast<double>(c.width) * pairs;
}

double TranslationWork::translation_flops(const models::TranslationModel& network, int64_t count,
                                          int64_t length, int64_t beam) const {
  const auto* transformer = dynamic_cast<const models::Transformer*>(&network);
  if (transformer == nullptr) return 0;
  const models::TransformerConfig& c = transformer->config();
  const Passed weights = passed(c);
  const auto t = static_cast<double>(length), rows = static_cast<double>(beam);
  const double output = beam == 1 ? 0 : weights.output;  // greedy search makes few of its products
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto s = static_cast<double>(source_length(i));
    const double pairs = static_cast<double>(c.encoder_layers) * s * s +
                         static_cast<double>(c.decoder_layers) * rows * (t * (t + 1) / 2 + s * t);
    total += 2 * (s * (weights.encoder + weights.cross) + rows * t * (weights.decoder + output)) +
             4 * static_cast<double>(c.width) * pairs;
  }
  return total;
}

}  // namespace fovea::bench
