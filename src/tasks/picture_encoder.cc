// Opens and saves a picture encoder, computes features of pictures, and keeps them in a record file.
#include "tasks/picture_encoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/parallel.h"
#include "data/images.h"
#include "io/file.h"
#include "nn/weights.h"

namespace fovea::tasks {
namespace fs = std::filesystem;
namespace {

constexpr float kLargest = 6, kCodes = 65535;
constexpr int64_t kLeastSize = 32, kMostSize = 1024;
constexpr std::string_view kManifest = ".manifest.tsv", kFloats = ".f32";

// What the two files' names have in common.
fs::path stem_of(const std::string& path) {
  for (const std::string_view ending : {kManifest, kFloats})
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  if (!is_folder(path)) return path;
  std::vector<std::string> stems;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().string();
    if (name.ends_with(kManifest)) stems.push_back(name.substr(0, name.size() - kManifest.size()));
  }
  std::sort(stems.begin(), stems.end());
  require(!stems.empty(), path, ": no .manifest.tsv in this folder; wanted the weights of a MobileNet");
  require(stems.size() == 1, path, ": ", stems.size(), " encoders in this folder; name one, such as ",
          stems.empty() ? "" : stems.back());
  return stems[0];
}

void check_size(int64_t size, const std::string& where) {
  require(size >= kLeastSize && size <= kMostSize, where, ": pictures of ", size, " pixels, wanted ",
          kLeastSize, " to ", kMostSize);
}

uint64_t checksum(const PictureEncoder& encoder) {
  uint64_t sum = static_cast<uint64_t>(encoder.size);
  for (const nn::NamedParameter& parameter : encoder.network->state()) {
    const Tensor value = parameter.value.value().contiguous();
    sum = checksum_of(std::as_bytes(std::span(value.data(), static_cast<size_t>(value.count()))), sum);
  }
  return sum;
}

RecordForm form_of(const PictureEncoder& encoder) {
  return {.content = describe(encoder),
          .bytes = static_cast<uint64_t>(encoder.places() * encoder.channels()) * sizeof(uint16_t),
          .hint = "; choose another file with --features"};
}

// Says now and then how far the work is.
class Progress {
 public:
  Progress(int64_t all, RunObserver& observer) : all_(all), observer_(observer) {}
  void done(int64_t count) {
    using namespace std::chrono;
    const steady_clock::time_point now = steady_clock::now();
    if (now - said_ < seconds(10)) return;
    said_ = now;
    const double rate = static_cast<double>(count) / duration<double>(now - begun_).count();
    observer_.on_note(message("features of ", count, " of ", all_, " pictures, ", std::llround(rate),
                              " a second, about ", std::llround(static_cast<double>(all_ - count) / rate),
                              " s left"));
  }

 private:
  int64_t all_;
  RunObserver& observer_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now(), said_ = begun_;
};

}  // namespace

PictureEncoder read_encoder(const std::string& path, int64_t blocks, int64_t size) {
  check_size(size, "picture_size");
  const fs::path stem = stem_of(path);
  PictureEncoder encoder{.config = models::mobilenet_config(stem, blocks), .size = size, .network = nullptr};
  Rng rng(0);
  encoder.network = std::make_unique<models::MobileNet>(encoder.config, rng);
  models::load_mobilenet(*encoder.network, stem);
  return encoder;
}

void save_encoder(const fs::path& folder, const PictureEncoder& encoder) {
  nn::save_weights(*encoder.network, folder / kEncoderFile);
}

Json encoder_json(const PictureEncoder& encoder) {
  Json json = fields_to_json(encoder.config);
  json["picture_size"] = encoder.size;
  return json;
}

PictureEncoder load_encoder(const fs::path& folder, const Json& settings) {
  const std::string where = (folder / "config.json").string() + ": encoder";
  require(settings.is_object() && settings.contains("picture_size"), where,
          ": wanted an object with width, blocks and picture_size");
  PictureEncoder encoder{.config = {}, .network = nullptr};
  Json config = settings;
  value_from_json(config["picture_size"], encoder.size, where + ": picture_size");
  check_size(encoder.size, where);
  config.erase("picture_size");
  fields_from_json(config, encoder.config, where);
  const fs::path weights = folder / kEncoderFile;
  require(path_exists(weights), folder.string(), ": its encoder is missing: there is no ", kEncoderFile,
          "; copy it from where the model was trained, where it is beside model.safetensors");
  encoder.network = nn::load_network(weights, [&] {
    Rng rng(0);
    return std::make_unique<models::MobileNet>(encoder.config, rng);
  });
  return encoder;
}

