// What others than its kubelet write into a pod's status: a patch, so that nothing that the kubelet says at
// the same time is lost.
#pragma once

#include "lib/client/rest.h"

namespace keelson::controllers {

struct PodMark {
  std::string_view phase;            // empty: it stays
  std::string_view reason, message;  // of the condition
  std::string_view disrupted;        // status of the condition DisruptionTarget; empty: it stays
};
// NotFound when the pod has gone, or another has its name.
Result<> MarkPod(const client::RestClient& api, const corev1::Pod& pod, const PodMark& mark, WallTime now);

}  // namespace keelson::controllers
