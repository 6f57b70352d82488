// Showing what a ship detector sees: the picture, the coarse map, the gate, the fine map and the boxes side by side.
#pragma once

#include <filesystem>
#include <string>

#include "explain/overlay.h"
#include "tasks/partition.h"

namespace fovea::tasks {

struct PartitionExplanation {
  data::Image picture;            // as the network saw it
  PartitionMaps maps;             // ships in its pixels
  bool gated = false;             // whether the coarse map gates the fine one
  int64_t height = 0, width = 0;  // of the picture given, in whose pixels numbers are written
};
PartitionExplanation explain_partition(const LoadedPartitioner& loaded, const data::Image& picture);

// "5 ships"
std::string title_of(const PartitionExplanation& explanation);
OverlayFigure partition_figure(const PartitionExplanation& explanation);
// The file's bytes, by its ending: .png, .svg, .pdf, .html (the figure), .json (boxes and every map), .txt (a line for
// each ship: score, bow, stern, width). Numbers are in pixels of the picture given, as `fovea partition` has them.
std::string explain_partition_file(const PartitionExplanation& explanation,
                                   const std::filesystem::path& path);
// A line for each ship, and the classes of cells as letters, for a terminal of `columns` columns.
std::string explain_partition_text(const PartitionExplanation& explanation, size_t columns = 100);

}  // namespace fovea::tasks
