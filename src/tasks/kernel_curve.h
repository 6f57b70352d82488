// How a network of selective kernels (--gate sk) divides its attention between small and large kernels as the
// objects in the pictures grow: the experiment of Li et al. (2019), section 4.3.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tasks/image_classifier.h"

namespace fovea::tasks {

struct KernelCurve {
  std::vector<double> scales;       // sizes of the objects; 1: as they are
  std::vector<std::string> blocks;  // "stage 0, block 0"
  // [scale][block]: the weight of the block's largest kernel, averaged over channels and pictures.
  std::vector<std::vector<double>> weights;
  int64_t pictures = 0;  // used
};

// A picture whose content is `scale` times as large around its middle: above 1 the middle is cut out and
// enlarged; below 1 the picture is shrunk and surrounded by its mirror images, because a frame of one colour is something
// that the gates respond to by itself. image: [height, width, channels].
Tensor scaled_content(const Tensor& image, double scale);

// Every picture at every scale. Throws Error when the model has no selective kernels.
KernelCurve kernel_curve(const LoadedImageClassifier& loaded, const data::Pictures& pictures,
                         const std::vector<double>& scales);
// The same of a model folder; files as data::read_pictures() has them, `most` pictures of them evenly chosen (0:
// all).
KernelCurve kernel_curve(const std::filesystem::path& folder, const std::vector<std::string>& files,
                         const std::vector<double>& scales, int64_t most);

// "0.5,0.75,1": at least two sizes from 0.1 to 10. Throws Error naming what is wrong.
std::vector<double> parse_scales(const std::string& text);

// Columns: scale, a weight for every block, and their mean.
std::string to_text(const KernelCurve& curve);
// By the ending of `path`: .png, .svg or .pdf (a line for each stage, and their mean), or .json.
std::string kernel_curve_file(const KernelCurve& curve, const std::filesystem::path& path);
// Throws Error naming the endings that work.
void check_kernel_curve_ending(const std::filesystem::path& path);

}  // namespace fovea::tasks
