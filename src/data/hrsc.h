// HRSC2016, the set of ships in optical satellite pictures (Liu et al. 2017), as it is distributed: a folder of
// pictures and an XML file for each with the rotated boxes of its ships and the place of each bow.
//
// Files come from outside: sizes are held to limits, and what is damaged is one Error that names the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/ships.h"

namespace fovea::data {

// The ships of one annotation: mbox_cx, mbox_cy, mbox_w (along), mbox_h (across) and mbox_ang (radians) of each
// HRSC_Object; header_x and header_y tell which end is the bow. Throws Error, beginning with `where`.
std::vector<Ship> parse_hrsc(std::string_view xml, const std::string& where);

// All pictures that have an annotation, by name: FOLDER/Annotations/*.xml with pictures of the same names in
// FOLDER/AllImages, or both in FOLDER itself; .bmp, .png, .jpg. Each is brought to size x size (fitted()). The
// set does not say where land is. Throws Error naming the file.
std::vector<ShipScene> read_hrsc(const std::filesystem::path& folder, int64_t size);

}  // namespace fovea::data
