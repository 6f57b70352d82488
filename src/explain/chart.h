// Line charts: learning curves, scores by length.
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
  bool right = false;  // uses the right axis
  bool dots = true;    // draws a dot at each point
};

struct Chart {
  std::string across;          // label of the x axis: "step"
  std::string left = {};       // label of the left axis, if the names of the series do not say it
  std::vector<Series> series;  // up to eight are drawn in different styles
};

// Points that are not finite are left out; a chart without points shows only its axes.
std::string draw(const Chart& chart, PictureFormat format);

// The ticks of an axis: round numbers that cover [low, high] in about `count` steps, at least two.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace fovea
