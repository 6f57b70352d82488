#include "house/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace fovea::house {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path kRoot = FOVEA_ROOT;

// A house of its own, in which breaches can be planted.
class Planted : public testing::Test {
 protected:
  void SetUp() override {
    write("base/error.h", "#pragma once\n");
    write("kernels/gemm/gemm.h", "#include \"base/error.h\"\n");
    write("io/json.h", "#include \"base/error.h\"\n");
    write("attention/spec.h", "#include \"kernels/gemm/gemm.h\"\n#include \"attention/spec.h\"\n");
    write("train/loop.h", "#include \"io/json.h\"\n");
    write("tasks/open.h", "#include \"train/loop.h\"\n");
    write("cli/main.cc", "#include <CLI/CLI.hpp>\n#include \"tasks/open.h\"\nint main() {}\n");
    write("fovea.h", "#include \"train/loop.h\"\n");
  }
  void TearDown() override { fs::remove_all(source_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((source_ / path).parent_path());
    std::ofstream(source_ / path) << text;
  }
  std::vector<std::string> breaches() const { return find_breaches(source_, rooms_); }

  const fs::path source_ = fs::temp_directory_path() / ("fovea-layers-" + std::to_string(getpid()));
  const std::map<std::string, int> rooms_ = read_rooms(kRoot / "CMakeLists.txt");
};

TEST(Layers, RoomsAreReadFromTheBuild) {
  const auto rooms = read_rooms(kRoot / "CMakeLists.txt");
  EXPECT_EQ(rooms.at("base"), 0);
  EXPECT_EQ(rooms.at("kernels"), 1);
  EXPECT_EQ(rooms.at("attention"), rooms.at("io"));
  EXPECT_GT(rooms.at("cli"), rooms.at("train"));
}

TEST(Layers, TheHouseKeepsItsRule) {
  EXPECT_THAT(find_breaches(kRoot / "src", read_rooms(kRoot / "CMakeLists.txt")), IsEmpty());
}

TEST(Layers, EveryLongSourceBeginsWithWhatItDoes) {
  EXPECT_THAT(find_uncommented(kRoot / "src"), IsEmpty());
}

TEST_F(Planted, ALongSourceWithoutAFirstCommentIsCaught) {
  const std::string longer(150, '\n');
  write("nn/short.cc", "#include <span>\n" + longer.substr(1));
  write("nn/commented.cc", "// Adds numbers.\n" + longer);
  write("nn/silent.cc", "#include <span>\n" + longer);
  EXPECT_THAT(find_uncommented(source_),
              ElementsAre("nn/silent.cc: 151 lines, and no first comment that says what they do"));
}

TEST_F(Planted, CleanHouseHasNoBreach) {
  EXPECT_THAT(breaches(), IsEmpty());
}

TEST_F(Planted, LookingUpIsCaught) {
  write("kernels/gemm/gemm.cc", "#include \"base/error.h\"\n#include \"train/loop.h\"\n");
  EXPECT_THAT(breaches(), ElementsAre("kernels/gemm/gemm.cc:2: includes train/loop.h (room 7 from room 1)"));
}

TEST_F(Planted, LookingSidewaysIsCaught) {
  write("attention/spec.cc", "#include \"io/json.h\"\n");
  EXPECT_THAT(breaches(), ElementsAre("attention/spec.cc:1: includes io/json.h (room 4 from room 4)"));
}

TEST_F(Planted, ACommandLineThatDoesTheWorkItselfIsCaught) {
  write("cli/translate.cc", "#include \"tasks/open.h\"\n#include \"train/loop.h\"\n");
  EXPECT_THAT(breaches(),
              ElementsAre("cli/translate.cc:2: includes train/loop.h: a front end talks to tasks only"));
}

TEST_F(Planted, BindingsMayReadOneHeaderOfAttention) {
  write("attention/strided.h", "#pragma once\n");
  write("python/attention.cc", "#include \"attention/strided.h\"\n#include \"attention/spec.h\"\n");
  EXPECT_THAT(
      breaches(),
      ElementsAre("python/attention.cc:2: includes attention/spec.h: a front end talks to tasks only"));
}

TEST_F(Planted, OddSpellingIsCaught) {
  write("base/error.cc", "  #  include \"io/json.h\"  // why not\n");
  EXPECT_THAT(breaches(), ElementsAre(HasSubstr("room 4 from room 0")));
}

TEST_F(Planted, HeaderWithoutRoomIsCaught) {
  write("kernels/gemm/gemm.cc", "#include \"gemm.h\"\n");
  EXPECT_THAT(breaches(), ElementsAre(HasSubstr("without naming its room")));
}

TEST_F(Planted, HeaderThatDoesNotExistIsCaught) {
  write("kernels/gemm/gemm.cc", "#include \"base/absent.h\"\n");
  EXPECT_THAT(breaches(), ElementsAre(HasSubstr("does not exist")));
}

TEST_F(Planted, RoomWithoutNumberIsCaught) {
  write("attic/box.h", "#pragma once\n");
  EXPECT_THAT(breaches(), ElementsAre(HasSubstr("room attic has no number")));
}

TEST_F(Planted, CommentedIncludeIsNotABreach) {
  write("base/error.cc", "// #include \"io/json.h\"\n");
  EXPECT_THAT(breaches(), IsEmpty());
}

struct Misplaced {
  std::string path, line, what;
};

class ThingsThatLiveInOneRoom : public Planted, public testing::WithParamInterface<Misplaced> {};

TEST_P(ThingsThatLiveInOneRoom, AreCaughtElsewhere) {
  write(GetParam().path, GetParam().line + "\n");
  EXPECT_THAT(breaches(), ElementsAre(HasSubstr(GetParam().what)));
}

INSTANTIATE_TEST_SUITE_P(
    All, ThingsThatLiveInOneRoom,
    testing::Values(Misplaced{"attention/a.cc", "#include <hwy/highway.h>", "intrinsics"},
                    Misplaced{"attention/a.cc", "#include <immintrin.h>", "intrinsics"},
                    Misplaced{"cli/a.cc", "#include <cairo/cairo.h>", "cairo"},
                    Misplaced{"io/a.cc", "#include <sys/socket.h>", "sockets"},
                    Misplaced{"train/a.cc", "#include <CLI/CLI.hpp>", "command-line parser"},
                    Misplaced{"train/a.cc", "std::cout << loss;", "stdout"},
                    Misplaced{"train/a.cc", "std::printf(\"loss\");", "stdout"},
                    Misplaced{"train/a.cc", "int main() { return 0; }", "main()"}));

}  // namespace
}  // namespace fovea::house
