#include "controlplane/registry/service_repair.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "controlplane/registry/service_families.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/metrics/metrics.h"

namespace keelson::registry {
namespace {

namespace networkingv1 = api::networking::v1;
using corev1::Service;

constexpr std::chrono::minutes kPeriod{3};
constexpr std::chrono::seconds kGrace{60}, kPatience{30};
constexpr char kUnknownError[] = "UnknownError";

metrics::Family& ip_errors = metrics::Counter(
    "apiserver_clusterip_repair_ip_errors_total",
    "Number of errors detected on clusterips by the repair loop broken down by type of error: "
    "leak, repair, full, outOfRange, duplicate, unknown, invalid",
    {"type"});
metrics::Value& ip_failures =
    metrics::Counter("apiserver_clusterip_repair_reconcile_errors_total",
                     "Number of reconciliation failures on the clusterip repair reconcile loop")
        .With();
metrics::Family& port_errors = metrics::Counter(
    "apiserver_nodeport_repair_port_errors_total",
    "Number of errors detected on ports by the repair loop broken down by type of error: leak, "
    "repair, full, outOfRange, duplicate, unknown",
    {"type"});
metrics::Value& port_failures =
    metrics::Counter("apiserver_nodeport_repair_reconcile_errors_total",
                     "Number of reconciliation failures on the nodeport repair reconcile loop")
        .With();

// Counts by the reason of the event.
void CountRepair(std::string_view reason) {
  static constexpr struct {
    std::string_view reason;
    const char* type;
    bool port;
  } kReasons[] = {{"ClusterIPNotValid", "invalid", false},
                  {"ClusterIPOutOfRange", "outOfRange", false},
                  {"ClusterIPAlreadyAllocated", "duplicate", false},
                  {"ClusterIPNotAllocated", "repair", false},
                  {"IPAddressNotAllocated", "leak", false},
                  {kUnknownError, "unknown", false},
                  {"PortOutOfRange", "outOfRange", true},
                  {"PortAlreadyAllocated", "duplicate", true},
                  {"PortNotAllocated", "repair", true}};
  for (const auto& one : kReasons) {
    if (one.reason == reason) (one.port ? port_errors : ip_errors).With({one.type}).Increment();
  }
}

const ResourceInfo& IpAddresses() {
  static const ResourceInfo& info = api::ResourceOf<networkingv1::IPAddress>();
  return info;
}

bool HasAddresses(const Service& service) {
  return service.spec().type() != "ExternalName" && !IsHeadless(service.spec());
}

bool IsOurs(const networkingv1::IPAddress& address) {
  const auto& labels = address.metadata().labels();
  auto manager = labels.find(kManagedByLabel);
  return manager != labels.end() && manager->second == kIpManager;
}

ServiceRef RefOf(const Service& service) {
  return {service.metadata().namespace_(), service.metadata().name()};
}

bool RefersTo(const networkingv1::ParentReference& parent, const ServiceRef& owner) {
  return parent.group().empty() && parent.resource() == "services" && parent.namespace_() == owner.ns &&
         parent.name() == owner.name;
}

storage::Limits Soon(std::stop_token stop) {
  return {std::chrono::steady_clock::now() + kPatience, std::move(stop)};
}

}  // namespace

struct ServiceRepair::Vanished : storage::WatchSink {
  Mutex mutex;
  CondVar changed;
  std::set<std::string> services KEELSON_GUARDED_BY(mutex);  // keys
  bool ended KEELSON_GUARDED_BY(mutex) = true;

