// /healthz and /livez of kube-proxy, and the servers on spec.healthCheckNodePort, where load balancers ask
// whether this node has endpoints of a Service.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/http/server/server.h"
#include "proxy/model/service_change_tracker.h"

namespace keelson::proxy {

// Tells whether the kernel follows the API in time. Thread safe.
class Health {
 public:
  // Unhealthy when a change has not been in the kernel after `patience`; healthy while starting up.
  Health(std::chrono::milliseconds patience, Clock& clock) : patience_(patience), clock_(clock) {}

  void Queued();                          // a change came
  void Synced();                          // all that came before the sync began is in the kernel
  void SetNodeEligible(bool eligible);    // false: the node is leaving, load balancers should too
  bool Live() const;                      // /livez: in time
  bool Healthy() const;                   // /healthz: in time and eligible
  std::string Describe(bool live) const;  // the body of /livez or /healthz: JSON with times in Go's form

  // Serves /healthz and /livez.
  http::Handler Handler();

 private:
  bool InTime() const KEELSON_REQUIRES(mutex_);
  const std::chrono::milliseconds patience_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::optional<SteadyTime> waiting_since_ KEELSON_GUARDED_BY(mutex_);
  std::optional<WallTime> last_synced_ KEELSON_GUARDED_BY(mutex_);
  bool node_eligible_ KEELSON_GUARDED_BY(mutex_) = true;
};

// The body that a healthCheckNodePort answers with, as upstream's. `key`: the Service's namespace/name.
std::string HealthCheckAnswer(const std::string& key, size_t local_endpoints, bool healthy);

// Serves every healthCheckNodePort on all addresses of the machine. Not thread safe.
class HealthCheckServers {
 public:
  // Called with a Service whose port cannot be opened. The next Sync() tries again.
  using OnFailure = std::function<void(const std::string& key, const std::string& message)>;
  HealthCheckServers(const Health& health, std::string node_name, OnFailure on_failure);
  ~HealthCheckServers();
  // Opens and closes ports as needed; keys are namespace/name.
  void Sync(const std::map<std::string, HealthCheckNodePort>& wanted);

 private:
  struct Listener;
  std::unique_ptr<Listener> Open(const std::string& key, const HealthCheckNodePort& check);

  const Health& health_;
  const std::string node_name_;
  const OnFailure on_failure_;
  std::map<std::string, std::unique_ptr<Listener>> listeners_;
};

}  // namespace keelson::proxy
