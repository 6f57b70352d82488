// Opens and saves ship detectors, reads scenes, finds ships in pictures, and scores the found ships.
#include "tasks/partition.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "base/parallel.h"
#include "base/stop_check.h"
#include "data/harbour_scenes.h"
#include "data/hrsc.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/registry/partitioners.h"
#include "nn/weights.h"
#include "tasks/folder_contents.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kLeastSide = 64, kMostSide = 1024, kMostScenes = 1'000'000;
constexpr size_t kBatch = 16;

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace

LoadedPartitioner load_partition(const std::filesystem::path& folder) {
  const FolderConfig config = read_folder_config(folder, "partition");
  const std::string where = (folder / "config.json").string();
  LoadedPartitioner loaded;
  loaded.config = config.settings;
  const auto read = [&](const char* name, auto& value) {
    require(config.all.contains(name), where, ": a ship detector without ", name);
    value_from_json(config.all[name], value, where + ": " + name);
  };
  read("size", loaded.size);
  read("mean", loaded.moments.mean);
  read("deviation", loaded.moments.deviation);
  require(loaded.size >= kLeastSide && loaded.size <= kMostSide &&
              loaded.size % models::Partition::kSideUnit == 0,
          where, ": a size of ", loaded.size, ", wanted a multiple of ", models::Partition::kSideUnit,
          " from ", kLeastSide, " to ", kMostSide);
  require(loaded.moments.mean.size() == 3 && loaded.moments.deviation.size() == 3 &&
              std::all_of(loaded.moments.deviation.begin(), loaded.moments.deviation.end(),
                          [](float deviation) { return deviation > 0; }),
          where, ": mean and deviation must have 3 numbers, deviations above 0");
  loaded.network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    return models::make_model<models::Partitioners>(config.model, config.settings, rng);
  });
  loaded.prepared = nn::Prepared(*loaded.network);
  return loaded;
}

void save_partition_config(const std::filesystem::path& folder, const LoadedPartitioner& loaded) {
  save_json(folder / "config.json", Json{{"task", "partition"},
                                         {"model", "partition"},
                                         {"settings", loaded.config},
                                         {"size", loaded.size},
                                         {"mean", value_to_json(loaded.moments.mean)},
                                         {"deviation", value_to_json(loaded.moments.deviation)}});
}

void save_partition(const std::filesystem::path& folder, const LoadedPartitioner& loaded) {
  make_directories(folder);
  nn::save_weights(*loaded.network, folder / "model.safetensors");
  save_partition_config(folder, loaded);
}

std::vector<data::ShipScene> read_scenes(const SceneSource& source, int64_t size) {
  if (source.path != kDrawnScenes) return data::read_hrsc(source.path, size);
  require(source.count > 0 && source.count <= kMostScenes, "scenes: got ", source.count, ", wanted 1 to ",
          kMostScenes);
  std::vector<data::ShipScene> scenes(static_cast<size_t>(source.count));
  parallel_for(source.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      scenes[static_cast<size_t>(i)] = data::draw_harbour(source.seed, static_cast<uint64_t>(i), size);
  });
  return scenes;
}

Tensor picture_batch(std::span<const data::ShipScene* const> scenes, const data::PixelMoments& moments) {
  const int64_t side = scenes[0]->image.height;
  const data::PictureForm form{side, side, 3};
  const Tensor x(Shape{static_cast<int64_t>(scenes.size()), side, side, 3});
  parallel_for(x.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Tensor one = data::normalised(scenes[static_cast<size_t>(i)]->image.pixels, form, moments);
      std::copy_n(one.data(), one.count(), x.data() + i * one.count());
    }
  });
  return x;
}

