// fovea embed: lines in, vectors out, in the same order.
#include <array>
#include <charconv>
#include <iostream>

#include "cli/answer_lines.h"
#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "io/json.h"
#include "io/npy.h"
#include "tasks/encoder.h"

namespace fovea::cli {
namespace {

constexpr size_t kLinesAtOnce = 512;

constexpr const char* kFooter =
    "The folder is one of Hugging Face's BERT family or of sentence-transformers, as it is. One vector out "
    "for "
    "one line in:\n\n"
    "  text   numbers between spaces, as soon as the line is there\n"
    "  jsonl  {\"text\": ..., \"embedding\": [...]} on a line, as soon as the line is there\n"
    "  npy    one NumPy array of float32, a row a line, when the input has ended\n\n"
    "  fovea embed all-MiniLM-L6-v2 --format npy < sentences.txt > vectors.npy";

struct Line {
  std::string folder, format = "text", compute = "float32";
  tasks::EmbedOptions options;
};

void print_text(std::span<const float> row) {
  std::string text;
  std::array<char, 32> digits;
  for (const float x : row) {
    if (!text.empty()) text += ' ';
    // The shortest text that reads back as the same number.
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), x).ptr);
  }
  std::cout << text << '\n';
}

void print_json(const std::string& line, std::span<const float> row) {
  Json json{{"text", line}, {"embedding", Json::array()}};
  for (const float x : row) json["embedding"].push_back(value_to_json(x));
  std::cout << json.dump() << '\n';
}

class Printer {
 public:
  Printer(std::string format, int64_t width)
      : format_(std::move(format)), width_(static_cast<size_t>(width)) {}

  void print(std::span<const std::string> lines, const Tensor& rows) {
    const std::span<const float> all = rows.span();
    if (format_ == "npy") held_.insert(held_.end(), all.begin(), all.end());
    for (size_t i = 0; i < lines.size() && format_ != "npy"; ++i) {
      const auto row = all.subspan(i * width_, width_);
      format_ == "text" ? print_text(row) : print_json(lines[i], row);
    }
  }
  void finish() const {
    if (format_ != "npy") return;
    std::cout << npy_header(static_cast<int64_t>(held_.size() / width_), static_cast<int64_t>(width_));
    std::cout.write(reinterpret_cast<const char*>(held_.data()),
                    static_cast<std::streamsize>(held_.size() * sizeof(float)));
  }

 private:
  std::string format_;
  size_t width_;
  std::vector<float> held_;  // npy: its head says how many rows follow
};

void run(const Line& line) {
  const tasks::EncoderParts parts = tasks::load_encoder(line.folder, models::BertHeads{}, line.compute);
  const tasks::Embedder embedder(parts, line.options);
  Printer printer(line.format, embedder.width());
  int64_t cut = 0;
  answer_lines(kLinesAtOnce, data::kMaxLineBytes, [&](const std::vector<std::string>& lines, int64_t) {
    const tasks::Embeddings found = embedder.embed(lines);
    printer.print(lines, found.rows);
    cut += found.cut;
  });
  printer.finish();
  if (cut > 0)
    std::cerr << "fovea: " << cut << (cut == 1 ? " line was" : " lines were") << " cut to "
              << embedder.max_tokens() << " tokens\n";
}

}  // namespace

void add_embed(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("embed", "turn lines of standard input into vectors, with a BERT-family model");
  const auto line = std::make_shared<Line>();
  verb->add_option("folder", line->folder, "model folder")->required()->type_name("DIR");
  verb->add_option("--format", line->format, "how vectors are written: text, jsonl or npy")
      ->check(CLI::IsMember({"text", "jsonl", "npy"}))
      ->capture_default_str();
  add_fields(*verb, line->options);
  verb->add_option("--compute", line->compute, "arithmetic of the matrix products: float32 or int8")
      ->capture_default_str();
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([line] { run(*line); });
}

}  // namespace fovea::cli
