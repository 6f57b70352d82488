// fovea convert: a model folder with its weights in another form.
#include <iostream>

#include "cli/verbs.h"
#include "tasks/convert.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "int8 makes the folder a quarter of its size and translating faster, for a small loss of quality. `fovea "
    "translate` sees\n"
    "by itself what a folder holds. A float32 folder may be run as int8 without converting: fovea translate "
    "--compute int8.\n"
    "  fovea convert model --to int8 --out model-int8";

struct Line {
  std::string folder, to, out;
};

void run(const Line& line) {
  const tasks::Conversion done = tasks::convert_translation(line.folder, line.to, line.out);
  std::cout << line.out << ": " << line.to << ", " << done.bytes_after << " bytes of weights instead of "
            << done.bytes_before << "\nnext: fovea translate " << line.out << " < source.txt\n";
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("convert", "store a trained model's weights in another form");
  const auto line = std::make_shared<Line>();
  verb->add_option("folder", line->folder, "model folder")->required()->type_name("DIR");
  verb->add_option("--to", line->to, "int8 or float32")->required()->type_name("FORM");
  verb->add_option("--out", line->out, "new model folder")->required()->type_name("DIR");
  verb->footer(kFooter);
  verb->callback([line] { run(*line); });
}

}  // namespace fovea::cli
