#include "controlplane/scheduler/types/pod_resources.h"

#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/metrics/kubernetes_metrics.h"
#include "lib/metrics/metrics.h"

namespace keelson::scheduler {

namespace {

std::string UnitOf(std::string_view resource) {
  if (resource == "cpu") return "cores";
  if (resource == "memory" || resource == "storage" || resource == "ephemeral-storage" ||
      k8s::IsHugePages(resource)) {
    return "bytes";
  }
  return resource.starts_with("attachable-volumes-") ? "integer" : "";
}

metrics::Family MakeFamily(const std::string& name, const std::string& what) {
  const std::string help =
      what +
      " for default_selectors on the cluster, broken down by pod. This shows the resource usage "
      "the scheduler and kubelet expect per pod for resources along with the unit for the "
      "resource if any.";
  return {metrics::Type::kGauge,
          name,
          metrics::HelpWithStability(name, help),
          {"namespace", "pod", "node", "scheduler", "priority", "resource", "unit"},
          {}};
}

void Tell(const corev1::Pod& pod, const k8s::ResourceList& amounts, metrics::Family& family) {
  const corev1::PodSpec& spec = pod.spec();
  for (const auto& [resource, amount] : amounts) {
    if (amount == api::Amount()) continue;
    family
        .With({pod.metadata().namespace_(), pod.metadata().name(), spec.node_name(), spec.scheduler_name(),
               spec.has_priority() ? std::to_string(spec.priority()) : "", resource, UnitOf(resource)})
        .Set(amount.ToDouble());
  }
}

}  // namespace

std::string PrintPodResources(const PodList& pods) {
  metrics::Family limits = MakeFamily("kube_pod_resource_limit", "Resources limit"),
                  requests = MakeFamily("kube_pod_resource_request", "Resources requested");
  for (const auto& pod : pods) {
    if (!pod->spec().node_name().empty() && k8s::IsTerminal(*pod)) continue;
    Tell(*pod, k8s::PodLimits(*pod), limits);
    Tell(*pod, k8s::PodRequests(*pod), requests);
  }
  std::string out;
  limits.Print(out);
  requests.Print(out);
  return out;
}

void PodResourcesPage::Set(std::function<PodList()> pods) {
  MutexLock lock(mutex_);
  pods_ = std::move(pods);
}

std::string PodResourcesPage::Print() const {
  MutexLock lock(mutex_);
  return PrintPodResources(pods_ ? pods_() : PodList());
}

}  // namespace keelson::scheduler
