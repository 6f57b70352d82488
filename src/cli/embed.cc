// fovea embed: lines in, vectors out, in the same order.
#include <array>
#include <charconv>
#include <iostream>

#include "base/error.h"
#include "cli/answer_lines.h"
#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "tasks/line_source.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(The folder is a model of the BERT family saved by Hugging Face's libraries or by sentence-transformers, used as it is.
Prints one vector for each line of standard input:

  text   numbers separated by spaces, as soon as the line is read
  jsonl  {"text": ..., "embedding": [...]} on a line, as soon as the line is read
  npy    one NumPy array of float32 with a row for each line, when the input has ended

With --tokens or --chunks, text prints a line for each token or part: the number of the text (from 0), the first
character and the one after the last, the token (with --tokens), and the vector; jsonl prints a list of these for each
text.

A line has at most 65536 bytes. With --on-error empty, a line that cannot be used gives an empty line (text), an object
with the error (jsonl) or a row of NaN (npy).

  fovea embed all-MiniLM-L6-v2 --format npy < sentences.txt > vectors.npy
  fovea embed longformer-base-4096 --chunks 256 --format jsonl < long_texts.txt)help";

struct Flags {
  std::string folder, format = "text", compute, global;
  tasks::EmbedOptions options;
  LineFlags lines{.lines_at_once = 512, .max_line_bytes = tasks::LineSource::kLongestLine};
};

std::string numbers(std::span<const float> row) {
  std::string text;
  std::array<char, 32> digits;
  for (const float x : row) {
    if (!text.empty()) text += ' ';
    // The shortest text that reads back as the same number.
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), x).ptr);
  }
  return text;
}

// A line for each token or part: the number of the text, the characters it stands for, the token, and its vector.
void print_spans(int64_t line, std::span<const tasks::EmbeddedSpan> spans) {
  for (const tasks::EmbeddedSpan& span : spans) {
    std::cout << line << '\t' << span.begin << '\t' << span.end << '\t';
    if (!span.token.empty()) std::cout << span.token << '\t';
    std::cout << numbers(span.vector) << '\n';
  }
}

void run(const Flags& flags) {
  const bool spans = flags.options.tokens || flags.options.chunks != 0;
  require(!spans || flags.format != "npy",
          "--format npy has no place for characters; wanted text or jsonl with ",
          flags.options.tokens ? "--tokens" : "--chunks");
  const auto model = tasks::open(flags.folder, {.purpose = tasks::Ability::embed,
                                                .compute = flags.compute,
                                                .global = flags.global,
                                                .embed = flags.options});
  std::vector<std::vector<float>> held;  // npy: its header says how many rows follow
  answer_lines(*model, {}, flags.lines,
               [&](const tasks::Input& line, const tasks::Answer& answer, int64_t number) {
                 if (flags.format == "npy")
                   held.push_back(answer.vector);
                 else if (flags.format == "text" && spans)
                   print_spans(number, answer.spans);
                 else if (flags.format == "text")
                   std::cout << numbers(answer.vector) << '\n';
                 else
                   std::cout << model->to_json(line, answer).dump() << '\n';
               });
  if (flags.format == "npy") {
    const auto& settings = model->contents().settings;
    const char* const width = settings.contains("embedding_features")
                                  ? "embedding_features"          // of dense layers
                              : settings.contains("dim") ? "dim"  // DistilBERT's name for it
                                                         : "hidden_size";
    std::cout << tasks::npy_file(held, settings.value(width, int64_t{0}));
  }
}

}  // namespace

void add_embed(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("embed", "turn lines of standard input into vectors, with a BERT-family model");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("--format", flags->format, "how vectors are printed: text, jsonl or npy (default text)")
      ->check(CLI::IsMember({"text", "jsonl", "npy"}))
      ->type_name("WORD");
  add_fields(*verb, flags->options);
  add_on_error(*verb, flags->lines.on_error);
  add_compute(*verb, flags->compute);
  add_global(*verb, flags->global);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
