#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {

namespace {

ValidationSettings& Mutable() {
  static ValidationSettings settings;
  return settings;
}

}  // namespace

ValidationSettings ValidationSettingsOf(const FeatureGates& gates) {
  return {.relaxed_service_names = FeatureEnabled(gates, "RelaxedServiceNameValidation"),
          .autoscale_to_zero = FeatureEnabled(gates, "HPAScaleToZero"),
          .mutable_volume_node_affinity = FeatureEnabled(gates, "MutablePVNodeAffinity"),
          .container_stop_signals = FeatureEnabled(gates, "ContainerStopSignals")};
}

const ValidationSettings& Settings() { return Mutable(); }

void SetValidationSettings(const ValidationSettings& settings) { Mutable() = settings; }

}  // namespace keelson::k8s
