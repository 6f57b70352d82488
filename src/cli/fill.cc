// fovea fill: which words belong where a text is masked.
#include <iomanip>
#include <iostream>

#include "cli/flags.h"
#include "cli/verbs.h"
#include "io/json.h"
#include "tasks/encoder.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "One line for each candidate: its probability, a tab, and the token; ## begins one that continues a "
    "word. "
    "Where the text\n"
    "has several masked places, the place's number, counted from 0, and a tab come first.\n\n"
    "  fovea fill bert-base-uncased \"Paris is the [MASK] of France.\"";

struct Line {
  std::string folder, text, compute = "float32";
  int64_t top = 5;
  bool json = false;
};

void run(const Line& line) {
  const tasks::EncoderParts parts = tasks::load_encoder(line.folder, tasks::kMaskedHead, line.compute);
  const auto places = tasks::MaskFiller(parts).fill(line.text, line.top);
  if (line.json) {
    Json json{{"text", line.text}, {"masks", Json::array()}};
    for (const auto& candidates : places) {
      Json list = Json::array();
      for (const tasks::MaskCandidate& candidate : candidates)
        list.push_back(
            {{"token", candidate.text}, {"id", candidate.token}, {"probability", candidate.probability}});
      json["masks"].push_back(std::move(list));
    }
    std::cout << json.dump() << '\n';
    return;
  }
  std::cout << std::fixed << std::setprecision(4);
  for (size_t i = 0; i < places.size(); ++i)
    for (const tasks::MaskCandidate& candidate : places[i]) {
      if (places.size() > 1) std::cout << i << '\t';
      std::cout << candidate.probability << '\t' << candidate.text << '\n';
    }
}

}  // namespace

void add_fill(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("fill", "find words for the masked places of a text, with a BERT-family model");
  const auto line = std::make_shared<Line>();
  verb->add_option("folder", line->folder, "model folder")->required()->type_name("DIR");
  verb->add_option("text", line->text, "the text, with [MASK] (RoBERTa: <mask>) where a word is to be found")
      ->required()
      ->type_name("TEXT");
  verb->add_option("--top", line->top, "candidates for each place")->capture_default_str();
  verb->add_option("--compute", line->compute, "arithmetic of the matrix products: float32 or int8")
      ->capture_default_str();
  add_json(*verb, line->json);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([line] { run(*line); });
}

}  // namespace fovea::cli
