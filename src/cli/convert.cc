// fovea convert: a model folder with its weights in another form.
#include <iostream>
#include <optional>

#include "base/error.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "tasks/convert.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(--to int8 or float32: a translator with its weights in another form. int8 makes the folder a quarter of its size and
translation faster, for a small loss of quality. `fovea translate` finds out by itself what a folder holds. A float32
folder can be run as int8 without conversion: fovea translate --compute int8.

--to longformer or bigbird: a BERT or RoBERTa folder as one that reads long texts. Its learned positions are repeated up
to --max-tokens; Longformer's windows have 512 tokens, BigBird's blocks 64. The model computes something useful at once,
and better after some training on long texts.

  fovea convert model --to int8 --out model-int8
  fovea convert roberta-base --to longformer --max-tokens 4096 --out roberta-long)help";

struct Flags {
  std::string folder, to, out;
  std::optional<int64_t> max_tokens;
};

bool is_long(const std::string& to) {
  return to == "longformer" || to == "bigbird";
}

void run_long(const Flags& flags) {
  const int64_t max_tokens = flags.max_tokens.value_or(4096);
  const std::string type = tasks::convert_to_long(flags.folder, flags.to, max_tokens, flags.out);
  std::cout << flags.out << ": a " << flags.to << " model of " << max_tokens << " tokens, made from " << type
            << "\nnext: fovea embed " << flags.out << " < texts.txt\n";
}

void run(const Flags& flags) {
  if (is_long(flags.to)) return run_long(flags);
  require(flags.to == "int8" || flags.to == "float32", "--to: got '", flags.to,
          "', wanted int8, float32, longformer or bigbird");
  require(!flags.max_tokens, "--max-tokens is for --to longformer and --to bigbird; got --to ", flags.to);
  const tasks::Conversion done = tasks::convert_translation(flags.folder, flags.to, flags.out);
  std::cout << flags.out << ": " << flags.to << ", " << done.bytes_after << " bytes of weights instead of "
            << done.bytes_before << "\nnext: fovea translate " << flags.out << " < source.txt\n";
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("convert", "write a model with its weights in another form, or for longer texts");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("--to", flags->to,
                   "what to make: int8 or float32 (translator), longformer or bigbird (BERT, RoBERTa)")
      ->required()
      ->type_name("FORM");
  verb->add_option("--max-tokens", flags->max_tokens,
                   "longformer and bigbird: tokens of the longest text (default 4096)")
      ->type_name("N");
  verb->add_option("--out", flags->out, "new model folder to write")->required()->type_name("DIR");
  verb->footer(kFooter);
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
