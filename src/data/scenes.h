// Scenes made from labelled pictures, as the papers on visual attention make them of MNIST: the picture as it is, moved
// to a random place of a larger black canvas, or moved so among fragments of other pictures.
//
// A scene is a function of its pictures and one random stream: a new seed for each batch gives new scenes in every
// epoch, one fixed seed gives the same test set everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/rng.h"
#include "data/labelled_pictures.h"

namespace fovea::data {

enum class SceneKind { plain, translated, cluttered };

struct Scene {
  SceneKind kind = SceneKind::plain;
  int64_t size = 0;  // side of the canvas; plain: not used, scenes have the size of their pictures
  // cluttered: so many fragments of side x side pixels, each cut out of another picture at random.
  int64_t fragments = 4, side = 8;
  // Fragments are added to the scene and sums end at white. Otherwise, which is easier: the picture is pasted last, so
  // that no fragment touches it.
  bool blended = true;
};

// "plain", "translated", "cluttered", and back; throws Error on another name.
std::string name_of(SceneKind kind);
SceneKind scene_named(const std::string& name);

// The form of the scenes made of pictures of a form. Throws Error when the pictures do not fit on the canvas, or a
// fragment is larger than a picture.
PictureForm scene_form(const Scene& scene, const PictureForm& source);

// The scene of picture i. out: [height, width, channels] of scene_form().
void draw_scene(const Pictures& pictures, int64_t i, const Scene& scene, Rng rng, std::span<uint8_t> out);

// A frame of fragments alone, on black. out: [height, width, channels] of scene_form().
void draw_fragments(const Pictures& pictures, const Scene& scene, Rng rng, std::span<uint8_t> out);

// The scenes of the chosen pictures as values from 0 to 1: [chosen, height, width, channels]. On all threads; scene r
// is drawn from stream r of the seed.
Tensor draw_scenes(const Pictures& pictures, std::span<const int64_t> chosen, const Scene& scene,
                   uint64_t seed);

// A scene for each picture, for validation and tests: scene i is drawn from stream i of the seed.
Pictures make_scenes(const Pictures& pictures, const Scene& scene, uint64_t seed);

// Bytes as values from 0 to 1: pictures [first, first + count) -> [count, height, width, channels].
Tensor to_values(const Pictures& pictures, int64_t first, int64_t count);

}  // namespace fovea::data