  bool OnEvent(const storage::EventPtr& event) override {
    if (event->type() != storage::Event::Type::kDeleted) return true;
    auto message = event->object()->Decode();
    const auto& parent = static_cast<const networkingv1::IPAddress&>(*message).spec().parent_ref();
    if (parent.resource() != "services") return true;
    MutexLock lock(mutex);
    services.insert(api::KeyOf(parent.namespace_(), parent.name()));
    changed.notify_all();
    return true;
  }
  void OnEnd(const Error&) override {
    MutexLock lock(mutex);
    ended = true;
    changed.notify_all();
  }
};

ServiceRepair::ServiceRepair(ServiceAllocator& allocator, Clock& clock, Warn warn)
    : allocator_(allocator),
      store_(allocator.store()),
      clock_(clock),
      warn_([warn = std::move(warn)](const Message& about, std::string_view reason, std::string note) {
        CountRepair(reason);
        warn(about, reason, std::move(note));
      }),
      vanished_(std::make_shared<Vanished>()) {}
ServiceRepair::~ServiceRepair() = default;

Result<> ServiceRepair::RunOnce(const storage::Limits& limits) {
  std::vector<ObjectPtr> services, addresses;
  store_.ForEach(api::ResourceOf<Service>(), [&](const ObjectPtr& object) { services.push_back(object); });
  store_.ForEach(IpAddresses(), [&](const ObjectPtr& object) { addresses.push_back(object); });
  for (const ObjectPtr& object : services) {
    auto message = object->Decode();
    KEELSON_RETURN_IF_ERROR(RepairService(static_cast<const Service&>(*message), limits));
  }
  for (const ObjectPtr& object : addresses) KEELSON_RETURN_IF_ERROR(RepairAddress(object, limits));
  Result<> ports = RepairPorts(limits);
  if (!ports) port_failures.Increment();
  return ports;
}

Result<> ServiceRepair::RepairService(const Service& service, const storage::Limits& limits) {
  if (!HasAddresses(service)) return {};
  const std::vector<IpPrefix> ranges = allocator_.ips().Ranges(false);
  for (const std::string& ip : service.spec().cluster_ips()) {
    if (!ip.empty()) KEELSON_RETURN_IF_ERROR(RepairIp(service, ip, ranges, limits));
  }
  return {};
}

Result<> ServiceRepair::RepairIp(const Service& service, const std::string& text,
                                 const std::vector<IpPrefix>& ranges, const storage::Limits& limits) {
  Result<IpAddress> ip = IpAddress::Parse(text);
  if (!ip) {
    warn_(service, "ClusterIPNotValid",
          fmt::format("Cluster IP {} is not a valid IP; please recreate Service", text));
    return {};
  }
  const std::string_view family = FamilyOf(text);
  if (std::none_of(ranges.begin(), ranges.end(),
                   [&](const IpPrefix& range) { return range.Contains(*ip); })) {
    warn_(
        service, "ClusterIPOutOfRange",
        fmt::format("Cluster IP [{}]: {} is not within any configured Service CIDR; please recreate service",
                    family, text));
    return {};
  }
  const ServiceRef owner = RefOf(service);
  KEELSON_ASSIGN_OR_RETURN(ObjectPtr found, store_.Get(IpAddresses(), ip->ToString(), "", limits));
  if (found) {
    auto message = found->Decode();
    const auto& address = static_cast<const networkingv1::IPAddress&>(*message);
    const auto& parent = address.spec().parent_ref();
    if (RefersTo(parent, owner)) return {};
    if (HeldByService(parent, ip->ToString())) {
      warn_(service, "ClusterIPAlreadyAllocated",
            fmt::format("Cluster IP [{}]:{} was assigned to multiple services; please recreate service",
                        family, text));
      return {};
    }
    warn_(service, "ClusterIPNotAllocated",
          fmt::format("the ClusterIP [{}]: {} for Service {}/{} has a wrong reference; repairing", family,
                      text, owner.ns, owner.name));
    KEELSON_ASSIGN_OR_RETURN([[maybe_unused]] bool removed, Remove(found, limits));
  } else {
    warn_(service, "ClusterIPNotAllocated",
          fmt::format("Cluster IP [{}]: {} is not allocated; repairing", family, text));
  }
  Result<> claimed = allocator_.ips().Claim(text, owner, false, limits);
  if (claimed) return {};
  if (!claimed.error().Is(Code::kInvalid)) return claimed.error();
  warn_(service, kUnknownError,
        fmt::format("Unable to allocate Cluster IP [{}]:{} due to an unknown error", family, text));
  return {};
}

bool ServiceRepair::HeldByService(const networkingv1::ParentReference& parent, std::string_view ip) const {
  if (!parent.group().empty() || parent.resource() != "services") return false;
  ObjectPtr object = store_.Peek(api::ResourceOf<Service>(), api::KeyOf(parent.namespace_(), parent.name()));
  if (!object) return false;
  auto message = object->Decode();
  const auto& service = static_cast<const Service&>(*message);
  if (!HasAddresses(service)) return false;
  const auto& ips = service.spec().cluster_ips();
  return std::any_of(ips.begin(), ips.end(), [&](const std::string& held) {
    Result<IpAddress> parsed = IpAddress::Parse(held);
    return parsed && parsed->ToString() == ip;
  });
}

Result<> ServiceRepair::RepairAddress(const ObjectPtr& object, const storage::Limits& limits) {
  auto message = object->Decode();
  const auto& address = static_cast<const networkingv1::IPAddress&>(*message);
  const std::string& name = address.metadata().name();
  if (!IsOurs(address)) return {};
  const auto& parent = address.spec().parent_ref();
  if (parent.resource() != "services" || !parent.group().empty()) {
    KEELSON_ASSIGN_OR_RETURN(bool removed, Remove(object, limits));
    if (removed) {
      warn_(address, "IPAddressNotAllocated",
            fmt::format("IPAddress appears to have been modified, not referencing a Service {}: cleaning up",
                        name));
    }
    return {};
  }
  if (HeldByService(parent, name)) return {};
  // It may be waiting for its Service, which another server is about to write.
  if (clock_.Now() < api::FromTime(address.metadata().creation_timestamp()) + kGrace) return {};
  // The cache may be behind: the Service may exist by now, and its write must not lose the address.
  const std::string key = api::KeyOf(parent.namespace_(), parent.name());
  KEELSON_ASSIGN_OR_RETURN(ObjectPtr service, store_.Get(api::ResourceOf<Service>(), key, "", limits));
  if (service && HeldByService(parent, name)) return {};
  KEELSON_ASSIGN_OR_RETURN(bool removed, Remove(object, limits));
  if (removed) {
    warn_(address, "IPAddressNotAllocated",
          fmt::format("IPAddress: {} for Service {}/{} appears to have leaked: cleaning up", name,
                      parent.namespace_(), parent.name()));
  }
  return {};
}

Result<bool> ServiceRepair::Remove(const ObjectPtr& address, const storage::Limits& limits) {
  storage::Conflict conflict;
  Result<int64_t> deleted =
      store_.Delete(IpAddresses(), address->key(), address->revision(), conflict, limits);
  if (!deleted && !deleted.error().Is(Code::kConflict)) return deleted.error();
  return deleted.has_value();
}

Result<> ServiceRepair::RepairPorts(const storage::Limits& limits) {
  std::map<int, std::shared_ptr<const Message>> owners;
  std::set<int> used;
  store_.ForEach(api::ResourceOf<Service>(), [&](const ObjectPtr& object) {
    auto message = object->Decode();
    const auto& service = static_cast<const Service&>(*message);
    std::set<int> ports;
    for (const auto& port : service.spec().ports()) ports.insert(port.node_port());
    ports.insert(service.spec().health_check_node_port());
    ports.erase(0);
    for (int port : ports) {
      if (!allocator_.ports().InRange(port)) {
        warn_(service, "PortOutOfRange",
              fmt::format("Port {} is not within the port range {}; please recreate service", port,
                          allocator_.ports().RangeText()));
      } else if (!owners.emplace(port, message).second) {
        warn_(service, "PortAlreadyAllocated",
              fmt::format("Port {} was assigned to multiple services; please recreate service", port));
      }
    }
    used.insert(ports.begin(), ports.end());
  });
  KEELSON_ASSIGN_OR_RETURN(std::set<int> unknown, allocator_.ports().Reconcile(used, limits));
  for (int port : unknown) {
    warn_(*owners.at(port), "PortNotAllocated", fmt::format("Port {} is not allocated; repairing", port));
  }
  return {};
}

void ServiceRepair::Run(std::stop_token stop) {
  std::unique_ptr<storage::WatchHandle> watch;
  SteadyTime next = clock_.SteadyNow() + kPeriod;
  while (!stop.stop_requested()) {
    std::set<std::string> keys;
    bool ended = false;
    {
      MutexLock lock(vanished_->mutex);
      vanished_->changed.wait_for(vanished_->mutex, stop, std::chrono::seconds(10),
                                  [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
                                    return vanished_->ended || !vanished_->services.empty();
                                  });
      keys.swap(vanished_->services);
      ended = std::exchange(vanished_->ended, false);
    }
    if (stop.stop_requested()) break;
    if (ended) {
      watch.reset();
      storage::WatchRequest request;
      request.initial_events = true;
      Result<std::unique_ptr<storage::WatchHandle>> started =
          store_.Watch(IpAddresses(), request, vanished_, Soon(stop));
      if (started) watch = std::move(*started);
      next = clock_.SteadyNow();  // unwatched changes must be looked for
    }
    Result<> done;
    for (const std::string& key : keys) {
      ObjectPtr object = store_.Peek(api::ResourceOf<Service>(), key);
      if (!object || !done) continue;
      auto message = object->Decode();
      done = RepairService(static_cast<const Service&>(*message), Soon(stop));
    }
    if (done) done = allocator_.EnsureDefaultCidr(Soon(stop));
    if (done && clock_.SteadyNow() >= next) {
      done = RunOnce(Soon(stop));
      next = clock_.SteadyNow() + kPeriod;
    }
    if (!done) ip_failures.Increment();
    if (!done && !stop.stop_requested()) {
      log::Warn("Cannot repair what Services hold", {{"err", done.error()}});
    }
  }
}

}  // namespace keelson::registry
