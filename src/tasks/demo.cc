// Trains the models of `fovea demo`, tests them, and writes the report with its pictures.
#include "tasks/demo.h"

#include <array>
#include <cstdio>
#include <filesystem>

#include "data/example_corpus.h"
#include "explain/attention_page.h"
#include "explain/chart.h"
#include "explain/report.h"
#include "io/file.h"
#include "tasks/explain.h"
#include "tasks/learning_curve.h"

namespace fovea::tasks {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kPairs = 12000, kShown = 5, kLengthStep = 8;
// The shown sentence whose alignment is drawn: long enough to have words out of order, short enough to read.
constexpr size_t kAligned = 2;

struct Plan {
  const char *name, *title, *subject;
  double learning_rate;
  Json settings;
};

std::vector<Plan> plans() {
  const Json recurrent = {{"embedding", 128}, {"width", 128}, {"dropout", 0.1}};
  return {{"transformer",
           "Transformer",
           "Transformer",
           3e-3,
           {{"width", 128},
            {"heads", 4},
            {"hidden", 256},
            {"encoder_layers", 2},
            {"decoder_layers", 2},
            {"norm_first", true},
            {"dropout", 0.0}}},
          {"bahdanau", "recurrent, with attention", "recurrent network with attention", 3e-3, recurrent},
          {"rnn", "recurrent, without attention", "recurrent network without attention", 3e-3, recurrent}};
}

std::string lines(const std::vector<std::string>& text) {
  std::string all;
  for (const std::string& line : text) all += line + "\n";
  return all;
}

// The corpus as a person would have it: two files for each part.
void write_corpus(const fs::path& folder, const data::ExampleCorpus& corpus) {
  make_directories(folder);
  for (const auto& [name, part] : {std::pair<const char*, const data::ParallelText*>{"train", &corpus.train},
                                   {"valid", &corpus.valid},
                                   {"test", &corpus.test}}) {
    write_atomically(folder / (std::string(name) + ".zh"), lines(part->source));
    write_atomically(folder / (std::string(name) + ".en"), lines(part->target));
  }
}

TrainingOutcome train(const Plan& plan, const DemoOptions& options, TranslateObserver& observer,
                      const std::function<bool()>& should_stop) {
  const fs::path out = options.out, data = out / "data";
  const TranslateFiles files{(data / "train.zh").string(), (data / "train.en").string(),
                             (data / "valid.zh").string(), (data / "valid.en").string(), out / plan.name};
  TranslateTraining training;
  training.model = plan.name;
  training.tokenizer = "unigram";
  training.vocabulary = 500;
  training.joint = false;
  training.batch_tokens = 1024;
  training.learning_rate = plan.learning_rate;
  training.schedule = "inverse_sqrt";  // independent of --steps: a longer run goes the same way
  training.warmup = 100;
  const train::TrainOptions train_options{.steps = options.steps,
                                          .clip_norm = 1,
                                          .average = 8,
                                          .log_every = 20,
                                          .validate_every = 200,
                                          .save_every = 25,  // what is averaged at the end
                                          .seed = options.seed};
  return train_translate(files, {training, train_options, plan.settings},
                         "fovea demo --out " + options.out + " --steps " + std::to_string(options.steps) +
                             " --seed " + std::to_string(options.seed),
                         observer, should_stop);
}

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

void test(const LoadedTranslator& loaded, const data::ParallelText& text, DemoModel& model) {
  std::vector<std::string> translated;
  for (const auto& best : Translator(*loaded.network, loaded.tokenizers).translate(text.source, {.beam = 1}))
    translated.push_back(best.front().text);
  const std::vector<std::string> references[] = {text.target};
  model.bleu = infer::bleu(translated, references).score;
  model.by_length = infer::bleu_by_length(translated, references, kLengthStep);
  model.translations.assign(translated.begin(), translated.begin() + kShown);
}

Chart length_chart(const std::vector<DemoModel>& models) {
  Chart chart{.across = "words of the reference", .left = "BLEU", .series = {}};
  for (const DemoModel& model : models) {
    Series series;
    series.name = model.title;
    for (const infer::BleuOfLength& part : model.by_length)
      series.points.push_back({static_cast<double>(part.last), part.bleu.score});
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart curve_chart(const fs::path& out, const std::vector<DemoModel>& models) {
  Chart chart{.across = "step", .left = "validation loss", .series = {}};
  for (const DemoModel& model : models)
    chart.series.push_back(
        {model.title, read_curve(read_text(out / model.name / "train.jsonl")).validation_loss});
  return chart;
}

std::string lengths_of(const infer::BleuOfLength& part) {
  return std::to_string(part.first) + " to " + std::to_string(part.last) + " words";
}

// What the table shows for the longest sentences, in words.
std::string longest_finding(const std::vector<DemoModel>& models) {
  std::string text = "On the longest sentences (" + lengths_of(models.front().by_length.back()) + ")";
  for (size_t i = 0; i < models.size(); ++i)
    text += message(i == 0                  ? " the score is "
                    : i + 1 < models.size() ? ", "
                                            : " and ",
                    rounded(models[i].by_length.back().bleu.score), " for the ", models[i].subject);
  return text +
         ". Without attention the network must store a sentence of any length in one vector of fixed size. "
         "With "
         "attention it reads the words of the source again whenever it needs them.";
}

std::string report_of(const DemoResult& result, const std::string& lengths, const std::string& curves,
                      const std::string& alignment) {
  Report report("Three translators of a small language");
  report.paragraph(
      "A grammar generated sentences in Chinese and English. Three networks were trained to translate from "
      "the "
      "same sentence pairs and for the same number of steps: a Transformer, a recurrent network that attends "
      "to the source before it writes each word, and the same recurrent network without attention.");
  report.heading("BLEU on sentences that are not in the training data");
  std::vector<std::string> head = {"", "parameters", "all"};
  for (const infer::BleuOfLength& part : result.models.front().by_length) head.push_back(lengths_of(part));
  std::vector<std::vector<std::string>> rows;
  for (const DemoModel& model : result.models) {
    rows.push_back({model.title, std::to_string(model.training.parameters), rounded(model.bleu)});
    for (const infer::BleuOfLength& part : model.by_length) rows.back().push_back(rounded(part.bleu.score));
  }
  report.table(head, rows);
  report.picture(lengths, "BLEU by the number of words of the reference");
  report.paragraph(longest_finding(result.models));
  report.heading("Attention");
  report.picture(
      alignment,
      "Attention of the recurrent network: each row is a word of the translation, each column a word "
      "of the source; darker is a larger weight.");
  report.link("attention.html", "All attention maps: every layer and head of both models, with numbers");
  report.heading("Some test sentences");
  for (size_t i = 0; i < result.sources.size(); ++i) {
    std::vector<std::vector<std::string>> translations = {{"reference", result.references[i]}};
    for (const DemoModel& model : result.models) translations.push_back({model.title, model.translations[i]});
    report.table({"source", result.sources[i]}, translations);
  }
  report.heading("Training");
  report.picture(curves, "Loss on the validation sentences during training");
  return report.html();
}

}  // namespace

void check_demo(const DemoOptions& options) {
  constexpr int64_t kMost = 1'000'000;
  require(options.steps >= 1 && options.steps <= kMost, "steps: got ", options.steps, ", wanted 1 to ",
          kMost);
  require(!options.out.empty(), "out: wanted the name of a folder");
}

DemoResult run_demo(const DemoOptions& options, DemoObserver& observer,
                    const std::function<bool()>& should_stop, size_t width) {
  check_demo(options);
  const fs::path out = options.out;
  const data::ExampleCorpus corpus = data::example_corpus(kPairs, options.seed);
  write_corpus(out / "data", corpus);

  DemoResult result;
  result.sources.assign(corpus.test.source.begin(), corpus.test.source.begin() + kShown);
  result.references.assign(corpus.test.target.begin(), corpus.test.target.begin() + kShown);
  std::vector<AttentionRecord> records;
  const std::vector<Plan> all = plans();
  for (size_t i = 0; i < all.size(); ++i) {
    observer.on_model(static_cast<int64_t>(i), static_cast<int64_t>(all.size()), all[i].title);
    DemoModel model;
    model.name = all[i].name;
    model.title = all[i].title;
    model.subject = all[i].subject;
    model.training = train(all[i], options, observer, should_stop);
    result.interrupted = model.training.outcome == train::Outcome::interrupted;
    result.models.push_back(model);
    if (result.interrupted) return result;
    const LoadedTranslator loaded = load_translation(out / model.name);
    test(loaded, corpus.test, result.models.back());
    if (model.name == std::string("rnn")) continue;
    for (const std::string& source : result.sources)
      records.push_back(explain_translation(loaded, source, {}, {.beam = 1}));
  }

  const AttentionRecord& aligned = records[records.size() - kShown + kAligned];
  HeatMap map = heat_map(aligned, {}, true);
  map.title.clear();
  result.alignment = shade(map, width);
  const std::string lengths = draw(length_chart(result.models), PictureFormat::svg),
                    curves = draw(curve_chart(out, result.models), PictureFormat::svg);
  write_atomically(out / "alignment.png", draw(map, PictureFormat::png));
  write_atomically(out / "lengths.svg", lengths);
  write_atomically(out / "curves.svg", curves);
  write_atomically(out / "attention.html", attention_page(records, "Attention of the demo's models"));
  write_atomically(out / "index.html", report_of(result, lengths, curves, draw(map, PictureFormat::svg)));
  return result;
}

}  // namespace fovea::tasks
