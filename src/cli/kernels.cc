// fovea kernels: how much a network of selective kernels trusts its largest kernel as objects grow.
#include <iostream>

#include "base/error.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "tasks/kernel_curve.h"
#include "tasks/output_file.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(A line for each scale: the weight of the largest kernel in every block, averaged over channels and pictures, and the
mean of the blocks. Above 1 the middle of each picture is enlarged, so that its object grows; below 1 the picture is
shrunk and surrounded by its mirror images. Networks of selective kernels give the larger kernel more weight as the object
grows (Li et al. 2019).

  fovea train image --train train.tar --size 32 --gate sk --flip --out model
  fovea kernels model --test test.tar --out curve.svg)help";

struct Flags {
  std::string folder, out, scales = "0.5,0.6,0.7,0.8,0.9,1,1.25,1.5,1.75,2";
  std::vector<std::string> test;
  int64_t pictures = 1000;
};

void run(const Flags& flags) {
  if (!flags.out.empty()) tasks::check_kernel_curve_ending(flags.out);
  const std::vector<double> scales = tasks::parse_scales(flags.scales);
  const tasks::KernelCurve curve = tasks::kernel_curve(flags.folder, flags.test, scales, flags.pictures);
  std::cout << to_text(curve);
  if (!flags.out.empty()) tasks::write_output(flags.out, tasks::kernel_curve_file(curve, flags.out));
}

}  // namespace

void add_kernels(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "kernels", "show how selective kernels (train image --gate sk) respond to the size of objects");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("--test", flags->test, "pictures, as for `fovea classify --test`")
      ->expected(1, 2)
      ->required()
      ->type_name("PATH");
  verb->add_option("--scales", flags->scales,
                   "sizes of the objects, separated by commas (default " + flags->scales + ")");
  verb->add_option(
      "--pictures", flags->pictures,
      "number of pictures used, evenly spaced; 0: all (default " + std::to_string(flags->pictures) + ")");
  verb->add_option("--out", flags->out, "also draw the curves: .png, .svg, .pdf; or all numbers: .json")
      ->type_name("FILE");
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
