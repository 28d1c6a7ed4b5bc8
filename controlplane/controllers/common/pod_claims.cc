#include "controlplane/controllers/common/pod_claims.h"

#include "lib/api/meta.h"

namespace keelson::controllers {

const char kByClaim[] = "claim";

std::string EphemeralClaimName(const corev1::Pod& pod, const corev1::Volume& volume) {
  return pod.metadata().name() + "-" + volume.name();
}

std::vector<std::string> ClaimsOf(const corev1::Pod& pod) {
  std::vector<std::string> keys;
  const std::string& ns = pod.metadata().namespace_();
  for (const corev1::Volume& volume : pod.spec().volumes()) {
    const auto& source = volume.volume_source();
    if (source.has_persistent_volume_claim()) {
      keys.push_back(api::KeyOf(ns, source.persistent_volume_claim().claim_name()));
    }
    if (source.has_ephemeral()) keys.push_back(api::KeyOf(ns, EphemeralClaimName(pod, volume)));
  }
  return keys;
}

}  // namespace keelson::controllers
