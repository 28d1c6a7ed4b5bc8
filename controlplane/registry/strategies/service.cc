// Services: addresses and ports that the cluster assigns, and fields that depend on the type.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "controlplane/registry/service_allocator.h"
#include "controlplane/registry/service_families.h"
#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/validation/network/service_rules.h"

namespace keelson::registry {
namespace {

using corev1::Service;
using corev1::ServiceSpec;
using k8s::Path;

bool IsBalanced(const ServiceSpec& spec) { return spec.type() == "LoadBalancer"; }
bool NeedsClusterIp(const ServiceSpec& spec) {
  return spec.type() == "ClusterIP" || spec.type() == "NodePort" || IsBalanced(spec);
}
bool NeedsNodePorts(const ServiceSpec& spec) { return spec.type() == "NodePort" || IsBalanced(spec); }
// Load balancers that reach pods directly may do without node ports; ports given explicitly are still
// taken.
bool GetsNodePorts(const ServiceSpec& spec) {
  return spec.type() == "NodePort" || (IsBalanced(spec) && spec.allocate_load_balancer_node_ports());
}
bool NeedsHealthCheckPort(const ServiceSpec& spec) {
  return IsBalanced(spec) && spec.external_traffic_policy() == "Local";
}
bool HasExternalTraffic(const ServiceSpec& spec) {
  return spec.type() == "NodePort" || IsBalanced(spec) ||
         (spec.type() == "ClusterIP" && spec.external_ips_size() > 0);
}
bool HoldsAddresses(const ServiceSpec& spec) { return NeedsClusterIp(spec) && !IsHeadless(spec); }

std::set<int> NodePorts(const ServiceSpec& spec) {
  std::set<int> ports;
  for (const auto& port : spec.ports()) {
    if (port.node_port() != 0) ports.insert(port.node_port());
  }
  return ports;
}

// clusterIP is the older form of clusterIPs[0]: a client that changes only clusterIP means both.
void SyncClusterIps(ServiceSpec& spec, const ServiceSpec* old) {
  const bool untouched = old ? SameClusterIps(spec, *old) : spec.cluster_ips_size() == 0;
  const bool changed = spec.cluster_ip() != (old ? old->cluster_ip() : "");
  if (!untouched || !changed) return;
  spec.clear_cluster_ips();
  if (!spec.cluster_ip().empty()) spec.add_cluster_ips(spec.cluster_ip());
}

// A port without a node port gets the one that the old port of its name had.
void KeepNodePorts(ServiceSpec& spec, const ServiceSpec& old) {
  std::set<int> before = NodePorts(old), used;
  for (int port : NodePorts(spec)) {
    if (before.count(port) != 0) used.insert(port);
  }
  std::map<std::string, int> by_name;
  for (const auto& port : old.ports()) by_name[port.name()] = port.node_port();
  for (auto& port : *spec.mutable_ports()) {
    if (port.node_port() != 0) continue;
    auto known = by_name.find(port.name());
    if (known != by_name.end() && known->second != 0 && used.insert(known->second).second) {
      port.set_node_port(known->second);
    }
  }
}

// On an update, fields that the client left out keep their allocated values.
void KeepAllocated(ServiceSpec& spec, const ServiceSpec& old) {
  if (NeedsClusterIp(spec) && NeedsClusterIp(old)) {
    if (spec.cluster_ip().empty()) spec.set_cluster_ip(old.cluster_ip());
    if (spec.cluster_ips_size() == 0 && spec.cluster_ip() == old.cluster_ip()) {
      *spec.mutable_cluster_ips() = old.cluster_ips();
    }
  }
  if (NeedsNodePorts(spec) && NeedsNodePorts(old)) KeepNodePorts(spec, old);
  if (NeedsHealthCheckPort(spec) && NeedsHealthCheckPort(old) && spec.health_check_node_port() == 0) {
    spec.set_health_check_node_port(old.health_check_node_port());
  }
}

// After a change of type, removes values that only the old type has and that the client merely sent back.
void DropOfOldType(Service& service, const ServiceSpec& old) {
  ServiceSpec& spec = *service.mutable_spec();
  if (NeedsClusterIp(old) && !NeedsClusterIp(spec)) {
    if (SameClusterIps(spec, old)) {
      spec.clear_cluster_ip();
      spec.clear_cluster_ips();
    }
    if (SameFamilies(spec, old)) spec.clear_ip_families();
    if (spec.ip_family_policy() == old.ip_family_policy()) spec.clear_ip_family_policy();
  }
  const std::set<int> before = NodePorts(old), now = NodePorts(spec);
  if (NeedsNodePorts(old) && !NeedsNodePorts(spec) &&
      std::includes(before.begin(), before.end(), now.begin(), now.end())) {
    for (auto& port : *spec.mutable_ports()) port.clear_node_port();
  }
  if (NeedsHealthCheckPort(old) && !NeedsHealthCheckPort(spec) &&
      spec.health_check_node_port() == old.health_check_node_port()) {
    spec.clear_health_check_node_port();
  }
  if (IsBalanced(old) && !IsBalanced(spec)) {
    if (spec.allocate_load_balancer_node_ports() == old.allocate_load_balancer_node_ports()) {
      spec.clear_allocate_load_balancer_node_ports();
    }
    if (spec.load_balancer_class() == old.load_balancer_class()) spec.clear_load_balancer_class();
  }
  if (HasExternalTraffic(old) && !HasExternalTraffic(spec) &&
      spec.external_traffic_policy() == old.external_traffic_policy()) {
    spec.clear_external_traffic_policy();
  }
  // The load balancer itself is removed later; hide it at once.
  if (!IsBalanced(spec) && service.has_status()) service.mutable_status()->clear_load_balancer();
}

// The ports of one write: taken at once and released on failure; ports that the write drops are released on
// success.
class PortOperation {
 public:
  PortOperation(const Context& context, PortAllocator& allocator, Effects& effects)
      : allocator_(allocator),
        effects_(effects),
        limits_(context.limits),
        dry_run_(context.options.dry_run) {}

