// Measures the weight of the largest kernel of each block over scaled test pictures, and draws the curves.
#include "tasks/kernel_curve.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "attention/attention.h"
#include "data/images.h"
#include "explain/chart.h"
#include "tasks/folder_contents.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kBatch = 64;

// Sums the weight of the last branch of every block.
class BranchRecorder : public AttentionObserver {
 public:
  Capture capture(const Call& call) override {
    // A gate whose queries are channels and whose keys are branches.
    if (call.site.kind != AttentionSite::Kind::gate || call.site.grid_height > 0 || call.queries < 2)
      return {};
    Capture all{{0}, std::vector<int32_t>(static_cast<size_t>(call.queries))};
    std::iota(all.rows.begin(), all.rows.end(), 0);
    return all;
  }
  void observe(const Call& call, const Capture&, const Captured& captured) override {
    const Tensor weights = captured.weights.contiguous();  // [B, 1, channels, branches]
    double sum = 0;
    for (int64_t i = call.keys - 1; i < weights.count(); i += call.keys) sum += double{weights.data()[i]};
    sums[{call.site.layer, call.site.block}] += sum / static_cast<double>(call.queries);
  }
  std::map<std::pair<int64_t, int64_t>, double> sums;  // by stage and block
};

Tensor floats_of(std::span<const uint8_t> pixels, const data::PictureForm& form) {
  const Tensor image(Shape{form.height, form.width, form.channels});
  for (size_t i = 0; i < pixels.size(); ++i) image.data()[i] = static_cast<float>(pixels[i]) / 255;
  return image;
}

void normalise(const Tensor& image, const data::PixelMoments& moments) {
  const auto channels = static_cast<size_t>(image.size(2));
  for (int64_t i = 0; i < image.count(); ++i) {
    const size_t c = static_cast<size_t>(i) % channels;
    image.data()[i] = (image.data()[i] - moments.mean[c]) / moments.deviation[c];
  }
}

std::string digits(double value, int count) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", count, value);
  return text.data();
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// "stage 1" of "stage 1, block 0".
std::string stage_of(const std::string& block) {
  return block.substr(0, block.find(','));
}

Chart chart_of(const KernelCurve& curve) {
  Chart chart{.across = "size of the content in percent (100: as it is)",
              .left = "weight of the largest kernel",
              .series = {}};
  std::vector<std::string> stages;
  for (const std::string& block : curve.blocks)
    if (stages.empty() || stages.back() != stage_of(block)) stages.push_back(stage_of(block));
  for (const std::string& stage : stages) {
    Series series{.name = stage, .points = {}};
    for (size_t i = 0; i < curve.scales.size(); ++i) {
      std::vector<double> own;
      for (size_t b = 0; b < curve.blocks.size(); ++b)
        if (stage_of(curve.blocks[b]) == stage) own.push_back(curve.weights[i][b]);
      series.points.push_back({100 * curve.scales[i], mean_of(own)});
    }
    chart.series.push_back(std::move(series));
  }
  Series all{.name = "mean of all blocks", .points = {}};
  for (size_t i = 0; i < curve.scales.size(); ++i)
    all.points.push_back({100 * curve.scales[i], mean_of(curve.weights[i])});
  chart.series.push_back(std::move(all));
  return chart;
}

Json to_json(const KernelCurve& curve) {
  return {{"pictures", curve.pictures},
          {"scales", value_to_json(curve.scales)},
          {"blocks", curve.blocks},
          {"weights", curve.weights}};
}

// `most` pictures at even distances: pictures are sorted by class.
data::Pictures evenly_chosen(data::Pictures all, int64_t most) {
  if (most == 0 || most >= all.count()) return all;
  data::Pictures chosen{.form = all.form, .pixels = {}, .labels = {}, .classes = all.classes};
  for (int64_t i = 0; i < most; ++i) {
    const int64_t place = i * all.count() / most;
    const auto one = all.picture(place);
    chosen.pixels.insert(chosen.pixels.end(), one.begin(), one.end());
    chosen.labels.push_back(all.labels[static_cast<size_t>(place)]);
  }
  return chosen;
}

}  // namespace

