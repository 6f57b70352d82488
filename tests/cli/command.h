// Runs the built program and gives back what a user would see.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace fovea::testing_cli {

struct Outcome {
  std::string out;  // standard output
  std::string err;  // standard error
  int status = -1;  // exit status, or 128 + signal
};

// `arguments` is a piece of shell: "info --json". `setting` goes before the program: "FOVEA_ISA=sse4".
inline Outcome run(const std::string& arguments, const std::string& setting = "") {
  const auto shell = [](const std::string& line, std::string& text) {
    FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) return -1;
    std::array<char, 4096> buffer;
    for (size_t count; (count = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      text.append(buffer.data(), count);
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  };
  Outcome outcome;
  char errors[] = "/tmp/fovea-errors-XXXXXX";
  close(mkstemp(errors));
  outcome.status = shell("{ " + setting + " " FOVEA_PROGRAM " " + arguments + "; } 2>" + errors, outcome.out);
  shell(std::string("cat ") + errors + "; rm " + errors, outcome.err);
  return outcome;
}

}  // namespace fovea::testing_cli
