// Fields of features that are off in Kubernetes 1.36: dropped from requests, unless the stored object has
// them.
#pragma once

#include "lib/api/types.h"

namespace keelson::k8s {

// Drops them from `spec` of a pod or a template. `old` is null on create.
void DropDisabledFields(corev1::PodSpec& spec, const corev1::PodSpec* old);
void DropDisabledFields(appsv1::StatefulSetSpec& spec, const appsv1::StatefulSetSpec* old);

}  // namespace keelson::k8s
