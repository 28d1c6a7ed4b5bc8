#include "kubelet/cm/devices/testing/fake_plugin.h"

#include <cstdlib>

#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet::devices {

corev1::Pod DevicePod(const std::string& uid, const std::vector<std::pair<std::string, int>>& amounts) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_uid(uid);
  pod.mutable_metadata()->set_name(uid);
  pod.mutable_metadata()->set_namespace_("default");
  for (const auto& [name, amount] : amounts) {
    bool sidecar = name.starts_with("sidecar");
    auto* container = sidecar || name.starts_with("init") ? pod.mutable_spec()->add_init_containers()
                                                          : pod.mutable_spec()->add_containers();
    container->set_name(name);
    if (sidecar) container->set_restart_policy("Always");
    for (auto* list : {container->mutable_resources()->mutable_limits(),
                       container->mutable_resources()->mutable_requests()}) {
      (*list)["example.com/dev"].set_string(std::to_string(amount));
    }
  }
  return pod;
}

const corev1::Container& ContainerOf(const corev1::Pod& pod, const std::string& name) {
  const corev1::Container* container = k8s::FindContainer(pod.spec(), name);
  if (!container) std::abort();
  return *container;
}

DeviceMap Devices(const std::vector<std::string>& list) {
  DeviceMap out;
  for (std::string text : list) {
    Device device{true, std::nullopt};
    if (text.starts_with("!")) {
      device.healthy = false;
      text.erase(0, 1);
    }
    auto colon = text.find(':');
    if (colon != std::string::npos) {
      device.nodes.emplace();
      for (char c : text.substr(colon + 1)) {
        if (c != ',') device.nodes->push_back(c - '0');
      }
    }
    out[text.substr(0, colon)] = std::move(device);
  }
  return out;
}

}  // namespace keelson::kubelet::devices
