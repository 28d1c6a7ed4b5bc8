// Lets a runtime start some containers and sandboxes at a time instead of all that came at once: it gets done
// as soon, and the first ones long before the last. Containers go before sandboxes, so that what is begun
// gets ready.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <list>

#include "lib/base/mutex.h"

namespace keelson::kubelet {

class StartGate {  // thread safe
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Kind { kContainer, kSandbox };

  // What takes longer than `patience` (a network plugin that asks around) holds nobody up any more.
  explicit StartGate(size_t at_once, std::chrono::milliseconds patience = std::chrono::seconds(3))
      : at_once_(at_once), patience_(patience) {}

  void AwaitWaiting(size_t count);  // for tests: until so many stand before the gate

  class Pass {
   public:
    Pass(StartGate& gate, Kind kind) : gate_(gate), place_(gate.Enter(kind)) {}
    ~Pass() { gate_.Leave(place_); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    StartGate& gate_;
    const std::list<Time>::iterator place_;
  };

 private:
  struct Waiter {
    CondVar turn;
    bool let_in = false;
    std::list<Time>::iterator place;
  };
  std::list<Time>::iterator Enter(Kind kind);  // blocks
  void Leave(std::list<Time>::iterator place);
  size_t Room(Time now) const REQUIRES(mutex_);
  void LetIn() REQUIRES(mutex_);

  const size_t at_once_;
  const std::chrono::milliseconds patience_;
  Mutex mutex_;
  CondVar arrived_;
  std::list<Time> inside_ GUARDED_BY(mutex_);                      // since when, the oldest first
  std::array<std::deque<Waiter*>, 2> waiting_ GUARDED_BY(mutex_);  // by kind
};

}  // namespace keelson::kubelet
