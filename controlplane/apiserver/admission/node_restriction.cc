// Keeps a kubelet to its own node: its Node object, the pods bound to it, tokens of those pods.
#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/authz/node.h"
#include "lib/api/meta.h"
#include "lib/k8s/pod_util.h"

namespace keelson::apiserver {
namespace {

using registry::Operation;

// Labels that a node may not give itself, but for those that kubelets have always set.
bool IsReservedLabel(std::string_view key) {
  auto slash = key.find('/');
  if (slash == std::string_view::npos) return false;
  std::string_view domain = key.substr(0, slash);
  return domain == "node-restriction.kubernetes.io" ||
         (domain.size() > 31 && domain.substr(domain.size() - 31) == ".node-restriction.kubernetes.io");
}

class NodeRestriction : public AdmissionPlugin {
 public:
  explicit NodeRestriction(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "NodeRestriction"; }

  Result<> Validate(const AdmissionRequest& request) override {
    std::string node = NodeNameOf(request.user);
    if (node.empty() || !request.info.group.empty()) return {};
    std::string_view resource = request.info.resource.substr(0, request.info.resource.find('/'));
    if (resource == "nodes") return CheckNode(request, node);
    if (request.info.resource == "pods/eviction") return CheckEviction(request, node);
    if (resource == "pods") return CheckPod(request, node);
    return {};
  }

 private:
  static Result<> CheckNode(const AdmissionRequest& request, const std::string& node) {
    std::string name(request.name);
    if (name.empty() && request.object) name = api::Meta(*request.object).name();
    if (name != node) {
      return NotAdmitted(request,
                         fmt::format("node \"{}\" is not allowed to modify node \"{}\"", node, name));
    }
    if (request.operation != Operation::kCreate && request.operation != Operation::kUpdate) return {};
    const auto& object = static_cast<const corev1::Node&>(*request.object);
    const auto* old = static_cast<const corev1::Node*>(request.old_object);
    for (const auto& label : object.metadata().labels()) {
      if (!IsReservedLabel(label.first)) continue;
      if (old) {
        auto before = old->metadata().labels().find(label.first);
        if (before != old->metadata().labels().end() && before->second == label.second) continue;
      }
      return NotAdmitted(request, fmt::format("is not allowed to modify labels: {}", label.first));
    }
    return {};
  }

  static Result<> CheckPod(const AdmissionRequest& request, const std::string& node) {
    const auto* pod =
        static_cast<const corev1::Pod*>(request.old_object ? request.old_object : request.object);
    if (!pod) return {};
    if (pod->spec().node_name() != node) {
      return NotAdmitted(request,
                         fmt::format("node \"{}\" can only {} pods with spec.nodeName set to itself", node,
                                     request.operation == Operation::kCreate ? "create" : "change"));
    }
    if (request.operation == Operation::kCreate && !k8s::IsMirror(*pod)) {
      return NotAdmitted(
          request, fmt::format("pod does not have \"{}\" annotation, node \"{}\" can only create mirror pods",
                               k8s::kMirrorAnnotation, node));
    }
    return {};
  }

  Result<> CheckEviction(const AdmissionRequest& request, const std::string& node) {
    storage::ObjectPtr found =
        store_.Peek(api::ResourceOf<corev1::Pod>(), api::KeyOf(request.ns, request.name));
    if (!found) return {};
    auto pod = std::static_pointer_cast<const corev1::Pod>(found->Decode());
    if (pod->spec().node_name() == node) return {};
    return NotAdmitted(request,
                       fmt::format("node {} can only evict pods with spec.nodeName set to itself", node));
  }

  storage::Store& store_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewNodeRestriction(storage::Store& store) {
  return std::make_unique<NodeRestriction>(store);
}

}  // namespace keelson::apiserver
