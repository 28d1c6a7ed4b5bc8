// Status changes of a pod by other components than its kubelet. They are patches, so that concurrent updates
// of the kubelet survive.
#pragma once

#include "lib/client/rest.h"

namespace keelson::controllers {

struct PodStatusPatch {
  std::string_view phase;              // empty: unchanged
  std::string_view reason, message;    // of the condition
  std::string_view disruption_target;  // status of the condition DisruptionTarget; empty: unchanged
};
// Patches the status subresource. Does nothing when the pod has that status already. kNotFound when the pod
// is gone or a new pod has its name.
Result<> PatchPodStatus(const client::RestClient& api, const corev1::Pod& pod, const PodStatusPatch& mark,
                        WallTime now);

}  // namespace keelson::controllers
