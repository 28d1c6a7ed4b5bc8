#include "controlplane/registry/service_allocator.h"

#include "controlplane/registry/service_families.h"
#include "lib/api/meta.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/base/log.h"

namespace keelson::registry {
namespace {

namespace networkingv1 = api::networking::v1;

constexpr char kDefaultCidr[] = "kubernetes";

const ResourceInfo& ServiceCidrs() {
  static const ResourceInfo& info = api::ResourceOf<networkingv1::ServiceCIDR>();
  return info;
}

}  // namespace

ServiceAllocator::ServiceAllocator(storage::Store& store, const Config& config, Clock& clock)
    : store_(store),
      config_(config),
      clock_(clock),
      ips_(store, clock),
      ports_(store.ranges(), config.node_port_first, config.node_port_last) {}

Result<> ServiceAllocator::Start(const storage::Limits& limits) {
  ranges_.clear();
  families_.clear();
  for (const std::string& cidr : config_.service_cidrs) {
    KEELSON_ASSIGN_OR_RETURN(IpPrefix range, IpPrefix::Parse(cidr));
    ranges_.push_back(range.Masked());
    families_.emplace_back(range.is_v4() ? kIpv4 : kIpv6);
  }
  if (ranges_.empty()) return Error(Code::kInvalid, "no service address range is configured");
  KEELSON_RETURN_IF_ERROR(EnsureDefaultCidr(limits));
  // Also waits for the cache, because allocation reads ranges from it.
  KEELSON_ASSIGN_OR_RETURN([[maybe_unused]] ObjectPtr seen,
                           store_.Get(ServiceCidrs(), kDefaultCidr, "", limits));
  return {};
}

Result<> ServiceAllocator::EnsureDefaultCidr(const storage::Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(ObjectPtr existing, store_.Get(ServiceCidrs(), kDefaultCidr, "", limits));
  if (existing) return Extend(existing, limits);
  networkingv1::ServiceCIDR made;
  made.mutable_metadata()->set_name(kDefaultCidr);
  made.mutable_metadata()->set_uid(api::NewUid());
  *made.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(clock_.Now());
  for (const IpPrefix& range : ranges_) made.mutable_spec()->add_cidrs(range.ToString());
  metav1::Condition& ready = *made.mutable_status()->add_conditions();
  ready.set_type("Ready");
  ready.set_status("True");
  ready.set_message("Kubernetes default Service CIDR is ready");
  *ready.mutable_last_transition_time() = api::ToTime(clock_.Now());
  storage::Conflict conflict;
  Result<ObjectPtr> stored = store_.Put(ServiceCidrs(), kDefaultCidr, made, 0, {}, conflict, limits);
  if (!stored && !stored.error().Is(Code::kConflict)) return stored.error();
  return {};
}

// The only allowed change of a cluster's ranges: adding a second family to the first.
Result<> ServiceAllocator::Extend(const ObjectPtr& existing, const storage::Limits& limits) {
  auto message = existing->Decode();
  auto cidr = static_cast<const networkingv1::ServiceCIDR&>(*message);
  std::vector<std::string> wanted;
  for (const IpPrefix& range : ranges_) wanted.push_back(range.ToString());
  const auto& has = cidr.spec().cidrs();
  if (std::equal(has.begin(), has.end(), wanted.begin(), wanted.end())) return {};
  if (has.size() != 1 || wanted.size() != 2 || has[0] != wanted[0]) {
    if (!std::exchange(mismatch_told_, true)) {
      log::Warn("The ServiceCIDR kubernetes is not what is configured; it stays",
                {{"configured", wanted.front()}, {"stored", has.empty() ? "" : has[0]}});
    }
    return {};
  }
  cidr.mutable_spec()->add_cidrs(wanted[1]);
  cidr.mutable_metadata()->clear_resource_version();
  storage::Conflict conflict;
  Result<ObjectPtr> stored =
      store_.Put(ServiceCidrs(), kDefaultCidr, cidr, existing->revision(), {}, conflict, limits);
  if (!stored && !stored.error().Is(Code::kConflict)) return stored.error();
  return {};
}

}  // namespace keelson::registry
