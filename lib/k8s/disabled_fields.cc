#include "lib/k8s/disabled_fields.h"

namespace keelson::k8s {

namespace {

using Has = bool (corev1::VolumeProjection::*)() const;

bool AnySource(const corev1::PodSpec* spec, Has has) {
  if (!spec) return false;
  for (const corev1::Volume& volume : spec->volumes()) {
    for (const corev1::VolumeProjection& source : volume.volume_source().projected().sources()) {
      if ((source.*has)()) return true;
    }
  }
  return false;
}

void ClearSources(corev1::PodSpec& spec, void (corev1::VolumeProjection::*clear)()) {
  for (corev1::Volume& volume : *spec.mutable_volumes()) {
    if (!volume.volume_source().has_projected()) continue;
    auto& sources = *volume.mutable_volume_source()->mutable_projected()->mutable_sources();
    for (corev1::VolumeProjection& source : sources) (source.*clear)();
  }
}

}  // namespace

void DropDisabledFields(corev1::PodSpec& spec, const corev1::PodSpec* old) {
  // ClusterTrustBundleProjection and PodCertificateRequest are beta, off by default.
  const std::pair<Has, void (corev1::VolumeProjection::*)()> sources[] = {
      {&corev1::VolumeProjection::has_cluster_trust_bundle,
       &corev1::VolumeProjection::clear_cluster_trust_bundle},
      {&corev1::VolumeProjection::has_pod_certificate, &corev1::VolumeProjection::clear_pod_certificate}};
  for (const auto& [has, clear] : sources) {
    if (AnySource(&spec, has) && !AnySource(old, has)) ClearSources(spec, clear);
  }
  // GenericWorkload is alpha.
  if (spec.has_scheduling_group() && !(old && old->has_scheduling_group())) spec.clear_scheduling_group();
}

}  // namespace keelson::k8s
