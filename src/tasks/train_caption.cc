// Captions become tokens, pictures become features, a network learns one from the other, and a folder remembers it all.
#include "tasks/train_caption.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/parallel.h"
#include "infer/caption_scores.h"
#include "tasks/text_size.h"
#include "tasks/train_settings.h"

namespace fovea::tasks {
namespace {

using data::CaptionedPicture;

// Captioned pictures of one part of the collection.
struct Captioned {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> captions;  // as data::caption_words() has them, never empty
  int64_t wordless = 0;                            // captions left out: they have no words

  size_t size() const { return names.size(); }
  void add(const CaptionedPicture& picture) {
    std::vector<std::string> words;
    for (const std::string& caption : picture.captions)
      if (std::string text = data::caption_words(caption); !text.empty())
        words.push_back(std::move(text));
      else
        ++wordless;
    if (words.empty()) return;
    names.push_back(picture.name);
    captions.push_back(std::move(words));
  }
};

class Collection {
 public:
  Collection(const CaptionFiles& files, CaptionObserver& observer) : files_(files), pictures_(files.images) {
    for (const std::string& path : files.captions)
      for (CaptionedPicture& picture : data::read_captions(path)) {
        const auto [place, fresh] = places_.try_emplace(picture.name, all_.size());
        require(fresh, path, ": captions of ", in_quotes(picture.name), " are in an earlier file already");
        all_.push_back(std::move(picture));
      }
    train = files.train.empty() ? with_pictures(observer) : listed(files.train);
    if (!files.valid.empty()) valid = listed(files.valid);
    require(train.size() > 0, files.captions[0], ": got no caption with words (",
            counted(train.wordless, "caption"),
            " without words left out); wanted captions such as 'a dog runs'");
    if (const int64_t wordless = train.wordless + valid.wordless; wordless > 0)
      observer.on_note(message(counted(wordless, "caption"), " without words left out"));
  }
  const data::PictureFiles& pictures() const { return pictures_; }

  Captioned train, valid;

 private:
  // Every picture that has captions, but for those that the collection lacks.
  Captioned with_pictures(CaptionObserver& observer) const {
    Captioned found;
    int64_t missing = 0;
    for (const CaptionedPicture& picture : all_) {
      if (pictures_.contains(picture.name))
        found.add(picture);
      else
        ++missing;
    }
    require(missing < static_cast<int64_t>(all_.size()), files_.images,
            " contains none of the pictures that ", files_.captions[0], " names, such as ",
            in_quotes(all_[0].name));
    if (missing > 0)
      observer.on_note(message(counted(missing, "captioned picture"), " left out: not in ", files_.images));
    return found;
  }
  Captioned listed(const std::string& path) const {
    Captioned found;
    for (const std::string& name : data::read_picture_list(path)) {
      const auto place = places_.find(name);
      require(place != places_.end(), path, ": ", in_quotes(name), " has no caption in ", files_.captions[0]);
      require(pictures_.contains(name), path, ": ", in_quotes(name), " is not in ", files_.images);
      found.add(all_[place->second]);
    }
    require(found.size() > 0, path, ": no picture with a caption that has words");
    return found;
  }

