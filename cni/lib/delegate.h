// Running another plugin (IPAM) from a plugin: same environment, same configuration.
#pragma once

#include <string>

#include "cni/lib/plugin.h"
#include "lib/base/fd.h"

namespace keelson::cni {

class Delegate {
 public:
  // Looks `type` up in the request's CNI_PATH and starts it with `command`.
  static Outcome<Delegate> Start(const std::string& type, const std::string& command, const Request& request);
  // Waits for its end; its error becomes ours. Call once.
  Outcome<std::string> Wait();

 private:
  Delegate(std::string type, int pid, UniqueFd output)
      : type_(std::move(type)), pid_(pid), output_(std::move(output)) {}
  std::string type_;
  int pid_;
  UniqueFd output_;
};

// Start and Wait, for verbs that answer nothing.
Outcome<> RunDelegate(const std::string& type, const std::string& command, const Request& request);

}  // namespace keelson::cni
