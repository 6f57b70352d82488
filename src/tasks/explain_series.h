// Showing what a model of number sequences attends to: which past steps and features carried the weight.
//
// Attention says how much each token (a step, or a patch of steps) weighs: the weights of pooling, or what the
// output layer reads of each token, through the rollout of the encoder's layers. Within a token the weight is
// divided among its steps and features as |gradient x value| of the answer is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "explain/series_map.h"
#include "tasks/series.h"

namespace fovea::tasks {

struct SeriesExplanation {
  std::string model;
  std::string answer;  // for people: "the next 96 steps of 7 columns", "4, 99.2 %", "12.5"
  Json answer_json;
  SeriesMap map;  // weights of all rows and steps sum to 1; rows: columns, then time features
};

// Of the forecast after the last rows of a table. Changes the network's gradients: one call at a time.
SeriesExplanation explain_forecast(const LoadedSeriesModel& loaded, const data::SeriesTable& table,
                                   const std::string& name);
// Of the first of the cases. One call at a time.
SeriesExplanation explain_case(const LoadedSeriesModel& loaded, const data::SeriesCases& cases);

// The file's bytes, by its ending: .png, .svg, .pdf, .html, .json, .txt (step, feature and weight on each line).
std::string explain_series_file(const SeriesExplanation& explanation, const std::filesystem::path& path);

}  // namespace fovea::tasks
