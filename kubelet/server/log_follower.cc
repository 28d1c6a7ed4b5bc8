#include "kubelet/server/log_follower.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/inotify.h>

#include <algorithm>

namespace keelson::kubelet::server {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kRetryBehind{20};
constexpr milliseconds kAskEvery{1000};
constexpr uint32_t kEvents = IN_MODIFY | IN_CREATE | IN_MOVED_TO;

std::string DirectoryOf(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  std::string text = real ? real : path;
  free(real);
  size_t slash = text.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : text.substr(0, slash);
}

}  // namespace

LogFollower::~LogFollower() { Stop(); }

void LogFollower::Stop() {
  std::jthread thread;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    wake_.request_stop();
    thread = std::move(thread_);
  }
  thread.request_stop();
}

void LogFollower::Add(std::unique_ptr<LogSession> session, StillWritten still_written) {
  MutexLock lock(mutex_);
  if (stopped_) return;
  Followed followed;
  followed.session = std::move(session);
  followed.still_written = std::move(still_written);
  added_.push_back(std::move(followed));
  wake_.request_stop();
  if (running_) return;
  running_ = true;
  if (thread_.joinable()) thread_.join();  // it has left Run()
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

void LogFollower::Run(std::stop_token stop) {
  pthread_setname_np(pthread_self(), "log-follow");
  Result<event::Inotify> inotify = event::Inotify::Create();  // without it, logs are looked at every second
  std::vector<Followed> all;
  for (;;) {
    std::stop_token wake;
    {
      MutexLock lock(mutex_);
      for (Followed& followed : added_) all.push_back(std::move(followed));
      added_.clear();
      if (all.empty() || stopped_) {
        running_ = false;
        break;
      }
      wake_ = std::stop_source();
      wake = wake_.get_token();
    }
    Work(stop, all, inotify ? &*inotify : nullptr);
    if (!all.empty()) Wait(wake, Pause(all), all, inotify ? &*inotify : nullptr);
  }
}

milliseconds LogFollower::Pause(const std::vector<Followed>& all) {
  bool behind = std::any_of(all.begin(), all.end(),
                            [](const Followed& f) { return f.state == LogSession::State::kBehind; });
  return behind ? kRetryBehind : kAskEvery;
}

void LogFollower::Work(std::stop_token stop, std::vector<Followed>& all, event::Inotify* inotify) {
  auto now = std::chrono::steady_clock::now();
  for (Followed& followed : all) {
    if (stop.stop_requested()) return;
    if (followed.watch < 0 && inotify) {
      // Before the file is read: nothing that comes after the read is missed.
      followed.watch = inotify->Add(DirectoryOf(followed.session->path()), kEvents).value_or(-1);
    }
    // Asked before the read as well: what was written until then is read now.
    if (now >= followed.ask_at) {
      if (!followed.still_written()) followed.session->NoMore();
      followed.ask_at = now + kAskEvery;
    }
    followed.state = followed.session->Pump();
  }
  std::vector<int> let_go;
  std::erase_if(all, [&](const Followed& followed) {
    if (followed.state != LogSession::State::kDone) return false;
    let_go.push_back(followed.watch);
    return true;
  });
  for (int watch : let_go) {  // a watch is shared by all that follow in one directory
    bool used = std::any_of(all.begin(), all.end(), [&](const Followed& f) { return f.watch == watch; });
    if (!used && watch >= 0) inotify->Remove(watch);
  }
}

void LogFollower::Wait(std::stop_token wake, milliseconds timeout, std::vector<Followed>& all,
                       event::Inotify* inotify) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!wake.stop_requested()) {
    auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    if (!inotify) {
      Mutex mutex;
      CondVar never;
      std::unique_lock lock(mutex);
      never.wait_for(lock, wake, left, [] { return false; });
      return;
    }
    Result<std::vector<event::FileEvent>> events = inotify->Wait(wake, left);
    if (!events) return;
    bool behind = false;
    for (Followed& followed : all) {
      bool touched = std::any_of(events->begin(), events->end(), [&](const event::FileEvent& e) {
        return e.watch == followed.watch || e.watch < 0;
      });
      if (!touched) continue;
      followed.state = followed.session->Pump();
      behind |= followed.state != LogSession::State::kWaiting;
    }
    if (behind) return;  // done, or to be tried again soon
  }
}

}  // namespace keelson::kubelet::server
