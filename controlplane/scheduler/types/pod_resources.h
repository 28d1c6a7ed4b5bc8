// /metrics/resources of kube-scheduler: each pod's requests and limits, as the scheduler and the kubelet count
// them. Pods that have ended are left out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {

using PodList = std::vector<std::shared_ptr<const corev1::Pod>>;

// The page, in Prometheus' text format.
std::string PrintPodResources(const PodList& pods);

// The source of the page. It outlives the scheduler, which may run several times; without one the page is empty.
class PodResourcesPage {  // thread safe
 public:
  void Set(std::function<PodList()> pods);  // null: no scheduler runs
  std::string Print() const;

 private:
  mutable Mutex mutex_;
  std::function<PodList()> pods_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::scheduler
