#include "controlplane/apiserver/handlers/node_token_restriction.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/authz/node.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

constexpr char kAudienceVerb[] = "request-serviceaccounts-token-audience";

// The cached object; null: it does not exist.
template <typename T>
std::shared_ptr<const T> Find(registry::Registry& registry, std::string_view ns, std::string_view name) {
  auto found = registry.Get(api::ResourceOf<T>(), ns, name, "0");
  return found ? std::static_pointer_cast<const T>((*found)->Decode()) : nullptr;
}

// The CSI driver of a volume's source. An in-tree source has the driver that took its place. Empty: none.
template <typename Source>
std::string DriverOfSource(const Source& source) {
  if (source.has_csi()) return source.csi().driver();
  if (source.has_aws_elastic_block_store()) return "ebs.csi.aws.com";
  if (source.has_azure_disk()) return "disk.csi.azure.com";
  if (source.has_azure_file()) return "file.csi.azure.com";
  if (source.has_cinder()) return "cinder.csi.openstack.org";
  if (source.has_gce_persistent_disk()) return "pd.csi.storage.gke.io";
  if (source.has_portworx_volume()) return "pxd.portworx.com";
  if (source.has_vsphere_volume()) return "csi.vsphere.vmware.com";
  return "";
}

}  // namespace

Result<> NodeTokenRestriction::Check(const User& user, std::string_view ns, std::string_view account,
                                     const authenticationv1::TokenRequestSpec& spec) const {
  const std::string node = NodeNameOf(user);
  if (node.empty()) return {};
  auto refuse = [&](std::string_view why) {
    return registry::ForbiddenError(api::ResourceOf<corev1::ServiceAccount>(), account, why);
  };
  const authenticationv1::BoundObjectReference& bound = spec.bound_object_ref();
  if (bound.api_version() != "v1" || bound.kind() != "Pod" || bound.name().empty()) {
    return refuse("node requested token not bound to a pod");
  }
  if (bound.uid().empty()) return refuse("node requested token with a pod binding without a uid");
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectPtr object,
                           registry_.Get(api::ResourceOf<corev1::Pod>(), ns, bound.name()));
  const auto pod = std::static_pointer_cast<const corev1::Pod>(object->Decode());
  if (bound.uid() != pod->metadata().uid()) {
    return refuse(
        fmt::format("the UID in the bound object reference ({}) does not match the UID in record. The object "
                    "might have been deleted and then recreated",
                    bound.uid()));
  }
  if (pod->spec().node_name() != node) {
    return refuse("node requested token bound to a pod scheduled on a different node");
  }
  Result<> audience = CheckAudience(user, *pod, spec);
  return audience ? audience : refuse(audience.error().message());
}

Result<> NodeTokenRestriction::CheckAudience(const User& user, const corev1::Pod& pod,
                                             const authenticationv1::TokenRequestSpec& spec) const {
  if (spec.audiences_size() > 1) return Error(Code::kForbidden, "node may only request 0 or 1 audiences");
  const std::string audience = spec.audiences_size() == 0 ? "" : spec.audiences(0);
  for (const corev1::Volume& volume : pod.spec().volumes()) {
    if (Refers(pod, volume, audience)) return {};
  }
  // An image credential provider that uses ServiceAccount tokens has no volume.
  RequestInfo info;
  info.is_resource = true;
  info.verb = kAudienceVerb;
  info.version = "v1";
  info.ns = pod.metadata().namespace_();
  info.resource = audience;
  info.name = pod.spec().service_account_name();
  if (authorizer_->Authorize({user, info}).allowed) return {};
  return Error(
      Code::kForbidden,
      fmt::format("audience {} not found in pod spec volume, {} is not authorized to request tokens for "
                  "this audience",
                  k8s::Quote(audience), user.name));
}

bool NodeTokenRestriction::Refers(const corev1::Pod& pod, const corev1::Volume& volume,
                                  const std::string& audience) const {
  const auto& sources = volume.volume_source().projected().sources();
  const bool projected = std::any_of(sources.begin(), sources.end(), [&](const auto& source) {
    return source.has_service_account_token() && source.service_account_token().audience() == audience;
  });
  if (projected) return true;
  const std::string name = DriverOf(pod, volume);
  const auto driver = name.empty() ? nullptr : Find<api::storage::v1::CSIDriver>(registry_, "", name);
  if (!driver) return false;
  const auto& requests = driver->spec().token_requests();
  return std::any_of(requests.begin(), requests.end(),
                     [&](const auto& request) { return request.audience() == audience; });
}

// The CSI driver of a volume or of its claim's volume. Empty: none.
std::string NodeTokenRestriction::DriverOf(const corev1::Pod& pod, const corev1::Volume& volume) const {
  const auto& source = volume.volume_source();
  if (std::string driver = DriverOfSource(source); !driver.empty()) return driver;
  std::string claim_name;
  if (source.has_ephemeral()) claim_name = pod.metadata().name() + "-" + volume.name();
  if (source.has_persistent_volume_claim()) claim_name = source.persistent_volume_claim().claim_name();
  if (claim_name.empty()) return "";
  const auto claim = Find<corev1::PersistentVolumeClaim>(registry_, pod.metadata().namespace_(), claim_name);
  if (!claim || claim->spec().volume_name().empty()) return "";
  const auto bound = Find<corev1::PersistentVolume>(registry_, "", claim->spec().volume_name());
  return bound ? DriverOfSource(bound->spec().persistent_volume_source()) : "";
}

}  // namespace keelson::apiserver
