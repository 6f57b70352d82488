#include "tasks/pattern_picture.h"

#include <cmath>

#include "attention/spec.h"
#include "base/error.h"
#include "explain/pattern_map.h"

namespace fovea::tasks {

PatternPicture draw_pattern(const PatternOptions& options, const std::filesystem::path& path) {
  const bool whole = options.spec.find('/') != std::string::npos;
  const Pattern pattern = whole ? parse_spec(options.spec).pattern : parse_pattern(options.spec);
  const PlanSizes sizes{.queries = options.queries,
                        .keys = options.keys > 0 ? options.keys : options.queries,
                        .heads = options.heads};
  const auto plan = compile(pattern, sizes);
  const Figure figure = pattern_figure(pattern, sizes);
  PatternPicture picture;
  if (path.empty()) {
    picture.content = pattern_blocks(figure);
  } else {
    const PictureFormat format = picture_format(path);
    picture.content = format == PictureFormat::svg ? pattern_svg(figure) : draw(figure, format);
  }
  const int64_t pairs = visited_pairs(plan, 1, sizes.heads), all = sizes.queries * sizes.keys * sizes.heads;
  const double share =
      all > 0 ? std::round(1000.0 * static_cast<double>(pairs) / static_cast<double>(all)) / 10 : 0;
  picture.summary = message(pattern, ": ", pairs, " of ", all, " pairs (", share, " %), in ",
                            plan.tiles.size(), " tiles and ", plan.segments.size(), " segments");
  return picture;
}

}  // namespace fovea::tasks