Tensor scaled_content(const Tensor& image, double scale) {
  const int64_t height = image.size(0), width = image.size(1), channels = image.size(2);
  const auto of = [&](int64_t side, double factor) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(side) * factor));
  };
  if (scale >= 1) {
    const Tensor middle = data::centre_crop(image, of(height, 1 / scale), of(width, 1 / scale));
    return data::resize(middle.contiguous(), height, width);
  }
  const Tensor small = data::resize(image, of(height, scale), of(width, scale)).contiguous();
  // Place i of an axis whose picture of `size` begins at `first`, in a row of pictures that mirror each other.
  const auto mirrored = [](int64_t i, int64_t first, int64_t size) {
    const int64_t place = ((i - first) % (2 * size) + 2 * size) % (2 * size);
    return place < size ? place : 2 * size - 1 - place;
  };
  const int64_t top = (height - small.size(0)) / 2, left = (width - small.size(1)) / 2;
  const Tensor out(image.shape());
  for (int64_t h = 0; h < height; ++h)
    for (int64_t w = 0; w < width; ++w) {
      const int64_t row = mirrored(h, top, small.size(0)), column = mirrored(w, left, small.size(1));
      std::copy_n(small.data() + (row * small.size(1) + column) * channels, channels,
                  out.data() + (h * width + w) * channels);
    }
  return out;
}

KernelCurve kernel_curve(const LoadedImageClassifier& loaded, const data::Pictures& pictures,
                         const std::vector<double>& scales) {
  KernelCurve curve{.scales = scales, .blocks = {}, .weights = {}, .pictures = pictures.count()};
  const data::PictureForm& form = loaded.form;
  const NoGrad no_grad;
  const nn::Prepared prepared(*loaded.network);
  nn::Context context;
  for (const double scale : scales) {
    BranchRecorder recorder;
    const ObserveAttention observe(recorder);
    for (int64_t first = 0; first < pictures.count(); first += kBatch) {
      const int64_t count = std::min(kBatch, pictures.count() - first);
      const Tensor x(Shape{count, form.height, form.width, form.channels});
      for (int64_t i = 0; i < count; ++i) {
        const Tensor one = scaled_content(floats_of(pictures.picture(first + i), form), scale).contiguous();
        normalise(one, loaded.moments);
        std::copy_n(one.data(), one.count(), x.data() + i * one.count());
      }
      loaded.network->logits(Var(x), context);
    }
    require(!recorder.sums.empty(),
            "the model has no selective kernels to compare; train one with --gate sk");
    curve.blocks.clear();
    curve.weights.emplace_back();
    for (const auto& [block, sum] : recorder.sums) {
      curve.blocks.push_back(message("stage ", block.first, ", block ", block.second));
      curve.weights.back().push_back(sum / static_cast<double>(pictures.count()));
    }
  }
  return curve;
}

KernelCurve kernel_curve(const std::filesystem::path& folder, const std::vector<std::string>& files,
                         const std::vector<double>& scales, int64_t most) {
  require(most >= 0, "pictures: got ", most, ", wanted 0 (all) or more");
  const FolderContents contents = look_into(folder);
  require(contents.kind == FolderKind::image_classifier, contents.description(), " (", contents.model,
          "); kernels needs an image classifier, as `fovea train image --gate sk` makes");
  const LoadedImageClassifier loaded = load_image_classifier(folder);
  require(loaded.config.contains("gate") && loaded.config["gate"] == "sk", folder.string(),
          " has no selective kernels to compare; train one with --gate sk");
  return kernel_curve(loaded, evenly_chosen(data::read_pictures_as(files, loaded.form, loaded.labels), most),
                      scales);
}

std::vector<double> parse_scales(const std::string& text) {
  std::vector<double> scales;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    double scale = 0;
    const auto [last, error] = std::from_chars(text.data() + begin, text.data() + end, scale);
    require(error == std::errc() && last == text.data() + end && scale >= 0.1 && scale <= 10, "scales: got ",
            in_quotes(text), ", wanted numbers from 0.1 to 10 with commas between, as in 0.5,0.75,1,1.5");
    scales.push_back(scale);
    begin = end + 1;
  }
  require(scales.size() >= 2, "scales: got ", scales.size(), ", wanted at least two to compare");
  return scales;
}

std::string to_text(const KernelCurve& curve) {
  std::string text = "scale";
  for (const std::string& block : curve.blocks) text += "\t" + block;
  text += "\tmean\n";
  for (size_t i = 0; i < curve.scales.size(); ++i) {
    text += digits(curve.scales[i], 2);
    for (const double weight : curve.weights[i]) text += "\t" + digits(weight, 4);
    text += "\t" + digits(mean_of(curve.weights[i]), 4) + "\n";
  }
  return text;
}

void check_kernel_curve_ending(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  require(ending == ".png" || ending == ".svg" || ending == ".pdf" || ending == ".json", "cannot write ",
          in_quotes(path.string()), ": got ",
          ending.empty() ? "no ending" : "the ending " + in_quotes(ending),
          ", wanted .png, .svg, .pdf or .json");
}

std::string kernel_curve_file(const KernelCurve& curve, const std::filesystem::path& path) {
  check_kernel_curve_ending(path);
  if (path.extension() == ".json") return to_json(curve).dump() + "\n";
  return draw(chart_of(curve), picture_format(path));
}

}  // namespace fovea::tasks
