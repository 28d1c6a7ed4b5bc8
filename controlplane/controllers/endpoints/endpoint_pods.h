// A compact cache of the pod and Service fields that endpoints need. Each change of a Service selects among
// all pods of its namespace, so the cache avoids decoded Pods.
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
  std::optional<WallTime> ready_changed;  // last transition of the Ready condition

  bool operator==(const EndpointPod&) const = default;
};
using EndpointPodPointer = std::shared_ptr<const EndpointPod>;

// Null for a pod that is never an endpoint: finished, or without an address.
EndpointPodPointer ProjectPod(const corev1::Pod& pod);

// True when `labels` has all labels of the selector.
bool Selects(const google::protobuf::Map<std::string, std::string>& selector,
             const std::map<std::string, std::string>& labels);

// Watches pods and Services, and reports which Services a pod change affects. Shared by the EndpointSlice and
// the Endpoints controller.
class EndpointPods {  // thread safe
 public:
  explicit EndpointPods(client::InformerFactory& informers);

  // Registers a handler, which is called with the key of each Service whose endpoints may have changed. Call
  // before the informers run.
  void OnService(std::function<void(const std::string& key)> handler);

  // Returns the pods that the Service selects.
  std::vector<EndpointPodPointer> Select(const corev1::Service& service) const;

 private:
  struct ServiceSelector {
    std::string key;
    std::map<std::string, std::string> labels;
  };
  void OnPod(const client::Change<corev1::Pod>& change);
  void OnServiceChange(const client::Change<corev1::Service>& change);
  void CollectServices(const EndpointPod& pod, std::set<std::string>& keys) const KEELSON_REQUIRES(mutex_);

  std::vector<std::function<void(const std::string&)>> handlers_;
  mutable Mutex mutex_;
  // By namespace, then by name.
  std::map<std::string, std::map<std::string, EndpointPodPointer>> pods_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::map<std::string, ServiceSelector>> services_ KEELSON_GUARDED_BY(mutex_);
};

// Resolves the targetPort of a Service port on this pod; 0 when the pod has no such port.
int32_t TargetPort(const EndpointPod& pod, const corev1::ServicePort& port);

}  // namespace keelson::controllers
