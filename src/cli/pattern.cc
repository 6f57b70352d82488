// fovea pattern: draws which keys each query sees.
#include <cmath>
#include <iostream>

#include "attention/spec.h"
#include "base/error.h"
#include "cli/verbs.h"
#include "explain/pattern_map.h"
#include "io/file.h"

namespace fovea::cli {
namespace {

struct PatternFlags {
  std::string spec;
  int64_t n = 64;
  int64_t keys = 0;  // 0: as many as queries
  int64_t heads = 1;
  std::string out;
};

// A spec, or its pattern alone.
Pattern read_pattern(const std::string& text) {
  return text.find('/') != std::string::npos ? parse_spec(text).pattern : parse_pattern(text);
}

void run_pattern(const PatternFlags& flags) {
  const Pattern pattern = read_pattern(flags.spec);
  const PlanSizes sizes{
      .queries = flags.n, .keys = flags.keys > 0 ? flags.keys : flags.n, .heads = flags.heads};
  const auto plan = compile(pattern, sizes);
  const Figure figure = pattern_figure(pattern, sizes);
  if (flags.out.empty()) {
    std::cout << pattern_blocks(figure);
  } else {
    const PictureFormat format = picture_format(flags.out);
    write_atomically(flags.out, format == PictureFormat::svg ? pattern_svg(figure) : draw(figure, format));
  }
  const int64_t pairs = visited_pairs(plan, 1, sizes.heads), all = sizes.queries * sizes.keys * sizes.heads;
  const double share =
      all > 0 ? std::round(1000.0 * static_cast<double>(pairs) / static_cast<double>(all)) / 10 : 0;
  std::cout << pattern << ": " << pairs << " of " << all << " pairs (" << share << " %), in "
            << plan.tiles.size() << " tiles and " << plan.segments.size() << " segments\n";
}

}  // namespace

void add_pattern(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("pattern", "draw which keys each query sees");
  auto flags = std::make_shared<PatternFlags>();
  verb->add_option("spec", flags->spec, "a pattern or a whole spec, such as \"causal & window(16,0)\"")
      ->type_name("SPEC")
      ->required();
  verb->add_option("--n", flags->n, "queries, and keys unless --nk says otherwise")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  verb->add_option("--nk", flags->keys, "keys")->type_name("N")->check(CLI::Range(1, 4096));
  verb->add_option("--heads", flags->heads, "heads; one panel for each that differs")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  verb->add_option("--out", flags->out, "a picture instead of text: .png, .svg or .pdf")->type_name("FILE");
  verb->callback([flags] { run_pattern(*flags); });
}

}  // namespace fovea::cli
