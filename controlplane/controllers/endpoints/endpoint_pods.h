// The few facts of pods and Services that endpoints are made of, kept for all of them: compact, because a
// Service must find its pods among all of its namespace at every change.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/client/informer.h"

namespace keelson::controllers {

struct EndpointPod {
  std::string ns, name, uid, node, hostname, subdomain;
  std::map<std::string, std::string> labels;
  std::vector<std::string> ips;
  struct Port {
    std::string name, protocol;
    int32_t number;
    bool operator==(const Port&) const = default;
  };
  std::vector<Port> ports;  // named ports of containers and sidecars
  bool ready = false, terminating = false;
  std::optional<WallTime> ready_changed;  // when it became ready or ceased to be

  bool operator==(const EndpointPod&) const = default;
};
using EndpointPodPointer = std::shared_ptr<const EndpointPod>;

// Null for pods that are never endpoints: finished, or without an address.
EndpointPodPointer ProjectPod(const corev1::Pod& pod);

// All labels of the selector are there with these values.
bool Selects(const google::protobuf::Map<std::string, std::string>& selector,
             const std::map<std::string, std::string>& labels);

// Follows pods and Services, and says which Services a change of a pod concerns. Shared by the EndpointSlice
// and the Endpoints controller.
class EndpointPods {  // thread safe
 public:
  explicit EndpointPods(client::InformerFactory& informers);

  // Before the informers run: called with the keys of Services whose endpoints may have changed.
  void OnService(std::function<void(const std::string& key)> handler);

  // The pods that a Service selects.
  std::vector<EndpointPodPointer> Select(const corev1::Service& service) const;

 private:
  struct ServiceSelector {
    std::string key;
    std::map<std::string, std::string> labels;
  };
  void OnPod(const client::Change<corev1::Pod>& change);
  void OnServiceChange(const client::Change<corev1::Service>& change);
  void CollectServices(const EndpointPod& pod, std::set<std::string>& keys) const REQUIRES(mutex_);

  std::vector<std::function<void(const std::string&)>> handlers_;
  mutable Mutex mutex_;
  // By namespace, then by name.
  std::map<std::string, std::map<std::string, EndpointPodPointer>> pods_ GUARDED_BY(mutex_);
  std::map<std::string, std::map<std::string, ServiceSelector>> services_ GUARDED_BY(mutex_);
};

// targetPort of a Service's port on this pod; 0 when the pod has no such port.
int32_t TargetPort(const EndpointPod& pod, const corev1::ServicePort& port);

}  // namespace keelson::controllers
