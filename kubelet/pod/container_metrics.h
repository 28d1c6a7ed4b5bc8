// kubelet_started_containers_total and kubelet_started_containers_errors_total.
#pragma once

#include <string>

#include "lib/api/types.h"

namespace keelson::kubelet {

void CountContainerStart(const corev1::PodSpec& spec, const std::string& container);
// `code`: the reason that the container's status gives.
void CountContainerFailure(const corev1::PodSpec& spec, const std::string& container,
                           const std::string& code);

}  // namespace keelson::kubelet
