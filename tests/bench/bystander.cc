#include "tests/bench/bystander.h"

#include <algorithm>
#include <atomic>

#include "lib/base/clock.h"

namespace keelson::bench {
namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

Result<std::vector<double>> ReadBystander(const LoadClient& client, const FaultOptions& options) {
  const auto readers = static_cast<size_t>(options.readers);
  const auto pace = std::chrono::microseconds(1'000'000 * options.readers / options.gets_a_second);
  std::vector<std::vector<double>> times(readers);
  std::vector<Result<>> outcomes(readers);
  std::vector<std::jthread> threads;
  for (size_t reader = 0; reader < readers; ++reader) {
    threads.emplace_back([&, reader] {
      const Result<std::unique_ptr<http::Client>> connection = client.Connect();
      if (!connection) {
        outcomes[reader] = connection.error();
        return;
      }
      const http::ClientRequest request = client.Request("GET", kBystander, "");
      SteadyTime due = SteadyTime::clock::now() + pace * static_cast<int>(reader) / options.readers;
      for (int i = 0; i < options.gets / options.readers; ++i, due += pace) {
        std::this_thread::sleep_until(due);
        const SteadyTime begin = SteadyTime::clock::now();
        const Result<http::ClientResponse> got = (*connection)->Do(request, kPatience);
        if (!got || got->status != 200) {
          outcomes[reader] = got ? Error(Code::kInternal, got->body) : got.error();
          return;
        }
        const SteadyTime end = SteadyTime::clock::now();
        times[reader].push_back(std::chrono::duration<double, std::milli>(end - begin).count());
        due = std::max(due, end - pace);
      }
    });
  }
  threads.clear();
  std::vector<double> all;
  for (size_t reader = 0; reader < readers; ++reader) {
    KEELSON_RETURN_IF_ERROR(outcomes[reader]);
    // The first request makes the connection.
    if (!times[reader].empty()) all.insert(all.end(), times[reader].begin() + 1, times[reader].end());
  }
  return all;
}

double Percentile(std::vector<double> times, double part) {
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  return times[std::min(times.size() - 1, static_cast<size_t>(part * static_cast<double>(times.size())))];
}

Background::Background(const LoadClient& client, const Fault& fault,
                       const std::function<Call(int round)>& make) {
  for (int i = 0; i < fault.threads; ++i) {
    threads_.emplace_back([this, &client, &fault, &make, i](std::stop_token stop) {
      Work(std::move(stop), client, fault, make, i);
    });
  }
}

void Background::Work(std::stop_token stop, const LoadClient& client, const Fault& fault,
                      const std::function<Call(int round)>& make, int first) {
  // Rounds of different measurements name different objects.
  static std::atomic<int> measurements{0};
  constexpr int kRounds = 1 << 16;
  const Result<std::unique_ptr<http::Client>> connection = client.Connect();
  if (!connection) return;
  SteadyTime due = SteadyTime::clock::now() + fault.period * first / fault.threads;
  const int base = measurements.fetch_add(1) * kRounds;
  for (int round = base + first; !stop.stop_requested(); round += Fault::kThreads) {
    {
      std::unique_lock lock(mutex_);
      ended_.wait_until(lock, stop, due, [] { return false; });
    }
    if (stop.stop_requested()) return;
    Call call = make(round);
    const Result<http::ClientResponse> got =
        (*connection)->Do(client.Request(call.method, call.path, Json(call.body)), kPatience, stop);
    due = std::max(due + fault.period, SteadyTime::clock::now());
    std::lock_guard lock(mutex_);
    ++statuses_[got ? got->status : 0];
  }
}

std::map<int, int> Background::Statuses() const {
  std::lock_guard lock(mutex_);
  return statuses_;
}

}  // namespace keelson::bench
