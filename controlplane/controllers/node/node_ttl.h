// Sets the annotation with the seconds for which a kubelet may cache Secrets and ConfigMaps (kubelets that
// poll instead of watching). It grows with the number of nodes.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

inline constexpr char kTtlAnnotation[] = "node.alpha.kubernetes.io/ttl";

// Maps the number of nodes to seconds, with hysteresis: the thresholds upwards are higher than those
// downwards.
class TtlBySize {
 public:
  int Seconds(int nodes);

 private:
  size_t step_ = 0;
};

class NodeTtlController : public Controller {
 public:
  NodeTtlController(client::RestClient api, client::InformerFactory& informers, client::EventRecorder&,
                    Clock& clock);
  // A node gets a new value at its next update, so that not all nodes change at once.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<corev1::Node>& nodes_;
  Mutex mutex_;
  int count_ KEELSON_GUARDED_BY(mutex_) = 0, seconds_ KEELSON_GUARDED_BY(mutex_) = 0;
  TtlBySize by_size_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
