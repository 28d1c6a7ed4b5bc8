#include "lib/base/signals.h"

#include <pthread.h>

#include <csignal>
#include <thread>

#include "lib/base/mutex.h"

namespace keelson {
namespace {

struct State {
  Mutex mutex;
  bool starting KEELSON_GUARDED_BY(mutex) = true;
  std::function<void()> stop KEELSON_GUARDED_BY(mutex);
};

// Never destroyed: its thread outlives main().
State& TheState() {
  static State* state = new State;
  return *state;
}

sigset_t EndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// As if nobody had blocked it.
void Die(int number) {
  std::signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  std::raise(number);
}

void Wait(State& state) {
  const sigset_t signals = EndingSignals();
  for (;;) {
    int number = 0;
    if (sigwait(&signals, &number) != 0) continue;
    MutexLock lock(state.mutex);
    if (state.starting) {
      Die(number);
    } else if (state.stop) {
      state.stop();
    }
  }
}

}  // namespace

void BlockSignals() {
  static const bool once = [] {
    const sigset_t signals = EndingSignals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    std::thread([] { Wait(TheState()); }).detach();
    return true;
  }();
  (void)once;
}

StopOnSignal::StopOnSignal(std::function<void()> stop) {
  State& state = TheState();
  MutexLock lock(state.mutex);
  state.starting = false;
  state.stop = std::move(stop);
}

StopOnSignal::~StopOnSignal() {
  State& state = TheState();
  MutexLock lock(state.mutex);
  state.stop = nullptr;
}

}  // namespace keelson
