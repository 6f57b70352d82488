// fovea convert: a model folder with its weights in another form.
#include <iostream>

#include "cli/flags.h"
#include "cli/verbs.h"
#include "tasks/convert.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "int8 makes the folder a quarter of its size and translation faster, for a small loss of quality. `fovea "
    "translate` finds\n"
    "out by itself what a folder holds. A float32 folder can be run as int8 without conversion: fovea "
    "translate "
    "--compute int8.\n"
    "  fovea convert model --to int8 --out model-int8";

struct Flags {
  std::string folder, to, out;
};

void run(const Flags& flags) {
  const tasks::Conversion done = tasks::convert_translation(flags.folder, flags.to, flags.out);
  std::cout << flags.out << ": " << flags.to << ", " << done.bytes_after << " bytes of weights instead of "
            << done.bytes_before << "\nnext: fovea translate " << flags.out << " < source.txt\n";
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("convert", "write a translator with its weights in another form");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("--to", flags->to, "form of the weights: int8 or float32")->required()->type_name("FORM");
  verb->add_option("--out", flags->out, "new model folder to write")->required()->type_name("DIR");
  verb->footer(kFooter);
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