  Result<> Claim(int port) {
    // A dry run takes nothing, so it remembers what it would have taken.
    if (!ours_.insert(port).second) return Error(Code::kInvalid, "provided port is already allocated");
    KEELSON_RETURN_IF_ERROR(allocator_.Claim(port, dry_run_, limits_));
    Undo(port);
    return {};
  }
  Result<int> Allocate() {
    KEELSON_ASSIGN_OR_RETURN(int port, allocator_.Allocate(dry_run_, limits_));
    ours_.insert(port);
    Undo(port);
    return port;
  }
  void Release(int port) {
    if (port == 0 || dry_run_) return;
    effects_.OnDone([this_allocator = &allocator_, port] { this_allocator->Release(port); });
  }

 private:
  void Undo(int port) {
    if (dry_run_) return;
    effects_.OnUndo([this_allocator = &allocator_, port] { this_allocator->Release(port); });
  }
  PortAllocator& allocator_;
  Effects& effects_;
  const storage::Limits limits_;
  const bool dry_run_;
  std::set<int> ours_;
};

class ServiceStrategy : public Strategy {
 public:
  ServiceStrategy(const ResourceInfo& info, ServiceAllocator& allocator)
      : Strategy(info), allocator_(allocator) {}

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    SyncClusterIps(*static_cast<Service&>(object).mutable_spec(), nullptr);
  }

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    auto& service = static_cast<Service&>(object);
    const ServiceSpec& before = static_cast<const Service&>(old).spec();
    KeepAllocated(*service.mutable_spec(), before);
    SyncClusterIps(*service.mutable_spec(), &before);
    DropOfOldType(service, before);
  }

  Result<> Allocate(const Context& context, Message& object, const Message* old,
                    Effects& effects) const override {
    auto& service = static_cast<Service&>(object);
    ServiceSpec& spec = *service.mutable_spec();
    const ServiceSpec* before = old ? &static_cast<const Service*>(old)->spec() : nullptr;
    const bool settled = before && IsSettledDualStack(spec, *before);
    if (k8s::FieldErrors errors = ChooseFamilies(spec, before, allocator_.families()); !errors.empty()) {
      return k8s::ToInvalid(info_.Gvk(), service.metadata().name(), errors);
    }
    if (!settled) KEELSON_RETURN_IF_ERROR(AllocateIps(context, service, before, effects));
    return AllocatePorts(context, service, before, effects);
  }

