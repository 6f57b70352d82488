#include "data/scenes.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/fields.h"
#include "base/parallel.h"
#include "io/json.h"

namespace fovea::data {
namespace {

constexpr std::array kNames = {std::pair{SceneKind::plain, "plain"},
                               std::pair{SceneKind::translated, "translated"},
                               std::pair{SceneKind::cluttered, "cluttered"}};

struct Place {
  int64_t row, column;
};

// Where a square or picture of `height` x `width` may be on a canvas, drawn evenly.
Place draw_place(const PictureForm& canvas, int64_t height, int64_t width, Rng& rng) {
  const int64_t row = rng.below(canvas.height - height + 1), column = rng.below(canvas.width - width + 1);
  return {row, column};
}

void paste(std::span<const uint8_t> picture, const PictureForm& form, const Place& at,
           const PictureForm& canvas, std::span<uint8_t> out) {
  const int64_t length = form.width * form.channels;
  for (int64_t row = 0; row < form.height; ++row)
    std::copy_n(picture.begin() + row * length, length,
                out.begin() + ((at.row + row) * canvas.width + at.column) * canvas.channels);
}

// Adds fragments of pictures other than picture i, or of any where i is none of them.
void add_fragments(const Pictures& pictures, int64_t i, const Scene& scene, const PictureForm& canvas,
                   Rng& rng, std::span<uint8_t> out) {
  const PictureForm& form = pictures.form;
  const int64_t length = scene.side * form.channels;
  for (int64_t f = 0; f < scene.fragments; ++f) {
    const bool one_left_out = i < pictures.count() && pictures.count() > 1;
    int64_t other = rng.below(pictures.count() - one_left_out);
    if (one_left_out && other >= i) ++other;
    const std::span<const uint8_t> picture = pictures.picture(other);
    const Place from = draw_place(form, scene.side, scene.side, rng);
    const Place to = draw_place(canvas, scene.side, scene.side, rng);
    for (int64_t row = 0; row < scene.side; ++row) {
      const auto source = picture.begin() + ((from.row + row) * form.width + from.column) * form.channels;
      const auto target = out.begin() + ((to.row + row) * canvas.width + to.column) * canvas.channels;
      for (int64_t k = 0; k < length; ++k)
        target[k] = static_cast<uint8_t>(std::min(255, int{target[k]} + int{source[k]}));
    }
  }
}

}  // namespace

std::string name_of(SceneKind kind) {
  for (const auto& [each, name] : kNames)
    if (each == kind) return name;
  fail("internal: a kind of scene without a name");
}

SceneKind scene_named(const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& [kind, each] : kNames) {
    if (name == each) return kind;
    known.emplace_back(each);
  }
  fail("unknown scene ", in_quotes(name), name_hint(name, known));
}

PictureForm scene_form(const Scene& scene, const PictureForm& source) {
  if (scene.kind == SceneKind::plain) return source;
  require(scene.size >= source.height && scene.size >= source.width, "size: got a scene of ", scene.size,
          " x ", scene.size, " pixels for pictures of ", source.height, " x ", source.width,
          "; wanted at least ", std::max(source.height, source.width));
  if (scene.kind == SceneKind::cluttered)
    require(scene.side <= source.height && scene.side <= source.width, "fragments of ", scene.side, " x ",
            scene.side, " pixels do not fit into pictures of ", source.height, " x ", source.width);
  return {scene.size, scene.size, source.channels};
}

void draw_scene(const Pictures& pictures, int64_t i, const Scene& scene, Rng rng, std::span<uint8_t> out) {
  const std::span<const uint8_t> picture = pictures.picture(i);
  if (scene.kind == SceneKind::plain) {
    std::copy(picture.begin(), picture.end(), out.begin());
    return;
  }
  const PictureForm& form = pictures.form;
  const PictureForm canvas{scene.size, scene.size, form.channels};
  std::fill(out.begin(), out.end(), uint8_t{0});
  const Place at = draw_place(canvas, form.height, form.width, rng);
  if (scene.kind == SceneKind::translated) return paste(picture, form, at, canvas, out);
  if (scene.blended) paste(picture, form, at, canvas, out);
  add_fragments(pictures, i, scene, canvas, rng, out);
  if (!scene.blended) paste(picture, form, at, canvas, out);
}

void draw_fragments(const Pictures& pictures, const Scene& scene, Rng rng, std::span<uint8_t> out) {
  std::fill(out.begin(), out.end(), uint8_t{0});
  add_fragments(pictures, pictures.count(), scene, scene_form(scene, pictures.form), rng, out);
}

Tensor draw_scenes(const Pictures& pictures, std::span<const int64_t> chosen, const Scene& scene,
                   uint64_t seed) {
  const PictureForm form = scene_form(scene, pictures.form);
  const auto count = static_cast<int64_t>(chosen.size()), values = form.height * form.width * form.channels;
  const Tensor scenes({count, form.height, form.width, form.channels});
  const Rng streams(seed);
  parallel_for(count, 8, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> bytes(static_cast<size_t>(values));
    for (int64_t r = begin; r < end; ++r) {
      draw_scene(pictures, chosen[static_cast<size_t>(r)], scene, streams.split(static_cast<uint64_t>(r)),
                 bytes);
      float* const out = scenes.data() + r * values;
      for (int64_t k = 0; k < values; ++k) out[k] = static_cast<float>(bytes[static_cast<size_t>(k)]) / 255;
    }
  });
  return scenes;
}

Pictures make_scenes(const Pictures& pictures, const Scene& scene, uint64_t seed) {
  Pictures scenes{scene_form(scene, pictures.form), {}, pictures.labels, pictures.classes};
  const auto values = static_cast<size_t>(scenes.form.height * scenes.form.width * scenes.form.channels);
  scenes.pixels.resize(values * static_cast<size_t>(pictures.count()));
  const Rng streams(seed);
  parallel_for(pictures.count(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      draw_scene(pictures, i, scene, streams.split(static_cast<uint64_t>(i)),
                 std::span(scenes.pixels).subspan(static_cast<size_t>(i) * values, values));
  });
  return scenes;
}

Tensor to_values(const Pictures& pictures, int64_t first, int64_t count) {
  const PictureForm& form = pictures.form;
  const Tensor values({count, form.height, form.width, form.channels});
  const uint8_t* const from = pictures.pixels.data() + first * form.height * form.width * form.channels;
  for (int64_t i = 0; i < values.count(); ++i) values.data()[i] = static_cast<float>(from[i]) / 255;
  return values;
}

}  // namespace fovea::data
