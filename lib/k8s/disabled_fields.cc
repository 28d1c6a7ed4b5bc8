#include "lib/k8s/disabled_fields.h"

#include <algorithm>

#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {

namespace {

bool HasBundle(const corev1::PodSpec* spec) {
  if (!spec) return false;
  for (const corev1::Volume& volume : spec->volumes()) {
    for (const corev1::VolumeProjection& source : volume.volume_source().projected().sources()) {
      if (source.has_cluster_trust_bundle()) return true;
    }
  }
  return false;
}

void ClearBundles(corev1::PodSpec& spec) {
  for (corev1::Volume& volume : *spec.mutable_volumes()) {
    if (!volume.volume_source().has_projected()) continue;
    auto& sources = *volume.mutable_volume_source()->mutable_projected()->mutable_sources();
    for (corev1::VolumeProjection& source : sources) source.clear_cluster_trust_bundle();
  }
}

bool HasStopSignal(const corev1::PodSpec* spec) {
  if (!spec) return false;
  const auto has = [](const corev1::Container& container) { return container.lifecycle().has_stop_signal(); };
  return std::any_of(spec->containers().begin(), spec->containers().end(), has) ||
         std::any_of(spec->init_containers().begin(), spec->init_containers().end(), has);
}

void ClearStopSignals(corev1::PodSpec& spec) {
  for (auto* containers : {spec.mutable_containers(), spec.mutable_init_containers()}) {
    for (corev1::Container& container : *containers) {
      if (!container.lifecycle().has_stop_signal()) continue;
      corev1::Lifecycle& lifecycle = *container.mutable_lifecycle();
      lifecycle.clear_stop_signal();
      if (!lifecycle.has_post_start() && !lifecycle.has_pre_stop()) container.clear_lifecycle();
    }
  }
}

}  // namespace

void DropDisabledFields(corev1::PodSpec& spec, const corev1::PodSpec* old) {
  // ClusterTrustBundles are beta, and not served.
  if (HasBundle(&spec) && !HasBundle(old)) ClearBundles(spec);
  // ContainerStopSignals is alpha.
  if (!Settings().container_stop_signals && HasStopSignal(&spec) && !HasStopSignal(old)) {
    ClearStopSignals(spec);
  }
  // GenericWorkload is alpha.
  if (spec.has_scheduling_group() && !(old && old->has_scheduling_group())) spec.clear_scheduling_group();
}

void DropDisabledFields(appsv1::StatefulSetSpec& spec, const appsv1::StatefulSetSpec* old) {
  // MaxUnavailableStatefulSet is beta, and off again since 1.35.4.
  const bool used = old && old->update_strategy().rolling_update().has_max_unavailable();
  if (!used && spec.update_strategy().rolling_update().has_max_unavailable()) {
    spec.mutable_update_strategy()->mutable_rolling_update()->clear_max_unavailable();
  }
}

}  // namespace keelson::k8s
