// The built program with both its ends held open: write a line, wait for the answer.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

namespace fovea::testing_cli {

class Conversation {
 public:
  explicit Conversation(std::vector<std::string> arguments) {
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
    arguments.insert(arguments.begin(), FOVEA_PROGRAM);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    child_ = fork();
    if (child_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(err[1], 2);
      execv(words[0], words.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    in_ = in[1];
    out_ = out[0];
    err_ = err[0];
    signal(SIGPIPE, SIG_IGN);
  }
  ~Conversation() {
    if (child_ > 0) {
      kill(SIGKILL);
      end();
    }
  }

  bool say(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = write(in_, text.data(), text.size());
      if (count <= 0) return false;
      text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  // The next line of the answer, without its end. Empty when there is none for a minute, or no more.
  std::string hear() {
    while (heard_.find('\n') == std::string::npos) {
      pollfd waiting{out_, POLLIN, 0};
      char buffer[4096];
      if (poll(&waiting, 1, 60'000) <= 0) return "";
      const ssize_t count = read(out_, buffer, sizeof buffer);
      if (count <= 0) return "";
      heard_.append(buffer, static_cast<size_t>(count));
    }
    const std::string line = heard_.substr(0, heard_.find('\n'));
    heard_.erase(0, line.size() + 1);
    return line;
  }
  // Whether anything came that was not asked for yet.
  bool silent() {
    pollfd waiting{out_, POLLIN, 0};
    return heard_.empty() && poll(&waiting, 1, 0) == 0;
  }

  void kill(int signal) { ::kill(child_, signal); }
  void hang_up() {
    if (in_ >= 0) close(in_);
    in_ = -1;
  }
  void stop_listening() {
    if (out_ >= 0) close(out_);
    out_ = -1;
  }

  // Waits for the end; the exit status, or 128 + signal.
  int end() {
    hang_up();
    int status = 0;
    rusage used{};
    wait4(child_, &status, 0, &used);
    child_ = -1;
    peak_kilobytes = used.ru_maxrss;
    char buffer[4096];
    for (ssize_t count; (count = read(err_, buffer, sizeof buffer)) > 0;)
      complaint.append(buffer, static_cast<size_t>(count));
    close(err_);
    stop_listening();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string complaint;    // standard error, after end()
  long peak_kilobytes = 0;  // after end()

 private:
  pid_t child_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string heard_;
};

}  // namespace fovea::testing_cli