  const CaptionFiles& files_;
  data::PictureFiles pictures_;
  std::vector<CaptionedPicture> all_;
  std::unordered_map<std::string, size_t> places_;
};

// A caption to learn, and the number of its picture among those of the feature cache.
struct Example {
  int64_t picture;
  std::vector<int32_t> tokens;
};

std::vector<Example> encode(const Captioned& captioned, const data::Tokenizer& tokenizer,
                            int64_t first_picture, int64_t max_length) {
  std::vector<Example> examples;
  for (size_t i = 0; i < captioned.size(); ++i)
    for (const std::string& caption : captioned.captions[i]) {
      std::vector<int32_t> tokens = tokenizer.encode(caption);
      if (tokens.empty() || static_cast<int64_t>(tokens.size()) > max_length) continue;
      examples.push_back({first_picture + static_cast<int64_t>(i), std::move(tokens)});
    }
  return examples;
}

// The examples with these numbers as one batch, the longest caption first.
models::CaptionBatch batch_of(const std::vector<Example>& examples, std::span<const int64_t> chosen,
                              const FeatureCache& features, const PictureEncoder& encoder) {
  std::vector<int64_t> order(chosen.begin(), chosen.end());
  const auto length = [&](int64_t i) { return examples[static_cast<size_t>(i)].tokens.size(); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  const auto count = static_cast<int64_t>(order.size());
  models::CaptionBatch batch{
      .features = Tensor({count, encoder.places(), encoder.channels()}), .in = {}, .out = {}, .lengths = {}};
  for (const int64_t i : order) {
    const std::vector<int32_t>& tokens = examples[static_cast<size_t>(i)].tokens;
    batch.in.push_back(data::kBegin);
    batch.in.insert(batch.in.end(), tokens.begin(), tokens.end());
    batch.out.insert(batch.out.end(), tokens.begin(), tokens.end());
    batch.out.push_back(data::kEnd);
    batch.lengths.push_back(static_cast<int32_t>(tokens.size()) + 1);
  }
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      features.read(examples[static_cast<size_t>(order[static_cast<size_t>(i)])].picture,
                    batch.features.data() + i * encoder.places() * encoder.channels());
  });
  return batch;
}

// Loss, perplexity, BLEU and CIDEr of the model as it stands.
class Validator {
 public:
  Validator(const Captioned& captioned, int64_t first_picture, const LoadedCaptioner& loaded,
            const FeatureCache& features, const CaptionTraining& training, CaptionObserver& observer)
      : parts_(loaded), features_(features), observer_(observer), first_picture_(first_picture) {
    const auto count =
        static_cast<size_t>(std::min(training.valid_pictures, static_cast<int64_t>(captioned.size())));
    Captioned some;
    some.names.assign(captioned.names.begin(), captioned.names.begin() + static_cast<int64_t>(count));
    some.captions.assign(captioned.captions.begin(),
                         captioned.captions.begin() + static_cast<int64_t>(count));
    names_ = some.names;
    examples_ = encode(some, *loaded.tokenizer, first_picture, training.max_length);
    // A picture with fewer captions than others repeats its first one, which changes no score of BLEU.
    size_t sets = 0;
    for (const auto& captions : some.captions) sets = std::max(sets, captions.size());
    references_.resize(sets);
    for (size_t s = 0; s < sets; ++s)
      for (const auto& captions : some.captions)
        references_[s].push_back(captions[s < captions.size() ? s : 0]);
  }

  train::Validation run() {
    const nn::Prepared prepared(*parts_.network);
    const double mean = mean_loss();
    const auto found =
        write_captions(parts_, names_.size(),
                       [&](std::span<const size_t> pictures) {
                         const Tensor all({static_cast<int64_t>(pictures.size()), parts_.encoder.places(),
                                           parts_.encoder.channels()});
                         for (size_t i = 0; i < pictures.size(); ++i)
                           features_.read(first_picture_ + static_cast<int64_t>(pictures[i]),
                                          all.data() + static_cast<int64_t>(i) * all.size(1) * all.size(2));
                         return all;
                       },
                       {.beam = 1});
    std::vector<std::string> captions;
    for (const auto& best : found) captions.push_back(best.front().text);
    const infer::CaptionScores scores = infer::caption_scores(captions, references_);
    const size_t shown = static_cast<size_t>(turn_++) % names_.size();
    observer_.on_sample({names_[shown], references_[0][shown], captions[shown]});
    return {scores.bleu[3],
            {{"valid_loss", mean},
             {"perplexity", std::exp(mean)},
             {"bleu1", scores.bleu[0]},
             {"bleu4", scores.bleu[3]},
             {"cider", scores.cider}}};
  }

 private:
  double mean_loss() const {
    constexpr int64_t kAtOnce = 32;
    const NoGrad no_grad;
    nn::Context context;
    double sum = 0;
    int64_t words = 0;
    const auto all = static_cast<int64_t>(examples_.size());
    for (int64_t first = 0; first < all; first += kAtOnce) {
      std::vector<int64_t> chosen;
      for (int64_t i = first; i < std::min(all, first + kAtOnce); ++i) chosen.push_back(i);
      const OutputLoss loss =
          parts_.network->loss(batch_of(examples_, chosen, features_, parts_.encoder), {}, context);
      sum += loss.negative_log_likelihood;
      words += loss.count;
    }
    return sum / static_cast<double>(std::max<int64_t>(1, words));
  }

