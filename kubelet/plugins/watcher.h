// The plugin watcher: finds plugins by their sockets below <root-dir>/plugins_registry, and registers each with the
// handler of its type.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "kubelet/plugins/handler.h"
#include "kubelet/plugins/registration.h"
#include "lib/base/mutex.h"
#include "lib/client/workqueue.h"

namespace keelson::kubelet {

class PluginWatcher {
 public:
  using Handlers = std::map<std::string, PluginHandler*>;  // by type; they outlive the watcher
  PluginWatcher(std::string dir, Handlers handlers, Clock& clock = Clock::Real());

  // Runs until `stop`; calls `ready` once it watches. Retries failed registrations with back-off, 0.5 s to 2 minutes,
  // while the socket exists. Plugins stay registered when it stops.
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  struct Registered {
    uint64_t appearance = 0;
    PluginHandler* handler = nullptr;
    std::string name, endpoint;
  };

  void Appeared(const std::string& socket);
  void Disappeared(const std::string& socket);
  // Registers or deregisters, to match the sockets.
  Result<> Reconcile(const std::string& socket, std::stop_token stop);
  Result<> Register(const std::string& socket, uint64_t appearance, std::stop_token stop);
  Result<> Take(PluginInfo info, const std::string& socket, uint64_t appearance, std::stop_token stop);

  const std::string dir_;
  const Handlers handlers_;
  client::WorkQueue queue_;  // of sockets' paths
  Mutex mutex_;
  uint64_t appearances_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::map<std::string, uint64_t> present_ KEELSON_GUARDED_BY(mutex_);  // by socket: which appearance
  std::map<std::string, Registered> registered_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