  void Deleted(const Context&, const Message& object) const override {
    const auto& service = static_cast<const Service&>(object);
    const ServiceSpec& spec = service.spec();
    if (HoldsAddresses(spec)) {
      for (const std::string& ip : spec.cluster_ips()) allocator_.ips().Release(ip, RefOf(service));
    }
    for (int port : NodePorts(spec)) allocator_.ports().Release(port);
    if (NeedsHealthCheckPort(spec)) allocator_.ports().Release(spec.health_check_node_port());
  }

 private:
  static ServiceRef RefOf(const Service& service) {
    return {service.metadata().namespace_(), service.metadata().name()};
  }
  Error Invalid(const Service& service, k8s::FieldError error) const {
    return k8s::ToInvalid(info_.Gvk(), service.metadata().name(), {std::move(error)});
  }

  // Allocates an address for every family that has none and had none before.
  Result<> AllocateIps(const Context& context, Service& service, const ServiceSpec* old,
                       Effects& effects) const {
    ServiceSpec& spec = *service.mutable_spec();
    const bool had = old && HoldsAddresses(*old);
    int kept = 0;
    if (HoldsAddresses(spec)) {
      kept = had ? std::min(old->cluster_ips_size(), spec.ip_families_size()) : 0;
      for (int i = kept; i < spec.ip_families_size(); ++i) {
        KEELSON_RETURN_IF_ERROR(TakeIp(context, service, i, effects));
      }
      if (spec.cluster_ips_size() > 0) spec.set_cluster_ip(spec.cluster_ips(0));
    }
    // Validation refuses a Service that becomes headless.
    if (!had || context.options.dry_run || IsHeadless(spec)) return {};
    for (int i = kept; i < old->cluster_ips_size(); ++i) {
      effects.OnDone([ips = &allocator_.ips(), ip = old->cluster_ips(i), owner = RefOf(service)] {
        ips->Release(ip, owner);
      });
    }
    return {};
  }

  Result<> TakeIp(const Context& context, Service& service, int i, Effects& effects) const {
    ServiceSpec& spec = *service.mutable_spec();
    const bool dry_run = context.options.dry_run;
    const ServiceRef owner = RefOf(service);
    while (spec.cluster_ips_size() <= i) spec.add_cluster_ips();
    std::string ip = spec.cluster_ips(i);
    if (ip.empty()) {
      KEELSON_ASSIGN_OR_RETURN(
          ip, allocator_.ips().Allocate(spec.ip_families(i), owner, dry_run, context.limits));
      spec.set_cluster_ips(i, ip);
    } else if (Result<> claimed = allocator_.ips().Claim(ip, owner, dry_run, context.limits); !claimed) {
      if (!claimed.error().Is(Code::kInvalid)) return claimed.error();
      const Path path("spec");
      return Invalid(service, k8s::InvalidRaw(path.Child("clusterIPs"), k8s::PrintNames(spec.cluster_ips()),
                                              fmt::format("failed to allocate IP {}: {}", ip,
                                                          claimed.error().message())));
    }
    if (!dry_run) effects.OnUndo([ips = &allocator_.ips(), ip, owner] { ips->Release(ip, owner); });
    return {};
  }

  Error InvalidNodePort(const Service& service, int index, int port, const Error& error) const {
    if (!error.Is(Code::kInvalid)) return error;
    const Path path("spec");
    const Path ports = path.Child("ports");
    const Path item = ports.Index(index);
    return Invalid(service, k8s::Invalid(item.Child("nodePort"), int64_t{port}, error.message()));
  }
  static Result<> TakeAny(PortOperation& operation, corev1::ServicePort& port) {
    Result<int> taken = operation.Allocate();
    if (!taken) {
      return Error(Code::kInternal,
                   "Internal error occurred: failed to allocate a nodePort: " + taken.error().message());
    }
    port.set_node_port(*taken);
    return {};
  }

