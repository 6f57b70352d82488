// Lines over a common axis: learning curves, scores by length.
#pragma once

#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

struct ChartPoint {
  double x = 0, y = 0;
};

struct Series {
  std::string name;
  std::vector<ChartPoint> points;
  bool right = false;  // measured on the right axis
  bool dots = true;    // a mark at each point
};

struct Chart {
  std::string across;          // what x is: "step"
  std::string left = {};       // what the left axis is, where the series' names do not say it
  std::vector<Series> series;  // at most eight are told apart
};

// Points that are not finite are left out; a chart without any gives axes alone.
std::string draw(const Chart& chart, PictureFormat format);

// Round numbers that cover [low, high] in about `count` steps: for axes. At least two.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace fovea
