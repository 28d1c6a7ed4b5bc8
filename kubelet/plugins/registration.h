// Client of a plugin's registration service (pluginregistration v1).
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

struct PluginInfo {
  std::string type, name;
  std::string endpoint;  // empty: the registration socket
  std::vector<std::string> versions;
};

class PluginRegistration {
 public:
  // kTimeout after 10 s.
  static Result<std::unique_ptr<PluginRegistration>> Dial(const std::string& socket, std::stop_token stop);
  ~PluginRegistration();
  Result<PluginInfo> GetInfo(std::stop_token stop);
  // NotifyRegistrationStatus: whether the plugin is registered, and why not.
  Result<> Notify(bool registered, const std::string& error, std::stop_token stop);

 private:
  struct Impl;
  explicit PluginRegistration(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet
