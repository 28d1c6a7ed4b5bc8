// /metrics/resources of kube-scheduler: what each pod asks for and is limited to, as the scheduler and the
// kubelet count it. Pods that have ended are left out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {

using PodList = std::vector<std::shared_ptr<const corev1::Pod>>;

// In Prometheus' text form.
std::string PrintPodResources(const PodList& pods);

// What the page reads. It outlives schedulers, which are there one after the other: without one it is empty.
class PodResourcesPage {  // thread safe
 public:
  void Set(std::function<PodList()> pods);  // null: there is no scheduler now
  std::string Print() const;

 private:
  mutable Mutex mutex_;
  std::function<PodList()> pods_ GUARDED_BY(mutex_);
};

}  // namespace keelson::scheduler
