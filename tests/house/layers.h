// The rule of the rooms, read from the sources: who may include whom, and what may appear only in one room.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace fovea::house {

// Room name → number, from the fovea_room() calls in CMakeLists.txt, and the rooms above the library.
std::map<std::string, int> read_rooms(const std::filesystem::path& cmake_lists);

// Every breach under `source` (the src folder), one line each: "nn/linear.cc:3: includes train/loop.h (7 from
// 5)".
std::vector<std::string> find_breaches(const std::filesystem::path& source,
                                       const std::map<std::string, int>& rooms);

// Every .cc of more than 150 lines under `source` that does not begin with a comment that says what it does, one line each.
std::vector<std::string> find_uncommented(const std::filesystem::path& source);

}  // namespace fovea::house
