// Objects compiled for one instruction set must define nothing weak: the linker may keep such a copy for the
// whole program, and an older CPU would then run instructions it lacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fovea::house {
namespace {

// Names of the weak and unique symbols that an object defines, as nm prints them.
std::vector<std::string> weak_symbols(const std::string& object) {
  std::vector<std::string> found;
  FILE* pipe = popen((FOVEA_NM " --demangle --defined-only --format=posix " + object).c_str(), "r");
  if (pipe == nullptr) return {"nm did not start"};
  std::string text;
  char buffer[4096];
  for (size_t count; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, count);
  if (pclose(pipe) != 0) return {"nm failed on " + object};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    for (const char* kind : {" W ", " V ", " u "})
      if (line.find(kind) != std::string::npos) found.push_back(line);
  return found;
}

std::vector<std::string> objects_listed_in(const std::string& path) {
  std::vector<std::string> objects;
  std::ifstream list(path);
  for (std::string line; std::getline(list, line);)
    if (!line.empty()) objects.push_back(line);
  return objects;
}

TEST(Symbols, PerLevelObjectsDefineNothingWeak) {
  const auto objects = objects_listed_in(FOVEA_LEVEL_OBJECTS);
  ASSERT_GE(objects.size(), 3u);
  for (const std::string& object : objects) EXPECT_THAT(weak_symbols(object), testing::IsEmpty()) << object;
}

TEST(Symbols, PlantedWeakFunctionAndVariableAreCaught) {
  const auto objects = objects_listed_in(FOVEA_PLANTED_OBJECTS);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_THAT(weak_symbols(objects[0]), testing::Contains(testing::HasSubstr("planted_function")));
  EXPECT_THAT(weak_symbols(objects[0]), testing::Contains(testing::HasSubstr("planted_variable")));
}

}  // namespace
}  // namespace fovea::house