std::string describe(const PictureEncoder& encoder) {
  char sum[32];
  std::snprintf(sum, sizeof sum, "%016llx", static_cast<unsigned long long>(checksum(encoder)));
  return message("features of MobileNet ", sum, ", ", encoder.side(), " x ", encoder.side(), " x ",
                 encoder.channels());
}

FeatureCodes encode_picture(const PictureEncoder& encoder, std::span<const uint8_t> pixels) {
  FOVEA_ASSERT(static_cast<int64_t>(pixels.size()) == 3 * encoder.size * encoder.size);
  const NoGrad no_grad;
  const Tensor x({1, encoder.size, encoder.size, 3});
  for (size_t i = 0; i < pixels.size(); ++i) x.data()[i] = static_cast<float>(pixels[i]) / 127.5f - 1;
  const Tensor features = (*encoder.network)(Var(x), nn::Context{}).value().contiguous();
  FeatureCodes codes(static_cast<size_t>(features.count()));
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<uint16_t>(
        std::lround(std::clamp(features.data()[i], 0.0f, kLargest) * (kCodes / kLargest)));
  return codes;
}

void decode_features(std::span<const uint16_t> codes, float* features) {
  for (size_t i = 0; i < codes.size(); ++i) features[i] = static_cast<float>(codes[i]) * (kLargest / kCodes);
}

Tensor picture_features(const PictureEncoder& encoder, std::span<const std::vector<uint8_t>> pictures) {
  const auto count = static_cast<int64_t>(pictures.size());
  const int64_t numbers = encoder.places() * encoder.channels();
  const Tensor features({count, encoder.places(), encoder.channels()});
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      decode_features(encode_picture(encoder, pictures[static_cast<size_t>(i)]),
                      features.data() + i * numbers);
  });
  return features;
}

FeatureCache::FeatureCache(const fs::path& path, const PictureEncoder& encoder)
    : encoder_(encoder), file_(path, form_of(encoder)) {}

bool FeatureCache::fill(const data::PictureFiles& files, std::span<const std::string> names,
                        RunObserver& observer, const std::function<bool()>& should_stop) {
  constexpr int64_t kAtOnce = 32;
  const auto all = static_cast<int64_t>(names.size());
  if (file_.damaged() > 0) observer.on_note(message(file_.damaged(), " damaged records are computed again"));
  keys_.assign(names.size(), {});
  Progress progress(all, observer);
  int64_t computed = 0;
  for (int64_t first = 0; first < all; first += kAtOnce) {
    if (should_stop()) return file_.release(), false;
    const int64_t count = std::min(kAtOnce, all - first);
    std::vector<FeatureCodes> codes(static_cast<size_t>(count));
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const std::string& name = names[static_cast<size_t>(first + i)];
        const std::vector<std::byte> bytes = files.read(name);
        RecordKey& key = keys_[static_cast<size_t>(first + i)] = record_key(bytes);
        if (!file_.contains(key))
          codes[static_cast<size_t>(i)] =
              encode_picture(encoder_, data::decode_picture_as(bytes, files.place(name), encoder_.form()));
      }
    });
    for (int64_t i = 0; i < count; ++i) {
      const FeatureCodes& one = codes[static_cast<size_t>(i)];
      if (!one.empty()) file_.add(keys_[static_cast<size_t>(first + i)], std::as_bytes(std::span(one)));
      computed += !one.empty();
    }
    progress.done(first + count);
  }
  file_.release();
  observer.on_note(
      message("features of ", all, " pictures: ", computed, " computed, ", all - computed, " from the file"));
  return true;
}

void FeatureCache::read(int64_t picture, float* features) const {
  FeatureCodes codes(static_cast<size_t>(encoder_.places() * encoder_.channels()));
  file_.read(keys_[static_cast<size_t>(picture)], std::as_writable_bytes(std::span(codes)));
  decode_features(codes, features);
}

}  // namespace fovea::tasks
