#include "kubelet/pod/termination_order.h"

#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

TerminationOrdering::TerminationOrdering(const corev1::PodSpec& spec, const std::set<std::string>& running,
                                         Clock& clock)
    : clock_(clock) {
  std::set<std::string> later;
  for (const auto& container : spec.containers()) {
    if (running.count(container.name())) later.insert(container.name());
  }
  for (int i = spec.init_containers_size() - 1; i >= 0; --i) {
    const corev1::Container& container = spec.init_containers(i);
    if (k8s::IsSidecar(container)) before_[container.name()] = later;
    if (running.count(container.name())) later.insert(container.name());
  }
}

void TerminationOrdering::WaitForTurn(const std::string& container, std::chrono::seconds most,
                                      std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  SteadyTime until = clock_.SteadyNow() + most;
  MutexLock lock(mutex_);
  auto before = before_.find(container);
  if (before == before_.end()) return;
  while (!before->second.empty() && !stop.stop_requested() && clock_.SteadyNow() < until) {
    clock_.WaitUntil(mutex_, changed_, until);
  }
}

void TerminationOrdering::ContainerTerminated(const std::string& container) {
  MutexLock lock(mutex_);
  for (auto& [name, before] : before_) before.erase(container);
  changed_.notify_all();
}

}  // namespace keelson::kubelet
