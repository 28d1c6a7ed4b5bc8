// A client that reads a ConfigMap at a steady pace while other clients work.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/bench/extensions_faults.h"
#include "tests/bench/fault.h"

namespace keelson::bench {

inline constexpr char kBystander[] = "/api/v1/namespaces/default/configmaps/bystander";

// Milliseconds of each read.
Result<std::vector<double>> ReadBystander(const LoadClient& client, const FaultOptions& options);

double Percentile(std::vector<double> times, double part);

// Calls from several threads, each on a connection of its own, until it is destroyed.
class Background {
 public:
  Background(const LoadClient& client, const Fault& fault, const std::function<Call(int round)>& make);
  // Responses so far, by status; 0: none.
  std::map<int, int> Statuses() const;

 private:
  void Work(std::stop_token stop, const LoadClient& client, const Fault& fault,
            const std::function<Call(int round)>& make, int first);

  mutable std::mutex mutex_;
  std::condition_variable_any ended_;
  std::map<int, int> statuses_;
  std::vector<std::jthread> threads_;  // last: they use the rest
};

}  // namespace keelson::bench