  // Ports with the same number and different protocols share a node port if possible.
  Result<> NewNodePorts(Service& service, PortOperation& operation) const {
    ServiceSpec& spec = *service.mutable_spec();
    std::map<int, int> by_port;
    for (int i = 0; i < spec.ports_size(); ++i) {
      auto& port = *spec.mutable_ports(i);
      if (port.node_port() == 0 && !GetsNodePorts(spec)) continue;
      auto [shared, first] = by_port.try_emplace(port.port(), 0);
      if (first) {
        int wanted = 0;
        for (const auto& other : spec.ports()) {
          if (wanted == 0 && other.port() == port.port()) wanted = other.node_port();
        }
        if (wanted == 0) {
          KEELSON_RETURN_IF_ERROR(TakeAny(operation, port));
        } else {
          Result<> taken = operation.Claim(wanted);
          if (!taken) return InvalidNodePort(service, i, wanted, taken.error());
          port.set_node_port(wanted);
        }
        shared->second = port.node_port();
      } else if (port.node_port() == 0) {
        port.set_node_port(shared->second);
      } else if (port.node_port() != shared->second) {
        Result<> taken = operation.Claim(port.node_port());
        if (!taken) return InvalidNodePort(service, i, port.node_port(), taken.error());
      }
    }
    return {};
  }

  Result<> ChangedNodePorts(Service& service, const ServiceSpec& old, PortOperation& operation) const {
    ServiceSpec& spec = *service.mutable_spec();
    const std::set<int> before = NodePorts(old);
    std::set<int> taken_here;
    std::set<std::pair<std::string, int>> seen;
    for (int i = 0; i < spec.ports_size(); ++i) {
      auto& port = *spec.mutable_ports(i);
      if (port.node_port() == 0) {
        if (!GetsNodePorts(spec)) continue;
        KEELSON_RETURN_IF_ERROR(TakeAny(operation, port));
      } else if (before.count(port.node_port()) == 0 && taken_here.insert(port.node_port()).second) {
        Result<> taken = operation.Claim(port.node_port());
        if (!taken) return InvalidNodePort(service, i, port.node_port(), taken.error());
      }
      if (!seen.emplace(port.protocol(), port.node_port()).second) {
        return Error(Code::kInternal,
                     fmt::format("duplicate nodePort: {{{} {}}}", port.protocol(), port.node_port()));
      }
    }
    const std::set<int> now = NodePorts(spec);
    for (int port : before) {
      if (now.count(port) == 0) operation.Release(port);
    }
    return {};
  }

  static Result<> TakeHealthCheckPort(ServiceSpec& spec, PortOperation& operation) {
    const int wanted = spec.health_check_node_port();
    if (wanted != 0) {
      Result<> taken = operation.Claim(wanted);
      if (taken) return {};
      return Error(
          Code::kInternal,
          fmt::format("Internal error occurred: failed to allocate requested HealthCheck NodePort {}: {}",
                      wanted, taken.error().message()));
    }
    Result<int> taken = operation.Allocate();
    if (!taken) {
      return Error(Code::kInternal,
                   fmt::format("Internal error occurred: failed to allocate a HealthCheck NodePort {}: {}",
                               wanted, taken.error().message()));
    }
    spec.set_health_check_node_port(*taken);
    return {};
  }

  Result<> AllocatePorts(const Context& context, Service& service, const ServiceSpec* old,
                         Effects& effects) const {
    ServiceSpec& spec = *service.mutable_spec();
    PortOperation operation(context, allocator_.ports(), effects);
    if (NeedsNodePorts(spec)) {
      KEELSON_RETURN_IF_ERROR(old ? ChangedNodePorts(service, *old, operation)
                                  : NewNodePorts(service, operation));
    } else if (old && NeedsNodePorts(*old)) {
      for (int port : NodePorts(*old)) operation.Release(port);
    }
    const bool needed = old && NeedsHealthCheckPort(*old), needs = NeedsHealthCheckPort(spec);
    if (needs && !needed) return TakeHealthCheckPort(spec, operation);
    if (needed && !needs) operation.Release(old->health_check_node_port());
    return {};
  }

  ServiceAllocator& allocator_;
};

}  // namespace

std::unique_ptr<Strategy> MakeServiceStrategy(const ResourceInfo& info, ServiceAllocator& allocator) {
  return std::make_unique<ServiceStrategy>(info, allocator);
}

}  // namespace keelson::registry
