#include "controlplane/registry/service_allocator.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/base/log.h"

namespace keelson::registry {
namespace {

namespace networkingv1 = api::networking::v1;

const ResourceInfo& IpAddresses() {
  static const ResourceInfo& info = api::ResourceOf<networkingv1::IPAddress>();
  return info;
}

std::mt19937_64& Random() {
  thread_local std::mt19937_64 engine{std::random_device{}()};
  return engine;
}

// Addresses that can be handed out: all but an IPv4 range's first and last, and an IPv6 range's first.
int64_t Usable(const IpPrefix& range) {
  int bits = std::min(range.address().bits() - range.length(), 62);
  int64_t size = int64_t{1} << bits;
  return range.is_v4() ? size - 2 : size - 1;
}

// The lower part of a range is left to those who name their address or port; the same sizes as upstream's.
int64_t StaticPart(int64_t size, int64_t step, int64_t least, int64_t most) {
  if (size <= least) return 0;
  return std::clamp(size / step, least, most);
}

bool OwnedBy(const networkingv1::IPAddress& address, const ServiceAllocator::Owner& owner) {
  const auto& ref = address.spec().parent_ref();
  return ref.resource() == "services" && ref.namespace_() == owner.ns && ref.name() == owner.name;
}

}  // namespace

ServiceAllocator::ServiceAllocator(storage::Store& store, const Config& config, Clock& clock)
    : store_(store), config_(config), clock_(clock) {}

const IpPrefix* ServiceAllocator::RangeOf(const IpAddress& ip) const {
  for (const IpPrefix& range : ranges_) {
    if (range.is_v4() == ip.is_v4()) return &range;
  }
  return nullptr;
}

Result<> ServiceAllocator::Start(const storage::Limits& limits) {
  ranges_.clear();
  families_.clear();
  for (const std::string& cidr : config_.service_cidrs) {
    ASSIGN_OR_RETURN(IpPrefix range, IpPrefix::Parse(cidr));
    ranges_.push_back(range.Masked());
    families_.emplace_back(range.is_v4() ? kIpv4 : kIpv6);
  }
  if (ranges_.empty()) return Error(Code::kInvalid, "no service address range is configured");
  RETURN_IF_ERROR(EnsureServiceCidr(limits));
  return Repair(limits);
}

Result<> ServiceAllocator::EnsureServiceCidr(const storage::Limits& limits) {
  const ResourceInfo& info = api::ResourceOf<networkingv1::ServiceCIDR>();
  ASSIGN_OR_RETURN(ObjectPtr existing, store_.Get(info, "kubernetes", "", limits));
  if (existing) return {};
  networkingv1::ServiceCIDR made;
  made.mutable_metadata()->set_name("kubernetes");
  made.mutable_metadata()->set_uid(api::NewUid());
  *made.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(clock_.Now());
  for (const IpPrefix& range : ranges_) made.mutable_spec()->add_cidrs(range.ToString());
  metav1::Condition& ready = *made.mutable_status()->add_conditions();
  ready.set_type("Ready");
  ready.set_status("True");
  ready.set_message("Kubernetes default Service CIDR is ready");
  *ready.mutable_last_transition_time() = api::ToTime(clock_.Now());
  storage::Conflict conflict;
  Result<ObjectPtr> stored = store_.Put(info, "kubernetes", made, 0, {}, conflict, limits);
  if (!stored && !stored.error().Is(Code::kConflict)) return stored.error();
  return {};
}

Result<> ServiceAllocator::Repair(const storage::Limits& limits) {
  std::set<std::pair<std::string, std::string>> wanted;  // service key, address
  std::vector<std::pair<Owner, std::string>> missing;
  std::set<int> ports;
  store_.ForEach(api::ResourceOf<corev1::Service>(), [&](const ObjectPtr& object) {
    auto message = object->Decode();
    const auto& service = static_cast<const corev1::Service&>(*message);
    for (const auto& port : service.spec().ports()) {
      if (port.node_port() != 0) ports.insert(port.node_port());
    }
    if (service.spec().health_check_node_port() != 0) ports.insert(service.spec().health_check_node_port());
    if (service.spec().type() == "ExternalName") return;
    for (const std::string& ip : service.spec().cluster_ips()) {
      if (ip.empty() || ip == "None") continue;
      wanted.emplace(object->key(), ip);
      if (!store_.Peek(IpAddresses(), ip))
        missing.push_back({{service.metadata().namespace_(), service.metadata().name()}, ip});
    }
  });
  for (const auto& [owner, ip] : missing) {
    if (Result<> claimed = ClaimIp(ip, owner, false, limits); !claimed)
      log::Warn("A Service's cluster IP cannot be claimed", {{"ip", ip}, {"error", claimed.error()}});
  }
  std::vector<std::pair<Owner, std::string>> stray;
  store_.ForEach(IpAddresses(), [&](const ObjectPtr& object) {
    auto message = object->Decode();
    const auto& ref = static_cast<const networkingv1::IPAddress&>(*message).spec().parent_ref();
    if (ref.resource() != "services") return;
    if (wanted.count({api::KeyOf(ref.namespace_(), ref.name()), std::string(object->name())}) == 0)
      stray.push_back({{ref.namespace_(), ref.name()}, std::string(object->name())});
  });
  for (const auto& [owner, ip] : stray) ReleaseIp(ip, owner);
  MutexLock lock(mutex_);
  ports_ = std::move(ports);
  return {};
}

Result<bool> ServiceAllocator::Create(const IpAddress& ip, const Owner& owner,
                                      const storage::Limits& limits) {
  networkingv1::IPAddress address;
  metav1::ObjectMeta& meta = *address.mutable_metadata();
  meta.set_name(ip.ToString());
  meta.set_uid(api::NewUid());
  *meta.mutable_creation_timestamp() = api::ToTime(clock_.Now());
  (*meta.mutable_labels())["ipaddress.kubernetes.io/ip-family"] = std::string(ip.is_v4() ? kIpv4 : kIpv6);
  (*meta.mutable_labels())["ipaddress.kubernetes.io/managed-by"] = "ipallocator.k8s.io";
  auto& ref = *address.mutable_spec()->mutable_parent_ref();
  ref.set_resource("services");
  ref.set_namespace_(owner.ns);
  ref.set_name(owner.name);
  storage::Conflict conflict;
  Result<ObjectPtr> stored = store_.Put(IpAddresses(), meta.name(), address, 0, {}, conflict, limits);
  if (stored) return true;
  if (!stored.error().Is(Code::kConflict)) return stored.error();
  if (!conflict.current) return false;
  auto current = conflict.current->Decode();
  // Ours already: a write of the same Service that was cut short.
  return OwnedBy(static_cast<const networkingv1::IPAddress&>(*current), owner);
}

Result<std::string> ServiceAllocator::AllocateIp(std::string_view family, const Owner& owner, bool dry_run,
                                                 const storage::Limits& limits) {
  for (const IpPrefix& range : ranges_) {
    if (range.is_v4() != (family == kIpv4)) continue;
    const int64_t size = Usable(range);
    const int64_t first = StaticPart(size, 16, 16, 256);
    // Upper part first, from a random place; the part for named addresses when that is full.
    for (auto [begin, end] : {std::pair(first, size), std::pair(int64_t{0}, first)}) {
      if (begin >= end) continue;
      int64_t start = std::uniform_int_distribution<int64_t>(begin, end - 1)(Random());
      for (int64_t i = 0; i < end - begin; ++i) {
        IpAddress ip = range.Network().Plus(1 + begin + (start - begin + i) % (end - begin));
        if (store_.Peek(IpAddresses(), ip.ToString())) continue;
        if (dry_run) return ip.ToString();
        ASSIGN_OR_RETURN(bool created, Create(ip, owner, limits));
        if (created) return ip.ToString();
      }
    }
  }
  return Error(Code::kInternal, "Internal error occurred: failed to allocate a serviceIP: range is full");
}

Result<> ServiceAllocator::ClaimIp(std::string_view text, const Owner& owner, bool dry_run,
                                   const storage::Limits& limits) {
  ASSIGN_OR_RETURN(IpAddress ip, IpAddress::Parse(text));
  const IpPrefix* range = RangeOf(ip);
  if (!range || !range->Contains(ip) || ip == range->Network() || (ip.is_v4() && ip == range->Last())) {
    return Error(Code::kInvalid,
                 fmt::format("failed to allocate IP {}: the provided IP ({}) is not in the valid range. "
                             "The range of valid IPs is {}",
                             text, text, range ? range->ToString() : "<none>"));
  }
  const Error taken(Code::kInvalid,
                    fmt::format("failed to allocate IP {}: provided IP is already allocated", text));
  if (dry_run) {
    if (store_.Peek(IpAddresses(), ip.ToString())) return taken;
    return {};
  }
  ASSIGN_OR_RETURN(bool created, Create(ip, owner, limits));
  if (!created) return taken;
  return {};
}

void ServiceAllocator::ReleaseIp(std::string_view ip, const Owner& owner) {
  storage::Limits limits;
  Result<ObjectPtr> found = store_.Get(IpAddresses(), ip, "", limits);
  if (found && *found) {
    auto message = (*found)->Decode();
    if (!OwnedBy(static_cast<const networkingv1::IPAddress&>(*message), owner)) return;
    storage::Conflict conflict;
    Result<int64_t> deleted = store_.Delete(IpAddresses(), ip, (*found)->revision(), conflict, limits);
    if (deleted || !conflict.current) return;
    log::Warn("Cannot release a cluster IP", {{"ip", ip}, {"error", deleted.error()}});
  } else if (!found) {
    // The next start finds it.
    log::Warn("Cannot release a cluster IP", {{"ip", ip}, {"error", found.error()}});
  }
}

Result<int> ServiceAllocator::AllocatePort(bool dry_run) {
  const int size = config_.node_port_last - config_.node_port_first + 1;
  const int first = static_cast<int>(StaticPart(size, 32, 16, 128));
  MutexLock lock(mutex_);
  for (auto [begin, end] : {std::pair(first, size), std::pair(0, first)}) {
    if (begin >= end) continue;
    int start = std::uniform_int_distribution<int>(begin, end - 1)(Random());
    for (int i = 0; i < end - begin; ++i) {
      int port = config_.node_port_first + begin + (start - begin + i) % (end - begin);
      if (ports_.count(port) != 0) continue;
      if (!dry_run) ports_.insert(port);
      return port;
    }
  }
  return Error(Code::kInternal, "Internal error occurred: failed to allocate a nodePort: range is full");
}

Result<> ServiceAllocator::ClaimPort(int port, bool dry_run) {
  if (port < config_.node_port_first || port > config_.node_port_last) {
    return Error(Code::kInvalid,
                 fmt::format("provided port is not in the valid range. The range of valid ports is {}-{}",
                             config_.node_port_first, config_.node_port_last));
  }
  MutexLock lock(mutex_);
  if (ports_.count(port) != 0) return Error(Code::kInvalid, "provided port is already allocated");
  if (!dry_run) ports_.insert(port);
  return {};
}

void ServiceAllocator::ReleasePort(int port) {
  MutexLock lock(mutex_);
  ports_.erase(port);
}

}  // namespace keelson::registry
