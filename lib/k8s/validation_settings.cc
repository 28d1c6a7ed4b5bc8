#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {

namespace {

ValidationSettings& Mutable() {
  static ValidationSettings settings;
  return settings;
}

}  // namespace

const ValidationSettings& Settings() { return Mutable(); }

void SetValidationSettings(const ValidationSettings& settings) { Mutable() = settings; }

}  // namespace keelson::k8s
