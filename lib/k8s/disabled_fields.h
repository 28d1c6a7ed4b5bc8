// Fields whose features Kubernetes 1.36 has off: dropped on the way in, unless the stored object has them.
#pragma once

#include "lib/api/types.h"

namespace keelson::k8s {

// `old` is null on create. Of pods and of templates.
void DropDisabledFields(corev1::PodSpec& spec, const corev1::PodSpec* old);
void DropDisabledFields(appsv1::StatefulSetSpec& spec, const appsv1::StatefulSetSpec* old);

}  // namespace keelson::k8s
