// What a daemon consists of, in order. main.cc lists services; the group starts each one in a thread of
// its own once all that it needs have said that they are ready, and stops them in reverse.
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
    // Runs until `stop` is requested; calls ready() once, when others may rely on it. Returning an
    // error, or returning at all before the stop, ends the whole group.
    std::function<Result<>(std::stop_token stop, Ready ready)> run;
  };

  void Add(Service service);
  // Blocks until `stop`, or until a service ends; then stops the services in reverse order of start
  // and joins them. The first failure is returned.
  Result<> Run(std::stop_token stop);
  // The same, with SIGTERM and SIGINT as the stop. Call from main() before any thread exists (the
  // signals are blocked in all threads). Returns the process's exit code and logs the failure.
  int RunUntilSignal();

 private:
  std::vector<Service> services_;
};

}  // namespace keelson
