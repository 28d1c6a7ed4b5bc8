// /healthz and /livez of kube-proxy, and the ports that load balancers ask whether this node has endpoints
// of a Service (spec.healthCheckNodePort).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/http/server/server.h"
#include "proxy/model/service_map.h"

namespace keelson::proxy {

// Whether the kernel follows the API. Thread safe.
class Health {
 public:
  // Unhealthy when a change has waited longer than `patience` for the kernel; healthy while starting up.
  Health(std::chrono::milliseconds patience, Clock& clock) : patience_(patience), clock_(clock) {}

  void Queued();                          // a change came
  void Synced();                          // all that came before the sync began is in the kernel
  void SetNodeEligible(bool eligible);    // false: the node is leaving, load balancers should too
  bool Live() const;                      // /livez: in time
  bool Healthy() const;                   // /healthz: in time and eligible
  std::string Describe(bool live) const;  // what /livez or /healthz answers: JSON with times in Go's form

  // Serves /healthz and /livez.
  http::Handler Handler();

 private:
  bool InTime() const REQUIRES(mutex_);
  const std::chrono::milliseconds patience_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::optional<SteadyTime> waiting_since_ GUARDED_BY(mutex_);
  std::optional<WallTime> last_synced_ GUARDED_BY(mutex_);
  bool node_eligible_ GUARDED_BY(mutex_) = true;
};

// What a health check port of the Service `key` (namespace/name) answers, as upstream writes it.
std::string HealthCheckAnswer(const std::string& key, size_t local_endpoints, bool healthy);

// One listener a healthCheckNodePort, on every address of the machine.
class HealthCheckServers {
 public:
  // Told of a Service whose port cannot be opened; it is tried again with the next change.
  using OnFailure = std::function<void(const std::string& key, const std::string& message)>;
  HealthCheckServers(const Health& health, std::string node_name, OnFailure on_failure);
  ~HealthCheckServers();
  // Opens and closes ports as needed; keys are namespace/name.
  void Sync(const std::map<std::string, HealthCheck>& wanted);

 private:
  struct Listener;
  std::unique_ptr<Listener> Open(const std::string& key, const HealthCheck& check);

  const Health& health_;
  const std::string node_name_;
  const OnFailure on_failure_;
  std::map<std::string, std::unique_ptr<Listener>> listeners_;
};

}  // namespace keelson::proxy
