#include "house/layers.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace fovea::house {
namespace {

namespace fs = std::filesystem;

// The command line and the Python bindings stand on the whole library.
constexpr int kTopFloor = 11;

// What may appear only in the rooms named. Patterns are matched against a line without its comment.
struct OnlyHere {
  std::regex pattern;
  std::set<std::string> rooms;
  std::string what;
};

const std::vector<OnlyHere>& only_here() {
  static const std::vector<OnlyHere> rules = [] {
    const auto header = [](const char* names) {
      return std::regex("^\\s*#\\s*include\\s*[<\"](" + std::string(names) + ")");
    };
    return std::vector<OnlyHere>{
        {header("hwy/|\\w*mmintrin\\.h|arm_neon\\.h"), {"kernels"}, "intrinsics"},
        {header("cairo|pango"), {"explain"}, "cairo or pango"},
        {header("mpi\\.h"), {"train"}, "MPI"},
        {header("jpeglib\\.h|png\\.h|turbojpeg\\.h|sentencepiece"), {"data"}, "image or subword libraries"},
        {header("sys/socket\\.h|netinet/|boost/(beast|asio)"), {"serve"}, "sockets"},
        {header("CLI/"), {"cli"}, "the command-line parser"},
        {std::regex("\\bstd::cout\\b|\\bstdout\\b|\\bprintf\\s*\\(|\\bputs\\s*\\(|\\bargv\\b"),
         {"cli", "python"},
         "argv or stdout"},
        {std::regex("\\bint main\\s*\\("), {"cli"}, "main()"},
    };
  }();
  return rules;
}

// What people and programs talk to holds no logic of its own: the rooms, or single headers of one, that it may include
// besides itself. Python computes attention of arrays that it owns.
const std::map<std::string, std::set<std::string>>& front_ends() {
  static const std::map<std::string, std::set<std::string>> rooms{
      {"cli", {"base", "tasks", "bench"}}, {"python", {"base", "tasks", "attention/strided.h"}}};
  return rooms;
}

std::string without_comment(const std::string& line) {
  return line.substr(0, line.find("//"));
}

class Search {
 public:
  Search(const fs::path& source, const std::map<std::string, int>& rooms) : source_(source), rooms_(rooms) {}

  std::vector<std::string> run() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(source_)) {
      const std::string extension = entry.path().extension();
      if (entry.is_regular_file() && (extension == ".cc" || extension == ".h")) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) read(file);
    return breaches_;
  }

 private:
  void read(const fs::path& file) {
    const fs::path inside = fs::relative(file, source_);
    place_ = inside.generic_string();
    line_number_ = 0;
    // fovea.h, beside the rooms, gathers the library's headers: it sees all of them and holds nothing itself.
    const bool umbrella = !inside.has_parent_path();
    room_ = umbrella ? "" : inside.begin()->string();
    if (umbrella) {
      number_ = kTopFloor;
    } else if (const auto found = rooms_.find(room_); found != rooms_.end()) {
      number_ = found->second;
    } else {
      report("room " + room_ + " has no number: name it in CMakeLists.txt");
      return;
    }
    std::ifstream text(file);
    for (std::string line; std::getline(text, line);) {
      ++line_number_;
      check(without_comment(line));
    }
  }

  void check(const std::string& line) {
    static const std::regex include("^\\s*#\\s*include\\s*\"([^\"]*)\"");
    std::smatch match;
    if (std::regex_search(line, match, include)) check_include(match[1]);
    for (const OnlyHere& rule : only_here())
      if (rule.rooms.count(room_) == 0 && std::regex_search(line, rule.pattern)) report("names " + rule.what);
  }

  void check_include(const std::string& path) {
    const size_t slash = path.find('/');
    if (slash == std::string::npos) return report("includes " + path + " without naming its room");
    const std::string other = path.substr(0, slash);
    const auto found = rooms_.find(other);
    if (found == rooms_.end()) return report("includes " + path + ", and there is no room " + other);
    if (!fs::exists(source_ / path)) return report("includes " + path + ", which does not exist");
    if (const auto front = front_ends().find(room_); front != front_ends().end() && other != room_ &&
                                                     front->second.count(other) == 0 &&
                                                     front->second.count(path) == 0)
      return report("includes " + path + ": a front end talks to tasks only");
    if (other == room_ || found->second < number_) return;
    report("includes " + path + " (room " + std::to_string(found->second) + " from room " +
           std::to_string(number_) + ")");
  }

  void report(const std::string& what) {
    breaches_.push_back(place_ + ":" + std::to_string(line_number_) + ": " + what);
  }

  const fs::path source_;
  const std::map<std::string, int>& rooms_;
  std::vector<std::string> breaches_;
  std::string place_, room_;
  int number_ = 0, line_number_ = 0;
};

}  // namespace

std::map<std::string, int> read_rooms(const fs::path& cmake_lists) {
  std::ifstream file(cmake_lists);
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  std::map<std::string, int> rooms{{"bench", kTopFloor - 1}, {"cli", kTopFloor}, {"python", kTopFloor}};
  static const std::regex call("(?:^|\n)fovea_room\\((\\w+) (\\d+)");
  for (std::sregex_iterator match(all.begin(), all.end(), call), end; match != end; ++match)
    rooms[(*match)[1]] = std::stoi((*match)[2]);
  return rooms;
}

std::vector<std::string> find_breaches(const fs::path& source, const std::map<std::string, int>& rooms) {
  return Search(source, rooms).run();
}

std::vector<std::string> find_uncommented(const fs::path& source) {
  constexpr int64_t kLongest = 150;
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    if (entry.path().extension() != ".cc") continue;
    std::ifstream file(entry.path());
    std::string first, line;
    std::getline(file, first);
    int64_t lines = 1;
    while (std::getline(file, line)) ++lines;
    if (lines > kLongest && !first.starts_with("// "))
      found.push_back(entry.path().lexically_relative(source).string() + ": " + std::to_string(lines) +
                      " lines, and no first comment that says what they do");
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace fovea::house