std::vector<PartitionMaps> partition_pictures(const LoadedPartitioner& loaded,
                                              std::span<const data::Image> pictures) {
  const NoGrad no_grad;
  const nn::Prepared prepared(*loaded.network);
  const nn::Context context;
  std::vector<PartitionMaps> all;
  for (size_t first = 0; first < pictures.size(); first += kBatch) {
    check_stop();
    const size_t count = std::min(kBatch, pictures.size() - first);
    std::vector<data::ShipScene> fitted(count);
    std::vector<const data::ShipScene*> batch;
    for (size_t i = 0; i < count; ++i) {
      fitted[i].image = data::fitted(pictures[first + i], loaded.size);
      batch.push_back(&fitted[i]);
    }
    const Tensor probabilities = loaded.network->probabilities(
        loaded.network->logits(Var(picture_batch(batch, loaded.moments)), context));
    const int64_t cells = probabilities.count() / static_cast<int64_t>(count);
    for (size_t i = 0; i < count; ++i) {
      PartitionMaps maps{
          .height = probabilities.size(1), .width = probabilities.size(2), .probabilities = {}, .ships = {}};
      const float* from = probabilities.data() + static_cast<int64_t>(i) * cells;
      maps.probabilities.assign(from, from + cells);
      maps.ships =
          infer::ships_from_map({maps.height, maps.width, models::Partition::kStride, maps.probabilities});
      const data::Image& picture = pictures[first + i];
      const double back =
          static_cast<double>(std::max(picture.height, picture.width)) / static_cast<double>(loaded.size);
      for (infer::FoundShip& found : maps.ships)
        for (double* value : {&found.ship.x, &found.ship.y, &found.ship.length, &found.ship.width})
          *value *= back;
      all.push_back(std::move(maps));
    }
  }
  return all;
}

infer::DetectionCounts evaluate_scenes(const LoadedPartitioner& loaded,
                                       std::span<const data::ShipScene> scenes) {
  infer::DetectionCounts counts;
  for (size_t first = 0; first < scenes.size(); first += kBatch) {
    const size_t count = std::min(kBatch, scenes.size() - first);
    std::vector<data::Image> pictures;
    for (size_t i = 0; i < count; ++i) pictures.push_back(scenes[first + i].image);
    const std::vector<PartitionMaps> found = partition_pictures(loaded, pictures);
    for (size_t i = 0; i < count; ++i) counts += infer::match_ships(found[i].ships, scenes[first + i].ships);
  }
  return counts;
}

infer::DetectionCounts evaluate_partition(const std::filesystem::path& folder, const SceneSource& source) {
  look_into(folder).require_can(Ability::partition);
  const LoadedPartitioner loaded = load_partition(folder);
  return evaluate_scenes(loaded, read_scenes(source, loaded.size));
}

Json ship_json(const infer::FoundShip& found) {
  const data::Ship& ship = found.ship;
  const auto place = [](const data::Point& p) { return Json{p.x, p.y}; };
  Json json{{"x", ship.x},
            {"y", ship.y},
            {"length", ship.length},
            {"width", ship.width},
            {"angle", std::remainder(ship.heading, 2 * std::numbers::pi) * 180 / std::numbers::pi},
            {"score", found.score},
            {"bow", place(bow(ship))},
            {"stern", place(stern(ship))},
            {"corners", Json::array()}};
  for (const data::Point& p : corners(ship)) json["corners"].push_back(place(p));
  return json;
}

Json to_json(const infer::DetectionCounts& c) {
  return {{"ships", c.ships},
          {"found", c.found},
          {"matched", c.matched},
          {"precision", c.precision()},
          {"recall", c.recall()},
          {"f1", c.f1()},
          {"localisation", c.matched > 0 ? Json(c.localisation()) : Json()},
          {"reversed", c.reversed}};
}

std::string to_text(const infer::DetectionCounts& c) {
  return message(
      "ships        ", c.ships, "\nfound        ", c.found, "\nprecision    ", fixed(100 * c.precision(), 2),
      " %\nrecall       ", fixed(100 * c.recall(), 2), " %\nF1           ", fixed(100 * c.f1(), 2),
      " %\nlocalisation ", c.matched > 0 ? fixed(c.localisation(), 2) + " pixels" : "-",
      ", mean error of bow and stern of the ships matched, in pictures fitted to the model's size\nreversed     ",
      c.reversed, " ships matched with bow and stern exchanged\n");
}

}  // namespace fovea::tasks
