// The services of a daemon, in order. main.cc lists them; the group starts each one in its own thread once
// every service it needs has reported ready, and stops them in reverse order.
//
//   ServiceGroup group;
//   group.Add({"informers", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) { ... }});
//   group.Add({"proxier", {"informers"}, ...});
//   return group.RunUntilSignal();   // SIGTERM or SIGINT
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson {

class ServiceGroup {
 public:
  using Ready = std::function<void()>;
  struct Service {
    std::string name;
    std::vector<std::string> needs;  // names of services added before
    // Runs until `stop` is requested; calls ready() once, when other services may rely on it. If it returns
    // an error, or returns before the stop, the whole group ends.
    std::function<Result<>(std::stop_token stop, Ready ready)> run;
  };

  void Add(Service service);
  // Blocks until `stop` is requested or a service ends; then stops the services in reverse order of start
  // and joins them. Returns the first failure.
  Result<> Run(std::stop_token stop);
  // Like Run(), stopped by SIGTERM and SIGINT. Call from main() before any thread exists: the signals are
  // blocked in all threads. Returns the process's exit code and logs the failure.
  int RunUntilSignal();

 private:
  std::vector<Service> services_;
};

}  // namespace keelson
