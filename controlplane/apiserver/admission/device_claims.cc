// ResourceClaims: admin access needs a namespace label, and each part of a claim's status needs its own
// permission (KEP-5018, KEP-4817). No flag disables these checks, because upstream has them in the registry
// of these kinds.
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/codec/codec.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

using namespace api::resource::v1;
using k8s::FieldErrors;
using k8s::Path;
using Requests = google::protobuf::RepeatedPtrField<DeviceRequest>;

constexpr char kGroup[] = "resource.k8s.io";
constexpr char kAdminLabel[] = "resource.kubernetes.io/admin-access";
constexpr char kNodeNameKey[] = "authentication.kubernetes.io/node-name";
constexpr std::chrono::seconds kPatience{10};

// The first result with admin access; -1: none.
int AdminResult(const ResourceClaim& claim) {
  const auto& results = claim.status().allocation().devices().results();
  for (int i = 0; i < results.size(); ++i) {
    if (results[i].admin_access()) return i;
  }
  return -1;
}

// The only node that the allocation fits; "" when there may be several.
std::string AllocatedNode(const ResourceClaimStatus& status) {
  const auto& terms = status.allocation().node_selector().node_selector_terms();
  if (terms.size() != 1 || !terms[0].match_expressions().empty() || terms[0].match_fields_size() != 1) {
    return "";
  }
  const corev1::NodeSelectorRequirement& field = terms[0].match_fields(0);
  const bool one = field.key() == "metadata.name" && field.operator_() == "In" && field.values_size() == 1;
  return one ? field.values(0) : "";
}

// True for a ServiceAccount whose token is bound to that node.
bool RunsOn(const User& user, const std::string& node) {
  if (node.empty() || user.name.rfind(kUserServiceAccountPrefix, 0) != 0) return false;
  const auto found = user.extra.find(kNodeNameKey);
  return found != user.extra.end() && found->second.size() == 1 && found->second[0] == node;
}

template <typename Device>
std::string KeyOf(const Device& device) {
  return device.driver() + "/" + device.pool() + "/" + device.device();
}

// Drivers with an added, removed or changed entry. Ignores entries removed together with their device's
// allocation.
std::set<std::string> ChangedDrivers(const ResourceClaimStatus& now, const ResourceClaimStatus& before) {
  std::set<std::string> allocated, drivers;
  for (const auto& result : now.allocation().devices().results()) allocated.insert(KeyOf(result));
  std::map<std::string, const AllocatedDeviceStatus*> gone;
  const auto key = [](const AllocatedDeviceStatus& device) {
    return KeyOf(device) + "/" + device.share_id();
  };
  for (const AllocatedDeviceStatus& device : before.devices()) gone[key(device)] = &device;
  for (const AllocatedDeviceStatus& device : now.devices()) {
    const auto old = gone.find(key(device));
    if (old == gone.end() || api::EncodeRaw(*old->second) != api::EncodeRaw(device)) {
      drivers.insert(device.driver());
    }
    if (old != gone.end()) gone.erase(old);
  }
  std::set<std::string> freed;
  for (const auto& result : before.allocation().devices().results()) {
    if (!allocated.count(KeyOf(result))) freed.insert(KeyOf(result));
  }
  for (const auto& [name, device] : gone) {
    if (!freed.count(KeyOf(*device))) drivers.insert(device->driver());
  }
  return drivers;
}

class DeviceClaims : public AdmissionPlugin {
 public:
  DeviceClaims(std::shared_ptr<const Authorizer> authorizer, storage::Store& store, const GateOn& on)
      : authorizer_(std::move(authorizer)),
        store_(store),
        granular_(on("DRAResourceClaimGranularStatusAuthorization")) {}
  std::string_view name() const override { return "DeviceClaims"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (request.info.group != kGroup) return {};
    FieldErrors errors;
    // The spec of both kinds is immutable.
    if (request.Creates() && request.Is(kGroup, "resourceclaims")) {
      CheckRequests(request, request.Object<ResourceClaim>().spec().devices().requests(), errors);
    } else if (request.Creates() && request.Is(kGroup, "resourceclaimtemplates")) {
      CheckRequests(request, request.Object<ResourceClaimTemplate>().spec().spec().devices().requests(),
                    errors);
    } else if (request.Updates() && request.Is(kGroup, "resourceclaims/status")) {
      CheckStatus(request, request.Object<ResourceClaim>(), request.OldObject<ResourceClaim>(), errors);
    }
    if (errors.empty()) return {};
    return k8s::ToInvalid(request.info.Gvk(), request.Name(), errors);
  }

 private:
  void CheckRequests(const AdmissionRequest& request, const Requests& requests, FieldErrors& errors) const {
    for (int i = 0; i < requests.size(); ++i) {
      if (!requests[i].exactly().admin_access()) continue;
      const Path spec("spec"), devices = spec.Child("devices"), list = devices.Child("requests");
      const Path item = list.Index(i);
      return CheckLabel(request, item.Child("adminAccess"), errors);
    }
  }

