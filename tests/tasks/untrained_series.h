// Models of number sequences that nobody trained: small, made in an instant.
#pragma once

#include "models/registry/series_models.h"
#include "tasks/series.h"

namespace fovea::tasks {

// Two columns. A forecast: eight steps in, the next two of both out; otherwise labels even and odd, or a number.
inline LoadedSeriesModel untrained_series(SeriesGoal goal, const std::string& model = "transformer") {
  const bool forecast = goal == SeriesGoal::forecast;
  LoadedSeriesModel loaded;
  loaded.model = model;
  loaded.goal = goal;
  loaded.columns = {"load", "heat"};
  loaded.mean = {0, 1};
  loaded.deviation = {1, 2};
  if (forecast) loaded.targets = 2, loaded.steps_in = 8, loaded.horizon = 2;
  if (goal == SeriesGoal::classify) loaded.labels = {"even", "odd"};
  Json settings{{"width", 8}, {"layers", 1}};
  if (model == "transformer") settings.update({{"heads", 2}, {"hidden", 8}});
  loaded.config =
      models::model_config<models::SeriesModels>(model, settings,
                                                 Json{{"features", 2},
                                                      {"known", 0},
                                                      {"window", loaded.steps_in},
                                                      {"targets", loaded.targets},
                                                      {"outputs", goal == SeriesGoal::regress ? 1 : 2}});
  Rng rng(7);
  loaded.network = models::make_model<models::SeriesModels>(model, loaded.config, rng);
  return loaded;
}

}  // namespace fovea::tasks
