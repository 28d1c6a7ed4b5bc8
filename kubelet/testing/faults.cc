#include "kubelet/testing/faults.h"

namespace keelson::kubelet {

void RuntimeFaults::Hang(const std::string& call) {
  MutexLock lock(mutex_);
  faults_[call] = {kDeadline, Error(Code::kTimeout, "Deadline Exceeded"), -1};
}

void RuntimeFaults::Slow(const std::string& call, std::chrono::milliseconds time) {
  MutexLock lock(mutex_);
  faults_[call] = {time, std::nullopt, -1};
}

void RuntimeFaults::Fail(const std::string& call, Error error, int times) {
  MutexLock lock(mutex_);
  faults_[call] = {std::chrono::nanoseconds(0), std::move(error), times};
}

void RuntimeFaults::Heal() {
  MutexLock lock(mutex_);
  faults_.clear();
  ++healed_;
  changed_.notify_all();
}

size_t RuntimeFaults::Calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

Result<> RuntimeFaults::Before(const Call& call, std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  MutexLock lock(mutex_);
  ++calls_;
  auto it = faults_.find(call.name);
  if (it == faults_.end()) it = faults_.find(call.name.substr(0, call.name.find(' ')));
  if (it == faults_.end()) it = faults_.find("");
  if (it == faults_.end() || it->second.times == 0) return {};
  if (it->second.times > 0) --it->second.times;
  const Fault fault = it->second;
  const uint64_t healed = healed_;
  const SteadyTime end = clock_.SteadyNow() + fault.takes;
  while (clock_.SteadyNow() < end && healed == healed_) {
    if (stop.stop_requested()) return Error(Code::kCancelled, "cancelled");
    clock_.WaitUntil(mutex_, changed_, end);
  }
  if (fault.error && (healed == healed_ || fault.takes.count() == 0)) return *fault.error;
  return {};
}

void ApiSwitch::Off(bool silent) {
  MutexLock lock(mutex_);
  off_ = true;
  silent_ = silent;
}

void ApiSwitch::On() {
  MutexLock lock(mutex_);
  off_ = false;
  changed_.notify_all();
}

size_t ApiSwitch::Requests() const {
  MutexLock lock(mutex_);
  return total_;
}

size_t ApiSwitch::Requests(const std::string& method, const std::string& path_part) const {
  MutexLock lock(mutex_);
  size_t out = 0;
  for (const auto& [path, count] : by_path_) {
    if (path.compare(0, method.size(), method) == 0 && path.find(path_part) != std::string::npos) {
      out += count;
    }
  }
  return out;
}

Result<> ApiSwitch::Pass(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                         std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  MutexLock lock(mutex_);
  ++total_;
  ++by_path_[request.method + " " + request.target.substr(0, request.target.find('?'))];
  if (!off_) return {};
  if (!silent_) return Error(Code::kUnavailable, "connection refused");
  const SteadyTime end = clock_.SteadyNow() + timeout;
  while (off_ && !stop.stop_requested() && clock_.SteadyNow() < end) clock_.WaitUntil(mutex_, changed_, end);
  if (stop.stop_requested()) return Error(Code::kCancelled, "cancelled");
  if (!off_) return {};
  return Error(Code::kTimeout, "no answer");
}

Result<client::ApiResponse> ApiSwitch::Do(const client::ApiRequest& request,
                                          std::chrono::milliseconds timeout, std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(Pass(request, timeout, stop));
  return real_->Do(request, timeout, stop);
}

Result<std::unique_ptr<client::ApiStream>> ApiSwitch::Open(const client::ApiRequest& request,
                                                           std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(Pass(request, std::chrono::seconds(30), stop));
  return real_->Open(request, stop);
}

WallTime SettableClock::Now() const {
  MutexLock lock(mutex_);
  return FakeClock::Now() + set_;
}

void SettableClock::SetForward(std::chrono::seconds by) {
  MutexLock lock(mutex_);
  set_ += by;
}

}  // namespace keelson::kubelet