  void CheckStatus(const AdmissionRequest& request, const ResourceClaim& now, const ResourceClaim& before,
                   FieldErrors& errors) const {
    const Path status("status");
    if (const int i = AdminResult(now); i >= 0 && AdminResult(before) < 0) {
      const Path allocation = status.Child("allocation"), devices = allocation.Child("devices");
      const Path results = devices.Child("results"), item = results.Index(i);
      CheckLabel(request, item.Child("adminAccess"), errors);
    }
    if (!granular_) return;
    CheckBinding(request, now.status(), before.status(), status, errors);
    CheckDevices(request, now.status(), before.status(), status.Child("devices"), errors);
  }

  void CheckLabel(const AdmissionRequest& request, const Path& path, FieldErrors& errors) const {
    const auto ns = store_.Get(api::ResourceOf<corev1::Namespace>(), request.ns, "",
                               {SteadyTime::clock::now() + kPatience, {}});
    if (!ns || !*ns) {
      const Error why =
          ns ? registry::NotFoundError(api::ResourceOf<corev1::Namespace>(), request.ns) : ns.error();
      errors.push_back({k8s::FieldError::Type::kInternal, path.ToString(), "",
                        "could not retrieve namespace to verify admin access: " + why.message()});
      return;
    }
    const auto object = (*ns)->Decode();
    const auto& labels = static_cast<const corev1::Namespace&>(*object).metadata().labels();
    const auto label = labels.find(kAdminLabel);
    if (label != labels.end() && label->second == "true") return;
    errors.push_back(k8s::Forbidden(
        path, fmt::format("admin access to devices requires the `{}: true` label on the containing namespace",
                          kAdminLabel)));
  }

  void CheckBinding(const AdmissionRequest& request, const ResourceClaimStatus& now,
                    const ResourceClaimStatus& before, const Path& path, FieldErrors& errors) const {
    ResourceClaimStatus part, old_part;
    for (const auto& [from, to] : {std::pair(&now, &part), std::pair(&before, &old_part)}) {
      if (from->has_allocation()) *to->mutable_allocation() = from->allocation();
      *to->mutable_reserved_for() = from->reserved_for();
    }
    if (api::EncodeRaw(part) == api::EncodeRaw(old_part)) return;
    RequestInfo asked = Ask(request.verb, "binding");
    const std::string why = Refusal(request.user, asked);
    if (why.empty()) return;
    errors.push_back(
        k8s::Forbidden(path, fmt::format("changing status.allocation or status.reservedFor requires "
                                         "resource=\"resourceclaims/binding\", verb=\"{}\" permission: {}",
                                         request.verb, why)));
  }

  // Each driver has its own entries. A permission limited to the claim's node suffices on that node.
  void CheckDevices(const AdmissionRequest& request, const ResourceClaimStatus& now,
                    const ResourceClaimStatus& before, const Path& path, FieldErrors& errors) const {
    std::vector<std::string> verbs = {fmt::format("arbitrary-node:{}", request.verb)};
    if (RunsOn(request.user, AllocatedNode(now))) {
      verbs.insert(verbs.begin(), fmt::format("associated-node:{}", request.verb));
    }
    for (const std::string& driver : ChangedDrivers(now, before)) {
      std::string first;
      bool allowed = false;
      for (const std::string& verb : verbs) {
        RequestInfo asked = Ask(verb, "driver");
        asked.ns = request.ns;
        asked.name = driver;
        const std::string why = Refusal(request.user, asked);
        allowed = why.empty();
        if (allowed) break;
        if (first.empty()) first = why;
      }
      if (allowed) continue;
      errors.push_back(k8s::Forbidden(
          path, fmt::format("changing status.devices requires resource=\"resourceclaims/driver\", "
                            "verb=\"[{}]\" permission: {}",
                            fmt::join(verbs, " "), first)));
    }
  }

  static RequestInfo Ask(std::string_view verb, std::string_view subresource) {
    RequestInfo info;
    info.is_resource = true;
    info.verb = verb;
    info.group = kGroup;
    info.version = "v1";
    info.resource = "resourceclaims";
    info.subresource = subresource;
    return info;
  }
  // Returns "" when allowed.
  std::string Refusal(const User& user, const RequestInfo& asked) const {
    const Attributes attributes{user, asked};
    const Decision decision = authorizer_->Authorize(attributes);
    return decision.allowed ? "" : ForbiddenTo(attributes, decision.reason).message();
  }

  const std::shared_ptr<const Authorizer> authorizer_;
  storage::Store& store_;
  const bool granular_;
};

}  // namespace

PluginPtr NewDeviceClaims(std::shared_ptr<const Authorizer> authorizer, storage::Store& store,
                          const GateOn& on) {
  return std::make_unique<DeviceClaims>(std::move(authorizer), store, on);
}

}  // namespace keelson::apiserver
