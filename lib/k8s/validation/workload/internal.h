// Internal to lib/k8s/validation/workload: rules that controllers of pods share.
#pragma once

#include "lib/k8s/int_or_string.h"
#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

// Requires restartPolicy Always and no deadline. `kind` goes into the error.
void CheckRunsForever(const corev1::PodTemplateSpec& object, std::string_view kind, const Path& path,
                      FieldErrors& errors);
// Requires a selector that is not empty.
void CheckWorkloadSelector(bool present, const metav1::LabelSelector& selector, std::string_view kind,
                           const Path& path, FieldErrors& errors);
// Requires that the selector matches the template's pods; an absent one matches nothing.
void CheckSelects(bool present, const metav1::LabelSelector& selector, const corev1::PodTemplateSpec& object,
                  const Path& path, FieldErrors& errors);

bool IsZero(const intstr::IntOrString& value);
// A number, or a percentage up to 100.
void CheckAtMostAll(const intstr::IntOrString& value, const Path& path, FieldErrors& errors);
FieldError InvalidIntOrString(const Path& path, const intstr::IntOrString& value, std::string_view detail);

// ---- status ----
struct Counter {
  std::string_view field;
  int64_t value;
};
void CheckCounters(std::initializer_list<Counter> counters, const Path& path, FieldErrors& errors);
// No counter may exceed `limit`, whose name is `name`.
void CheckBelow(std::initializer_list<Counter> counters, int64_t limit, std::string_view name,
                const Path& path, FieldErrors& errors);
template <typename Status>
void CheckCollisions(const Status& status, const Status& old, const Path& path, FieldErrors& errors) {
  if (!old.has_collision_count()) return;
  if (status.has_collision_count() && status.collision_count() >= old.collision_count()) return;
  errors.push_back(
      Invalid(path.Child("collisionCount"), int64_t{status.collision_count()}, "cannot be decremented"));
}

}  // namespace keelson::k8s
