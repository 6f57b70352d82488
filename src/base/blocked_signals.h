// Signals kept away from the calling thread for a while.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace fovea {

// While one lives, this thread, and those it starts, receive no signal from outside; what comes waits, or goes
// to another thread. Signals that an instruction of the thread itself causes stay as they are.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t outside;
    sigfillset(&outside);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&outside, own);
    pthread_sigmask(SIG_BLOCK, &outside, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace fovea
