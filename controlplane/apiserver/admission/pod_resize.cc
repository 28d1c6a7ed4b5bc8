// PodResizeValidator: rejects a resize that exceeds the node's allocatable resources.
#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::apiserver {
namespace {

// "cpu, requested: 4000, allocatable: 2000; memory, ...": milli-CPUs and bytes. Empty: it fits an empty node.
std::string Excess(const corev1::Pod& pod, const corev1::Node& node) {
  const k8s::ResourceList requests = k8s::PodRequests(pod);
  const k8s::ResourceList allocatable = k8s::ToResourceList(node.status().allocatable());
  std::string excess;
  for (std::string_view name : {"cpu", "memory"}) {
    const api::Amount wanted = k8s::AmountOf(requests, name), there = k8s::AmountOf(allocatable, name);
    if (wanted <= there) continue;
    auto figure = [&](const api::Amount& of) { return name == "cpu" ? of.MilliValue() : of.Value(); };
    excess += fmt::format("{}{}, requested: {}, allocatable: {}", excess.empty() ? "" : "; ", name,
                          figure(wanted), figure(there));
  }
  return excess;
}

class PodResize : public AdmissionPlugin {
 public:
  explicit PodResize(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "PodResizeValidator"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Updates() || !request.Is("", "pods/resize")) return {};
    const auto& pod = request.Object<corev1::Pod>();
    const std::string& on = pod.spec().node_name();
    if (on.empty() ||
        pod.metadata().generation() == request.OldObject<corev1::Pod>().metadata().generation()) {
      return {};
    }
    storage::ObjectPtr object = store_.Peek(api::ResourceOf<corev1::Node>(), on);
    if (!object) return NotAdmitted(request, fmt::format("node \"{}\" not found", on));
    const auto node = std::static_pointer_cast<const corev1::Node>(object->Decode());
    auto os = node->metadata().labels().find("kubernetes.io/os");
    if (os != node->metadata().labels().end() && os->second != "linux") {
      return Because(
          "UnsupportedPlatform", request,
          fmt::format("pod resize is only supported on linux nodes, node \"{}\" is \"{}\"", on, os->second));
    }
    if (const std::string excess = Excess(pod, *node); !excess.empty()) {
      return Because("NodeCapacity", request, "node didn't have enough allocatable resources: " + excess);
    }
    return {};
  }

 private:
  // Clients recognize the rejection by this cause.
  static Error Because(std::string_view cause, const AdmissionRequest& request, std::string_view why) {
    const Error error = NotAdmitted(request, why);
    ErrorDetails details = error.details() ? *error.details() : ErrorDetails{};
    details.causes.push_back({std::string(cause), "", ""});
    return error.WithDetails(std::move(details));
  }

  storage::Store& store_;
};

}  // namespace

PluginPtr NewPodResize(storage::Store& store) { return std::make_unique<PodResize>(store); }

}  // namespace keelson::apiserver
