// Faults of a runtime and of the way to the API server, and a clock that can be set.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "kubelet/testing/gated_runtime.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/client/transport.h"

namespace keelson::kubelet {

class RuntimeFaults : public RuntimeGate {  // thread safe
 public:
  // The longest timeout of clients, except for RunPodSandbox.
  static constexpr std::chrono::minutes kDeadline{2};

  explicit RuntimeFaults(Clock& clock) : clock_(clock) {}

  // By a call's name ("StartContainer", "CreateContainer main") or "" for all. Until Heal().
  void Hang(const std::string& call);  // until the caller's deadline or stop
  void Slow(const std::string& call, std::chrono::milliseconds time);
  void Fail(const std::string& call, Error error, int times = -1);
  void Heal();
  size_t Calls() const;  // so far

  Result<> Before(const Call& call, std::stop_token stop) override;

 private:
  struct Fault {
    std::chrono::nanoseconds takes{0};
    std::optional<Error> error;  // in the end
    int times = -1;
  };

  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Fault> faults_ KEELSON_GUARDED_BY(mutex_);
  uint64_t healed_ KEELSON_GUARDED_BY(mutex_) = 0;
  size_t calls_ KEELSON_GUARDED_BY(mutex_) = 0;
};

// A transport to an API server that can be away.
class ApiSwitch : public client::Transport {  // thread safe
 public:
  ApiSwitch(std::shared_ptr<client::Transport> real, Clock& clock) : real_(std::move(real)), clock_(clock) {}
  // Connections are refused, or (`silent`) requests get no answer until they time out.
  void Off(bool silent);
  void On();
  size_t Requests() const;  // that were made, answered or not
  size_t Requests(const std::string& method, const std::string& path_part) const;

  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) override;
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override;

 private:
  Result<> Pass(const client::ApiRequest& request, std::chrono::milliseconds timeout, std::stop_token stop);

  const std::shared_ptr<client::Transport> real_;
  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool off_ KEELSON_GUARDED_BY(mutex_) = false, silent_ KEELSON_GUARDED_BY(mutex_) = false;
  size_t total_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::map<std::string, size_t> by_path_
      KEELSON_GUARDED_BY(mutex_);  // "PATCH /api/v1/...", without the query
};

// A wall clock that can be set; the steady clock is unaffected.
class SettableClock : public FakeClock {  // thread safe
 public:
  WallTime Now() const override;
  void SetForward(std::chrono::seconds by);  // or back

 private:
  mutable Mutex mutex_;
  std::chrono::seconds set_ KEELSON_GUARDED_BY(mutex_){0};
};

}  // namespace keelson::kubelet
