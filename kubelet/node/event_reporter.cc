#include "kubelet/node/event_reporter.h"

#include <algorithm>

namespace keelson::kubelet {

void EventReporter::Pod(const corev1::Pod& pod, const std::string& container, const std::string& type,
                        const std::string& reason, const std::string& message) {
  if (standalone_ || pod.spec().containers().empty()) return;  // the latter: only the runtime knows it
  corev1::ObjectReference reference;
  reference.set_kind("Pod");
  reference.set_api_version("v1");
  reference.set_namespace_(pod.metadata().namespace_());
  reference.set_name(pod.metadata().name());
  reference.set_uid(pod.metadata().uid());
  reference.set_resource_version(pod.metadata().resource_version());
  if (!container.empty()) {
    const auto& init = pod.spec().init_containers();
    bool is_init =
        std::any_of(init.begin(), init.end(), [&](const auto& item) { return item.name() == container; });
    reference.set_field_path(std::string(is_init ? "spec.initContainers{" : "spec.containers{") + container +
                             "}");
  }
  recorder_.Record(reference, type, reason, message);
}

void EventReporter::Claim(const corev1::PersistentVolumeClaim& claim, const std::string& type,
                          const std::string& reason, const std::string& message) {
  if (standalone_) return;
  corev1::ObjectReference reference;
  reference.set_kind("PersistentVolumeClaim");
  reference.set_api_version("v1");
  reference.set_namespace_(claim.metadata().namespace_());
  reference.set_name(claim.metadata().name());
  reference.set_uid(claim.metadata().uid());
  reference.set_resource_version(claim.metadata().resource_version());
  recorder_.Record(reference, type, reason, message);
}

void EventReporter::Node(const std::string& type, const std::string& reason, const std::string& message) {
  if (standalone_) return;
  corev1::ObjectReference reference;
  reference.set_kind("Node");
  reference.set_name(node_);
  reference.set_uid(node_);  // as upstream: tools look for events by it
  recorder_.Record(reference, type, reason, message);
}

}  // namespace keelson::kubelet