  const LoadedCaptioner& parts_;
  const FeatureCache& features_;
  CaptionObserver& observer_;
  int64_t first_picture_;
  std::vector<std::string> names_;
  std::vector<Example> examples_;
  std::vector<std::vector<std::string>> references_;
  int64_t turn_ = 0;
};

std::vector<std::string> all_captions(const Captioned& captioned) {
  std::vector<std::string> all;
  for (const auto& captions : captioned.captions) all.insert(all.end(), captions.begin(), captions.end());
  return all;
}

data::Tokenizers learn(const CaptionTraining& training, const std::vector<std::string>& captions,
                       CaptionObserver& observer) {
  const std::span<const std::string> text(captions);
  std::shared_ptr<const data::Tokenizer> tokenizer;
  if (training.tokenizer == "words") {
    tokenizer =
        data::count_words({&text, 1}, {.min_count = training.min_count, .max_size = *training.vocabulary});
  } else {
    observer.on_note(message("learning ", *training.vocabulary, " tokens (", training.tokenizer, ") from ",
                             captions.size(), " captions"));
    tokenizer = learn_tokenizer(training.tokenizer, *training.vocabulary, {&text, 1});
  }
  return {tokenizer, tokenizer};
}

uint64_t fingerprint(const Captioned& captioned, const std::string& encoder) {
  DataFingerprint print;
  print.add(captioned.names);
  for (const auto& captions : captioned.captions) print.add(captions);
  print.add(encoder);
  return print.value();
}

CardText card_text(const CaptionFiles& files, const LoadedCaptioner& loaded, const Captioned& captioned) {
  return {.title = "A captioner made with Fovea",
          .about = message("Describes photographs in a sentence; the encoder sees ", loaded.encoder.size,
                           " x ", loaded.encoder.size, " pixels as ", loaded.encoder.side(), " x ",
                           loaded.encoder.side(), " places.\n"),
          .train = message("`", files.captions[0], "` (", captioned.size(), " pictures)"),
          .valid = files.valid.empty() ? "" : "`" + files.valid + "`",
          .use = "fovea caption " + files.out.string() + " picture.jpg"};
}

// Decides what follows from the data.
void fit_to_data(const std::vector<std::string>& captions, CaptionTraining& training) {
  const TextSize size = text_size(captions, training.max_length);
  if (!training.vocabulary)
    training.vocabulary = training.tokenizer == "words" ? 0 : vocabulary_for(size, 8'000);
  if (!training.batch_words) training.batch_words = batch_for(size.tokens, 96, 768);
}

}  // namespace

void apply_preset(const std::string& name, CaptionTraining& training, Json& settings) {
  const int64_t width = name == "tiny" ? 128 : name == "small" ? 512 : 1024;
  settings = {{"embedding", std::min<int64_t>(width, 512)}, {"width", width}};
  if (name == "base") settings["attention_width"] = 512;
  training.learning_rate = name == "base" ? 5e-4 : name == "small" ? 1e-3 : 2e-3;
}

void check_training(const CaptionTraining& training, const Json&) {
  check_rates(training.learning_rate, training.warmup, training.smoothing);
  check_vocabulary(training.tokenizer, training.vocabulary);
  const auto at_least = [](const char* name, auto value, auto least) {
    require(value >= least, name, ": got ", value, ", wanted at least ", least);
  };
  const auto share = [](const char* name, float value) {
    require(value >= 0 && value <= 1, name, ": got ", value, ", wanted 0 to 1");
  };
  at_least("min_count", training.min_count, 1);
  at_least("max_length", training.max_length, 1);
  at_least("valid_pictures", training.valid_pictures, 1);
  at_least("batch_words", training.batch_words.value_or(1), 1);
  require(training.picture_size >= 32 && training.picture_size <= 1024, "picture_size: got ",
          training.picture_size, ", wanted 32 to 1024");
  require(training.blocks >= 1 && training.blocks <= 13, "blocks: got ", training.blocks, ", wanted 1 to 13");
  require(training.penalty >= 0 && training.penalty <= 1e6f, "penalty: got ", training.penalty,
          ", wanted 0 or more");
  require(training.entropy >= 0 && training.entropy <= 1e6f, "entropy: got ", training.entropy,
          ", wanted 0 or more");
  share("soft_share", training.soft_share);
  share("baseline_decay", training.baseline_decay);
}

TrainingOutcome train_caption(const CaptionFiles& files, const TrainSettings<CaptionTraining>& settings,
                              const std::string& command, CaptionObserver& observer,
                              const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  check_settings(settings);
  LoadedCaptioner loaded;
  loaded.encoder = read_encoder(files.encoder, settings.training.blocks, settings.training.picture_size);
  const Collection collection(files, observer);
  const std::vector<std::string> captions = all_captions(collection.train);
  CaptionTraining training = settings.training;
  fit_to_data(captions, training);
  const RunFolder folder(
      files.out,
      run_identity<CaptionTraining>({training, settings.options, settings.model},
                                    fingerprint(collection.train, describe(loaded.encoder)),
                                    counted(static_cast<int64_t>(captions.size()), "caption")),
      observer);
  loaded.model = training.model;
  loaded.tokenizer = folder.tokenizers([&] { return learn(training, captions, observer); }).target;
  loaded.config = models::model_config<models::Captioners>(
      training.model, settings.model,
      Json{{"vocabulary", loaded.tokenizer->size()}, {"channels", loaded.encoder.channels()}});
  Rng rng(settings.options.seed);
  loaded.network = models::make_model<models::Captioners>(training.model, loaded.config, rng);

  // Features of all pictures: of training first, then of validation.
  std::vector<std::string> names = collection.train.names;
  names.insert(names.end(), collection.valid.names.begin(), collection.valid.names.end());
  FeatureCache features(files.features.empty() ? files.out / "features.records" : files.features,
                        loaded.encoder);
  if (!features.fill(collection.pictures(), names, observer, should_stop))
    return {.outcome = train::Outcome::interrupted, .parameters = loaded.network->parameter_count()};
  const std::vector<Example> examples = encode(collection.train, *loaded.tokenizer, 0, training.max_length);
  require(!examples.empty(), files.captions[0], ": no caption has at most ", training.max_length,
          " tokens; raise max_length");
  if (examples.size() < captions.size())
    observer.on_note(message(captions.size() - examples.size(), " captions of more than ",
                             training.max_length, " tokens are left out"));
  observer.on_note(message(collection.train.size(), " pictures, ", examples.size(),
                           " captions, vocabulary of ", loaded.tokenizer->size(), ", ",
                           loaded.network->parameter_count(), " parameters"));
  std::optional<Validator> validator;
  if (collection.valid.size() > 0)
    validator.emplace(collection.valid, static_cast<int64_t>(collection.train.size()), loaded, features,
                      training, observer);

  TrainingPlan plan;
  plan.network = loaded.network.get();
  plan.rule = train::Adam{.learning_rate = training.learning_rate};
  plan.schedule = schedule_of(training.schedule, training.warmup);
  plan.options = settings.options;
  plan.passes = 15;
  for (const Example& example : examples)
    plan.sizes.push_back({static_cast<int64_t>(example.tokens.size()) + 1, 0});
  plan.batch_size = *training.batch_words;
  plan.batch_unit = plan.unit = "words";
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    const OutputLoss loss = loaded.network->loss(batch_of(examples, chosen, features, loaded.encoder),
                                                 {.smoothing = training.smoothing,
                                                  .penalty = training.penalty,
                                                  .entropy = training.entropy,
                                                  .soft_share = training.soft_share,
                                                  .baseline_decay = training.baseline_decay},
                                                 context);
    return train::BatchLoss{loss.loss, static_cast<double>(loss.count)};
  };
  if (validator) plan.validate = [&] { return validator->run(); };
  plan.score_name = "BLEU-4";
  plan.should_stop = should_stop;
  plan.save_config = [&](const std::filesystem::path& out) { save_captioner_config(out, loaded); };
  plan.save_model = [&](const std::filesystem::path& out) { save_captioner(out, loaded); };
  plan.card = card_text(files, loaded, collection.train);
  plan.command = command;
  return run_training(folder, plan, observer);
}

}  // namespace fovea::tasks
