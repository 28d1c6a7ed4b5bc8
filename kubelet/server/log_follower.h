// Continues log responses that are not complete at once, all on one thread. inotify wakes it, and once a second it
// checks whether the containers still run. The thread ends with the last response.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "kubelet/server/log_session.h"
#include "lib/base/mutex.h"
#include "lib/event/inotify.h"

namespace keelson::kubelet::server {

class LogFollower {  // thread safe
 public:
  // Whether the log at this path may still grow.
  using StillWritten = std::function<bool()>;
  ~LogFollower();
  // Drops all sessions, and returns when the thread has ended. Call it before destruction if sessions own the
  // follower indirectly (a response holds its server): else the thread would destroy the follower.
  void Stop();
  // Takes over the session.
  void Add(std::unique_ptr<LogSession> session, StillWritten still_written);

 private:
  struct Followed {
    std::unique_ptr<LogSession> session;
    StillWritten still_written;
    int watch = -1;
    LogSession::State state = LogSession::State::kBehind;
    std::chrono::steady_clock::time_point ask_at{};  // about the container
  };
  void Run(std::stop_token stop);
  void Work(std::stop_token stop, std::vector<Followed>& all, event::Inotify* inotify);
  static std::chrono::milliseconds Pause(const std::vector<Followed>& all);
  void Wait(std::stop_token stop, std::chrono::milliseconds timeout, std::vector<Followed>& all,
            event::Inotify* inotify);

  Mutex mutex_;
  std::vector<Followed> added_ KEELSON_GUARDED_BY(mutex_);
  std::stop_source wake_ KEELSON_GUARDED_BY(mutex_);
  bool running_ KEELSON_GUARDED_BY(mutex_) = false, stopped_ KEELSON_GUARDED_BY(mutex_) = false;
  std::jthread thread_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet::server
