#include "kubelet/objects/pod_references.h"

#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

void PodReferences::SetPod(const corev1::Pod& pod) {
  std::set<Reference> now;
  const std::string& ns = pod.metadata().namespace_();
  for (const std::string& name : k8s::ReferencedConfigMaps(pod.spec())) now.insert({0, ns, name});
  for (const std::string& name : k8s::ReferencedSecrets(pod.spec())) now.insert({1, ns, name});
  Replace(pod.metadata().uid(), std::move(now));
}

void PodReferences::RemovePod(const std::string& uid) { Replace(uid, {}); }

void PodReferences::Replace(const std::string& uid, std::set<Reference> now) {
  MutexLock lock(mutex_);
  std::set<Reference> before = std::exchange(by_pod_[uid], now);
  if (now.empty()) by_pod_.erase(uid);
  for (const Reference& reference : now) {
    if (before.count(reference)) continue;
    ++pods_[reference];
    stores_[reference.store]->AddReference(reference.ns, reference.name);
  }
  for (const Reference& reference : before) {
    if (now.count(reference) || --pods_[reference] > 0) continue;
    pods_.erase(reference);
    stores_[reference.store]->DeleteReference(reference.ns, reference.name);
  }
}

}  // namespace keelson::kubelet
