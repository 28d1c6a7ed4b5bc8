// Flags and feature gates that change validation, for the whole process.
#pragma once

#include "lib/k8s/feature_gates.h"

namespace keelson::k8s {

struct ValidationSettings {
  bool allow_privileged = true;               // --allow-privileged: privileged and host process containers
  bool relaxed_service_names = true;          // gate RelaxedServiceNameValidation
  bool autoscale_to_zero = false;             // gate HPAScaleToZero
  bool mutable_volume_node_affinity = false;  // gate MutablePVNodeAffinity
  bool container_stop_signals = false;        // gate ContainerStopSignals; off drops the field
};

// The default settings with these gates applied.
ValidationSettings ValidationSettingsOf(const FeatureGates& gates);

// The settings in use.
const ValidationSettings& Settings();
// Call at start, before other threads validate.
void SetValidationSettings(const ValidationSettings& settings);

// For tests: settings for the lifetime of this object.
class ScopedValidationSettings {
 public:
  explicit ScopedValidationSettings(const ValidationSettings& settings) : before_(Settings()) {
    SetValidationSettings(settings);
  }
  ~ScopedValidationSettings() { SetValidationSettings(before_); }
  ScopedValidationSettings(const ScopedValidationSettings&) = delete;
  ScopedValidationSettings& operator=(const ScopedValidationSettings&) = delete;

 private:
  ValidationSettings before_;
};

}  // namespace keelson::k8s
