#include "controlplane/registry/ip_allocator.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "controlplane/registry/service_families.h"
#include "lib/api/meta.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::registry {
namespace {

namespace networkingv1 = api::networking::v1;

const ResourceInfo& IpAddresses() {
  static const ResourceInfo& info = api::ResourceOf<networkingv1::IPAddress>();
  return info;
}

// The number of usable addresses: all but an IPv4 range's first and last, and an IPv6 range's first.
int64_t Usable(const IpPrefix& range) {
  int bits = std::min(range.address().bits() - range.length(), 62);
  int64_t size = int64_t{1} << bits;
  return std::max<int64_t>(0, range.is_v4() ? size - 2 : size - 1);
}

bool OwnedBy(const networkingv1::IPAddress& address, const ServiceRef& owner) {
  const auto& ref = address.spec().parent_ref();
  return ref.resource() == "services" && ref.group().empty() && ref.namespace_() == owner.ns &&
         ref.name() == owner.name;
}

// A ServiceCIDR without the condition counts as ready: the controller that sets it may be late.
bool IsReady(const networkingv1::ServiceCIDR& cidr) {
  if (cidr.metadata().has_deletion_timestamp()) return false;
  for (const auto& condition : cidr.status().conditions()) {
    if (condition.type() == "Ready") return condition.status() == "True";
  }
  return true;
}

metrics::Family& allocated_ips =
    metrics::Gauge("kube_apiserver_clusterip_allocator_allocated_ips",
                   "Gauge measuring the number of allocated IPs for Services", {"cidr"});
metrics::Family& available_ips =
    metrics::Gauge("kube_apiserver_clusterip_allocator_available_ips",
                   "Gauge measuring the number of available IPs for Services", {"cidr"});
metrics::Family& allocations_total = metrics::Counter("kube_apiserver_clusterip_allocator_allocation_total",
                                                      "Number of Cluster IPs allocations", {"cidr", "scope"});
metrics::Family& errors_total =
    metrics::Counter("kube_apiserver_clusterip_allocator_allocation_errors_total",
                     "Number of errors trying to allocate Cluster IPs", {"cidr", "scope"});
metrics::Family& allocation_seconds =
    metrics::Histograms("kube_apiserver_clusterip_allocator_allocation_duration_seconds",
                        "Duration in seconds to allocate a Cluster IP by ServiceCIDR",
                        {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, {"cidr"});

void CountAllocation(const IpPrefix& range, const char* scope, bool good, SteadyTime begin) {
  const std::string cidr = range.ToString();
  (good ? allocations_total : errors_total).With({cidr, scope}).Increment();
  const std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
  if (good) allocation_seconds.HistogramWith({cidr}).Observe(took.count());
}

networkingv1::IPAddress MakeAddress(const IpAddress& ip, const ServiceRef& owner, Clock& clock) {
  networkingv1::IPAddress address;
  metav1::ObjectMeta& meta = *address.mutable_metadata();
  meta.set_name(ip.ToString());
  meta.set_uid(api::NewUid());
  *meta.mutable_creation_timestamp() = api::ToTime(clock.Now());
  (*meta.mutable_labels())["ipaddress.kubernetes.io/ip-family"] = std::string(ip.is_v4() ? kIpv4 : kIpv6);
  (*meta.mutable_labels())[kManagedByLabel] = kIpManager;
  auto& ref = *address.mutable_spec()->mutable_parent_ref();
  ref.set_resource("services");
  ref.set_namespace_(owner.ns);
  ref.set_name(owner.name);
  return address;
}

}  // namespace

int64_t StaticPart(int64_t size, int64_t step, int64_t least, int64_t most) {
  if (size <= least) return 0;
  return std::clamp(size / step, least, most);
}

int64_t RandomBetween(int64_t first, int64_t end) {
  thread_local std::minstd_rand engine{std::random_device{}()};
  return std::uniform_int_distribution<int64_t>(first, end - 1)(engine);
}

std::vector<IpPrefix> IpAllocator::Ranges(bool ready) const {
  std::vector<IpPrefix> ranges;
  size_t of_default = 0;
  store_.ForEach(api::ResourceOf<networkingv1::ServiceCIDR>(), [&](const ObjectPtr& object) {
    auto message = object->Decode();
    const auto& cidr = static_cast<const networkingv1::ServiceCIDR&>(*message);
    if (ready && !IsReady(cidr)) return;
    for (const std::string& text : cidr.spec().cidrs()) {
      Result<IpPrefix> range = IpPrefix::Parse(text);
      if (!range) continue;
      if (object->name() == "kubernetes") {
        ranges.insert(ranges.begin() + static_cast<ptrdiff_t>(of_default++), range->Masked());
      } else {
        ranges.push_back(range->Masked());
      }
    }
  });
  return ranges;
}

bool IpAllocator::InRange(const IpPrefix& range, const IpAddress& ip) {
  return range.is_v4() == ip.is_v4() && range.Contains(ip) && ip != range.Network() &&
         !(ip.is_v4() && ip == range.Last());
}

// Never takes over an existing IPAddress, even one for the same Service: that Service may exist, and this
// write would release its address when it finds out.
Result<bool> IpAllocator::Create(const IpAddress& ip, const ServiceRef& owner,
                                 const storage::Limits& limits) {
  networkingv1::IPAddress address = MakeAddress(ip, owner, clock_);
  storage::Conflict conflict;
  Result<ObjectPtr> stored =
      store_.Put(IpAddresses(), address.metadata().name(), address, 0, {}, conflict, limits);
  if (stored) return true;
  if (!stored.error().Is(Code::kConflict)) return stored.error();
  return false;
}

Result<std::string> IpAllocator::AllocateFrom(const IpPrefix& range, const ServiceRef& owner, bool dry_run,
                                              const storage::Limits& limits) {
  const int64_t size = Usable(range);
  const int64_t first = StaticPart(size, 16, 16, 256);
  // Try the upper part first, from a random place; when it is full, the part for static addresses.
  for (auto [begin, end] : {std::pair(first, size), std::pair(int64_t{0}, first)}) {
    if (begin >= end) continue;
    const int64_t start = RandomBetween(begin, end);
    for (int64_t i = 0; i < end - begin; ++i) {
      const IpAddress ip = range.Network().Plus(1 + begin + (start - begin + i) % (end - begin));
      std::string text = ip.ToString();
      if (store_.Peek(IpAddresses(), text)) continue;
      if (dry_run) return text;
      KEELSON_ASSIGN_OR_RETURN(bool created, Create(ip, owner, limits));
      if (created) return text;
    }
  }
  return std::string();
}

// Reads a range into the cache that may be too new for it.
Result<> IpAllocator::Refresh(const storage::Limits& limits) const {
  KEELSON_ASSIGN_OR_RETURN(
      [[maybe_unused]] ObjectPtr any,
      store_.Get(api::ResourceOf<networkingv1::ServiceCIDR>(), "kubernetes", "", limits));
  return {};
}

Result<std::string> IpAllocator::Allocate(std::string_view family, const ServiceRef& owner, bool dry_run,
                                          const storage::Limits& limits) {
  for (bool again : {false, true}) {
    if (again) KEELSON_RETURN_IF_ERROR(Refresh(limits));
    for (const IpPrefix& range : Ranges(true)) {
      if (range.is_v4() != (family == kIpv4)) continue;
      const SteadyTime begin = SteadyTime::clock::now();
      KEELSON_ASSIGN_OR_RETURN(std::string ip, AllocateFrom(range, owner, dry_run, limits));
      if (!dry_run) CountAllocation(range, "dynamic", !ip.empty(), begin);
      if (!ip.empty()) return ip;
    }
  }
  return Error(Code::kInternal, "Internal error occurred: failed to allocate a serviceIP: range is full");
}

// Upstream's dry run checks a single range, its real allocation all of them: hence two error messages.
Result<> IpAllocator::Fits(const IpAddress& ip, bool dry_run) const {
  const std::vector<IpPrefix> ranges = Ranges(true);
  if (std::any_of(ranges.begin(), ranges.end(), [&](const IpPrefix& r) { return InRange(r, ip); })) return {};
  const auto one =
      std::find_if(ranges.begin(), ranges.end(), [&](const IpPrefix& r) { return r.is_v4() == ip.is_v4(); });
  if (!dry_run || one == ranges.end()) {
    return Error(Code::kInvalid, "the provided network does not match the current range");
  }
  return Error(Code::kInvalid,
               fmt::format("the provided IP ({}) is not in the valid range. The range of valid IPs is {}",
                           ip.ToString(), one->ToString()));
}

Result<> IpAllocator::Claim(std::string_view text, const ServiceRef& owner, bool dry_run,
                            const storage::Limits& limits) {
  KEELSON_ASSIGN_OR_RETURN(IpAddress ip, IpAddress::Parse(text));
  if (Result<> fits = Fits(ip, dry_run); !fits) {
    KEELSON_RETURN_IF_ERROR(Refresh(limits));
    KEELSON_RETURN_IF_ERROR(Fits(ip, dry_run));
  }
  if (dry_run) return {};  // the answer could change at once
  const SteadyTime begin = SteadyTime::clock::now();
  KEELSON_ASSIGN_OR_RETURN(bool created, Create(ip, owner, limits));
  for (const IpPrefix& range : Ranges(true)) {
    if (!InRange(range, ip)) continue;
    CountAllocation(range, "static", created, begin);
    break;
  }
  if (!created) return Error(Code::kInvalid, "provided IP is already allocated");
  return {};
}

void IpAllocator::Release(std::string_view ip, const ServiceRef& owner) {
  Result<IpAddress> parsed = IpAddress::Parse(ip);
  const std::string name = parsed ? parsed->ToString() : std::string(ip);
  storage::Limits limits{std::chrono::steady_clock::now() + std::chrono::seconds(10), {}};
  Result<ObjectPtr> found = store_.Get(IpAddresses(), name, "", limits);
  if (!found) {
    log::Warn("Cannot release a cluster IP", {{"ip", ip}, {"err", found.error()}});
    return;
  }
  if (!*found) return;
  auto message = (*found)->Decode();
  if (!OwnedBy(static_cast<const networkingv1::IPAddress&>(*message), owner)) return;
  storage::Conflict conflict;
  Result<int64_t> deleted = store_.Delete(IpAddresses(), name, (*found)->revision(), conflict, limits);
  if (deleted || deleted.error().Is(Code::kConflict)) return;
  log::Warn("Cannot release a cluster IP", {{"ip", ip}, {"err", deleted.error()}});
}

void TellAddresses(storage::Store& store, Clock& clock) {
  const std::vector<IpPrefix> ranges = IpAllocator(store, clock).Ranges(false);
  std::vector<int64_t> taken(ranges.size());
  store.ForEach(IpAddresses(), [&](const ObjectPtr& object) {
    Result<IpAddress> ip = IpAddress::Parse(object->name());
    for (size_t i = 0; ip && i < ranges.size(); ++i) taken[i] += IpAllocator::InRange(ranges[i], *ip);
  });
  allocated_ips.Clear();
  available_ips.Clear();
  for (size_t i = 0; i < ranges.size(); ++i) {
    allocated_ips.With({ranges[i].ToString()}).Set(static_cast<double>(taken[i]));
    available_ips.With({ranges[i].ToString()}).Set(static_cast<double>(Usable(ranges[i]) - taken[i]));
  }
}

}  // namespace keelson::registry
