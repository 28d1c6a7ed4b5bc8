// NamespaceLifecycle: rejects creation in missing and terminating namespaces, and deletion of system
// namespaces.
#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

bool IsProtected(std::string_view name) {
  return name == "default" || name == "kube-system" || name == "kube-public";
}

// Reviews mention namespaces, but do not create objects in them.
bool IsExempt(const api::ResourceInfo& info) {
  return info.group == "authorization.k8s.io" || info.etcd_prefix.empty();
}

class NamespaceLifecycle : public AdmissionPlugin {
 public:
  explicit NamespaceLifecycle(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "NamespaceLifecycle"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (request.operation == registry::Operation::kDelete && request.Is("", "namespaces")) {
      if (IsProtected(request.name)) return NotAdmitted(request, "this namespace may not be deleted");
      return {};
    }
    if (request.operation != registry::Operation::kCreate || request.ns.empty() || IsExempt(request.info)) {
      return {};
    }
    const api::ResourceInfo& namespaces = api::ResourceOf<corev1::Namespace>();
    const storage::ObjectPtr cached = store_.Peek(namespaces, request.ns);
    if (cached && !IsTerminating(*cached)) return {};
    // The cache may not have a new namespace yet, or still have an old one of the name: read consistently.
    KEELSON_ASSIGN_OR_RETURN(
        const storage::ObjectPtr found,
        store_.Get(namespaces, request.ns, "", {SteadyTime::clock::now() + std::chrono::seconds(10), {}}));
    if (!found) return registry::NotFoundError(namespaces, request.ns);
    if (!IsTerminating(*found)) return {};
    std::string why = fmt::format(
        "unable to create new content in namespace {} because it is being terminated", request.ns);
    Error error = NotAdmitted(request, why);
    ErrorDetails details = error.details() ? *error.details() : ErrorDetails{};
    details.causes.push_back({"NamespaceTerminating",
                              fmt::format("namespace {} is being terminated", request.ns),
                              "metadata.namespace"});
    return error.WithDetails(std::move(details));
  }

 private:
  static bool IsTerminating(const storage::Object& stored) {
    auto object = std::static_pointer_cast<const corev1::Namespace>(stored.Decode());
    return object->metadata().has_deletion_timestamp() || object->status().phase() == "Terminating";
  }

  storage::Store& store_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewNamespaceLifecycle(storage::Store& store) {
  return std::make_unique<NamespaceLifecycle>(store);
}

}  // namespace keelson::apiserver
