// Tells kubelets by an annotation for how many seconds they may go on with Secrets and ConfigMaps that they
// have read (those that poll instead of watching): the more nodes there are, the longer.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

inline constexpr char kTtlAnnotation[] = "node.alpha.kubernetes.io/ttl";

// Follows the number of nodes. What it goes up at is more than what it comes down at, so that nodes that come
// and go change nothing.
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
  // A node hears of a new time at its next change, which its kubelet's reports are: never all at once.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  client::RestClient api_;
  client::Informer<corev1::Node>& nodes_;
  Mutex mutex_;
  int count_ GUARDED_BY(mutex_) = 0, seconds_ GUARDED_BY(mutex_) = 0;
  TtlBySize by_size_ GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
