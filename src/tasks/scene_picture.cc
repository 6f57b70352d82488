#include "tasks/scene_picture.h"

#include "base/error.h"
#include "data/harbour_scenes.h"
#include "tasks/explain_partition.h"

namespace fovea::tasks {
namespace {

// What a perfect network would say: probability 1 for each cell's own class.
PartitionExplanation truth_of(const data::ShipScene& scene) {
  const data::ShipMaps maps = data::label_maps(scene, models::Partition::kStride);
  PartitionExplanation truth{
      .picture = scene.image,
      .maps = {.height = maps.height, .width = maps.width, .probabilities = {}, .ships = {}}};
  for (size_t i = 0; i < maps.coarse.size(); ++i) {
    const bool end = maps.coarse[i] == static_cast<int32_t>(data::CoarseClass::end);
    const int32_t own = end ? maps.fine[i] : maps.coarse[i] + 1;
    for (int32_t k = 0; k < 5; ++k) truth.maps.probabilities.push_back(k == own ? 1 : 0);
  }
  for (const data::Ship& ship : scene.ships) truth.maps.ships.push_back({ship, 1});
  return truth;
}

}  // namespace

ScenePicture scene_picture(int64_t number, int64_t size, bool labels, const std::filesystem::path& path) {
  const PictureFormat format = picture_format(path);
  require(number >= 0, "scene: got number ", number, ", wanted 0 or more");
  require(size % models::Partition::kSideUnit == 0, "size: got ", size, ", wanted a multiple of ",
          models::Partition::kSideUnit);
  const data::ShipScene scene = data::draw_harbour(kTestHarbours, static_cast<uint64_t>(number), size);
  const PartitionExplanation truth = truth_of(scene);
  return {title_of(truth), labels ? draw(partition_figure(truth), format)
                                  : draw_pixels(size, size, scene.image.pixels, format)};
}

}  // namespace fovea::tasks
