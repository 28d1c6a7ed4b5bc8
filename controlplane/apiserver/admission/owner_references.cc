// OwnerReferencesPermissionEnforcement: owner references decide what the garbage collector deletes. Changing
// them needs permission to delete the object; setting blockOwnerDeletion needs permission to update the
// owner's finalizers.
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

using Owners = google::protobuf::RepeatedPtrField<metav1::OwnerReference>;

bool SameOwner(const metav1::OwnerReference& a, const metav1::OwnerReference& b) {
  return a.uid() == b.uid() && a.kind() == b.kind() && a.name() == b.name() &&
         a.api_version() == b.api_version() && a.controller() == b.controller() &&
         a.block_owner_deletion() == b.block_owner_deletion();
}

// Owner references that newly set blockOwnerDeletion.
std::vector<const metav1::OwnerReference*> NewlyBlocking(const Owners& now, const Owners& before) {
  std::vector<const metav1::OwnerReference*> out;
  for (const metav1::OwnerReference& owner : now) {
    if (!owner.block_owner_deletion()) continue;
    const bool blocked = std::any_of(before.begin(), before.end(), [&](const metav1::OwnerReference& old) {
      return old.uid() == owner.uid() && old.block_owner_deletion();
    });
    if (!blocked) out.push_back(&owner);
  }
  return out;
}

class OwnerReferences : public AdmissionPlugin {
 public:
  OwnerReferences(std::shared_ptr<const Authorizer> authorizer, KindFinder find_kind)
      : authorizer_(std::move(authorizer)), find_kind_(std::move(find_kind)) {}
  std::string_view name() const override { return "OwnerReferencesPermissionEnforcement"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.object || !api::HasObjectMeta(request.object->GetDescriptor())) return {};
    if (request.Is("", "pods/status")) return {};  // it cannot change owner references
    static const Owners kNone;
    const Owners& now = api::Meta(*request.object).owner_references();
    const Owners& before = request.old_object ? api::Meta(*request.old_object).owner_references() : kNone;
    const bool same =
        now.size() == before.size() && std::equal(now.begin(), now.end(), before.begin(), SameOwner);
    if (same) return {};
    // Creation needs no delete permission: upstream checks updates only.
    if (request.Updates()) KEELSON_RETURN_IF_ERROR(CheckDelete(request));
    for (const metav1::OwnerReference* owner : NewlyBlocking(now, before)) {
      KEELSON_RETURN_IF_ERROR(CheckFinalizers(request, *owner));
    }
    return {};
  }

 private:
  Result<> CheckDelete(const AdmissionRequest& request) const {
    RequestInfo info;
    info.is_resource = true;
    info.verb = "delete";
    info.group = request.info.group;
    info.version = request.info.version;
    info.ns = request.ns;
    info.resource = request.MainResource();
    info.name = request.Name();
    const Decision decision = authorizer_->Authorize({request.user, info});
    if (decision.allowed) return {};
    return NotAdmitted(
        request,
        fmt::format("cannot set an ownerRef on a resource you can't delete: {}, <nil>", decision.reason));
  }

  Result<> CheckFinalizers(const AdmissionRequest& request, const metav1::OwnerReference& owner) const {
    auto [group, version] = api::SplitApiVersion(owner.api_version());
    const api::ResourceInfo* kind = find_kind_(group, version, owner.kind());
    if (!kind) {
      return NotAdmitted(request,
                         fmt::format("cannot set blockOwnerDeletion in this case because cannot find "
                                     "RESTMapping for APIVersion {} Kind {}",
                                     owner.api_version(), owner.kind()));
    }
    RequestInfo info;
    info.is_resource = true;
    info.verb = "update";
    info.group = group;
    info.version = version;
    info.ns = kind->namespaced ? request.ns : "";
    info.resource = kind->resource;
    info.subresource = "finalizers";
    info.name = owner.name();
    const Decision decision = authorizer_->Authorize({request.user, info});
    if (decision.allowed) return {};
    return NotAdmitted(request,
                       fmt::format("cannot set blockOwnerDeletion if an ownerReference refers to a resource "
                                   "you can't set finalizers on: {}, <nil>",
                                   decision.reason));
  }

  const std::shared_ptr<const Authorizer> authorizer_;
  const KindFinder find_kind_;
};

}  // namespace

PluginPtr NewOwnerReferences(std::shared_ptr<const Authorizer> authorizer, KindFinder find_kind) {
  return std::make_unique<OwnerReferences>(std::move(authorizer), std::move(find_kind));
}

}  // namespace keelson::apiserver
