// Services: addresses and ports that the cluster hands out, and the fields that depend on the type.
#include <algorithm>
#include <set>

#include "controlplane/registry/service_allocator.h"
#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {
namespace {

using corev1::Service;
using corev1::ServiceSpec;

bool IsHeadless(const ServiceSpec& spec) { return spec.cluster_ip() == "None"; }
bool NeedsClusterIp(const ServiceSpec& spec) { return spec.type() != "ExternalName"; }
bool NeedsNodePorts(const ServiceSpec& spec) {
  if (spec.type() == "NodePort") return true;
  return spec.type() == "LoadBalancer" &&
         (!spec.has_allocate_load_balancer_node_ports() || spec.allocate_load_balancer_node_ports());
}
bool NeedsHealthCheckPort(const ServiceSpec& spec) {
  return spec.type() == "LoadBalancer" && spec.external_traffic_policy() == "Local";
}
bool HasExternalTraffic(const ServiceSpec& spec) {
  return spec.type() == "NodePort" || spec.type() == "LoadBalancer" ||
         (spec.type() == "ClusterIP" && spec.external_ips_size() > 0);
}

std::string_view Other(std::string_view family) {
  return family == ServiceAllocator::kIpv4 ? ServiceAllocator::kIpv6 : ServiceAllocator::kIpv4;
}

template <typename List>
bool SameList(const List& a, const List& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::set<int> NodePorts(const ServiceSpec& spec) {
  std::set<int> ports;
  for (const auto& port : spec.ports()) {
    if (port.node_port() != 0) ports.insert(port.node_port());
  }
  if (spec.health_check_node_port() != 0) ports.insert(spec.health_check_node_port());
  return ports;
}

// clusterIP and clusterIPs[0] are one field in two places.
void SyncClusterIps(ServiceSpec& spec, const ServiceSpec* old) {
  if (old && !SameList(spec.cluster_ips(), old->cluster_ips())) {
    if (spec.cluster_ip().empty() && spec.cluster_ips_size() > 0) spec.set_cluster_ip(spec.cluster_ips(0));
    return;
  }
  if (old && spec.cluster_ip() != old->cluster_ip()) spec.clear_cluster_ips();
  if (spec.cluster_ips_size() == 0 && !spec.cluster_ip().empty()) spec.add_cluster_ips(spec.cluster_ip());
  if (spec.cluster_ip().empty() && spec.cluster_ips_size() > 0) spec.set_cluster_ip(spec.cluster_ips(0));
}

// What the client left out on an update is what was allocated before.
void KeepAllocated(ServiceSpec& spec, const ServiceSpec& old) {
  if (NeedsClusterIp(spec) && NeedsClusterIp(old)) {
    if (spec.cluster_ip().empty() && spec.cluster_ips_size() == 0) {
      spec.set_cluster_ip(old.cluster_ip());
      *spec.mutable_cluster_ips() = old.cluster_ips();
    }
    if (spec.ip_families_size() == 0) *spec.mutable_ip_families() = old.ip_families();
    if (!spec.has_ip_family_policy() && old.has_ip_family_policy())
      spec.set_ip_family_policy(old.ip_family_policy());
  }
  if (NeedsNodePorts(spec) && NeedsNodePorts(old)) {
    std::set<int> used = NodePorts(spec);
    for (auto& port : *spec.mutable_ports()) {
      if (port.node_port() != 0) continue;
      for (const auto& before : old.ports()) {
        if (before.port() != port.port() || before.protocol() != port.protocol() || before.node_port() == 0)
          continue;
        if (used.insert(before.node_port()).second) port.set_node_port(before.node_port());
      }
    }
  }
  if (NeedsHealthCheckPort(spec) && NeedsHealthCheckPort(old) && spec.health_check_node_port() == 0)
    spec.set_health_check_node_port(old.health_check_node_port());
}

// After a change of type: values that only the old type had and that the client merely sent back.
void DropOfOldType(ServiceSpec& spec, const ServiceSpec& old) {
  if (NeedsClusterIp(old) && !NeedsClusterIp(spec)) {
    if (SameList(spec.cluster_ips(), old.cluster_ips()) && spec.cluster_ip() == old.cluster_ip()) {
      spec.clear_cluster_ip();
      spec.clear_cluster_ips();
    }
    spec.clear_ip_families();
    spec.clear_ip_family_policy();
    spec.clear_internal_traffic_policy();
  }
  if (NeedsNodePorts(old) && !NeedsNodePorts(spec)) {
    std::set<int> before = NodePorts(old);
    for (auto& port : *spec.mutable_ports()) {
      if (before.count(port.node_port()) != 0) port.clear_node_port();
    }
  }
  if (NeedsHealthCheckPort(old) && !NeedsHealthCheckPort(spec) &&
      spec.health_check_node_port() == old.health_check_node_port())
    spec.clear_health_check_node_port();
  if (old.type() == "LoadBalancer" && spec.type() != "LoadBalancer") {
    spec.clear_allocate_load_balancer_node_ports();
    spec.clear_load_balancer_class();
  }
  if (HasExternalTraffic(old) && !HasExternalTraffic(spec)) spec.clear_external_traffic_policy();
}

class ServiceStrategy : public Strategy {
 public:
  ServiceStrategy(const ResourceInfo& info, ServiceAllocator& allocator)
      : Strategy(info), allocator_(allocator) {}

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    ServiceSpec& spec = *static_cast<Service&>(object).mutable_spec();
    SyncClusterIps(spec, nullptr);
    ChooseFamilies(spec);
  }

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    ServiceSpec& spec = *static_cast<Service&>(object).mutable_spec();
    const ServiceSpec& before = static_cast<const Service&>(old).spec();
    KeepAllocated(spec, before);
    DropOfOldType(spec, before);
    SyncClusterIps(spec, &before);
    ChooseFamilies(spec);
    // Back to one family: the second address goes.
    if (spec.ip_families_size() == 1 && spec.cluster_ips_size() == 2)
      spec.mutable_cluster_ips()->RemoveLast();
  }

  Result<> Allocate(const Context& context, Message& object, const Message* old,
                    Effects& effects) const override {
    auto& service = static_cast<Service&>(object);
    const ServiceSpec none;
    const ServiceSpec& before = old ? static_cast<const Service*>(old)->spec() : none;
    RETURN_IF_ERROR(AllocateIps(context, service, before, effects));
    return AllocatePorts(context, service, before, effects);
  }

  void Deleted(const Context&, const Message& object) const override {
    const auto& service = static_cast<const Service&>(object);
    ServiceAllocator::Owner owner{service.metadata().namespace_(), service.metadata().name()};
    for (const std::string& ip : service.spec().cluster_ips()) {
      if (!ip.empty() && ip != "None") allocator_.ReleaseIp(ip, owner);
    }
    for (int port : NodePorts(service.spec())) allocator_.ReleasePort(port);
  }

 private:
  void ChooseFamilies(ServiceSpec& spec) const {
    if (!NeedsClusterIp(spec)) return;
    auto& families = *spec.mutable_ip_families();
    if (families.empty()) {
      for (const std::string& ip : spec.cluster_ips()) {
        if (!ip.empty() && ip != "None")
          families.Add(std::string(ip.find(':') == std::string::npos ? ServiceAllocator::kIpv4
                                                                     : ServiceAllocator::kIpv6));
      }
    }
    bool any_family = IsHeadless(spec) && spec.selector().empty();
    if (!spec.has_ip_family_policy()) {
      bool two = any_family || families.size() == 2 || spec.cluster_ips_size() == 2;
      spec.set_ip_family_policy(two ? "RequireDualStack" : "SingleStack");
    }
    if (families.empty()) families.Add(std::string(allocator_.families()[0]));
    bool wants_two = spec.ip_family_policy() != "SingleStack";
    if (wants_two && families.size() == 1 && (any_family || allocator_.dual_stack()))
      families.Add(std::string(Other(families[0])));
    if (!wants_two && families.size() == 2 && spec.cluster_ips_size() < 2) families.RemoveLast();
  }

  Error Invalid(const Service& service, k8s::FieldError error) const {
    return k8s::ToInvalid(info_.Gvk(), service.metadata().name(), {std::move(error)});
  }

  Result<> AllocateIps(const Context& context, Service& service, const ServiceSpec& before,
                       Effects& effects) const {
    ServiceSpec& spec = *service.mutable_spec();
    const bool dry_run = context.options.dry_run;
    const k8s::Path path("spec");
    ServiceAllocator::Owner owner{service.metadata().namespace_(), service.metadata().name()};
    auto held = [](const ServiceSpec& s, const std::string& ip) {
      return std::find(s.cluster_ips().begin(), s.cluster_ips().end(), ip) != s.cluster_ips().end();
    };
    if (NeedsClusterIp(spec) && !IsHeadless(spec)) {
      if (spec.ip_family_policy() == "RequireDualStack" && !allocator_.dual_stack())
        return Invalid(service, k8s::Invalid(path.Child("ipFamilyPolicy"), "RequireDualStack",
                                             "this cluster is not configured for dual-stack services"));
      for (int i = 0; i < spec.ip_families_size(); ++i) {
        bool named = i < spec.cluster_ips_size() && !spec.cluster_ips(i).empty();
        if (named && held(before, spec.cluster_ips(i))) continue;
        std::string ip;
        if (named) {
          ip = spec.cluster_ips(i);
          Result<> claimed = allocator_.ClaimIp(ip, owner, dry_run, context.limits);
          if (!claimed && claimed.error().Is(Code::kInvalid))
            return Invalid(service,
                           k8s::Invalid(path.Child("clusterIPs").Index(i), ip, claimed.error().message()));
          RETURN_IF_ERROR(claimed);
        } else {
          ASSIGN_OR_RETURN(ip, allocator_.AllocateIp(spec.ip_families(i), owner, dry_run, context.limits));
          if (i < spec.cluster_ips_size()) {
            spec.set_cluster_ips(i, ip);
          } else {
            spec.add_cluster_ips(ip);
          }
        }
        if (!dry_run) effects.OnUndo([this, ip, owner] { allocator_.ReleaseIp(ip, owner); });
      }
      if (spec.cluster_ips_size() > 0) spec.set_cluster_ip(spec.cluster_ips(0));
    }
    for (const std::string& ip : before.cluster_ips()) {
      if (ip.empty() || ip == "None" || dry_run || (NeedsClusterIp(spec) && held(spec, ip))) continue;
      effects.OnDone([this, ip, owner] { allocator_.ReleaseIp(ip, owner); });
    }
    return {};
  }

  Result<int> TakePort(const Context& context, int wanted, Effects& effects) const {
    const bool dry_run = context.options.dry_run;
    if (wanted != 0) {
      RETURN_IF_ERROR(allocator_.ClaimPort(wanted, dry_run));
    } else {
      ASSIGN_OR_RETURN(wanted, allocator_.AllocatePort(dry_run));
    }
    if (!dry_run) effects.OnUndo([this, wanted] { allocator_.ReleasePort(wanted); });
    return wanted;
  }

  Result<> AllocatePorts(const Context& context, Service& service, const ServiceSpec& before,
                         Effects& effects) const {
    ServiceSpec& spec = *service.mutable_spec();
    const k8s::Path path("spec");
    const std::set<int> old_ports = NodePorts(before);
    std::set<int> ours = old_ports;  // held, or taken in this call: a second protocol may share one
    if (NeedsNodePorts(spec)) {
      std::map<int, int> by_port;  // port -> node port, shared by the protocols of one port
      for (int i = 0; i < spec.ports_size(); ++i) {
        auto& port = *spec.mutable_ports(i);
        auto shared = by_port.find(port.port());
        if (port.node_port() == 0 && shared != by_port.end()) port.set_node_port(shared->second);
        if (port.node_port() == 0 || ours.count(port.node_port()) == 0) {
          Result<int> taken = TakePort(context, port.node_port(), effects);
          if (!taken && taken.error().Is(Code::kInvalid))
            return Invalid(service, k8s::Invalid(path.Child("ports").Index(i).Child("nodePort"),
                                                 port.node_port(), taken.error().message()));
          if (!taken) return taken.error();
          port.set_node_port(*taken);
          ours.insert(*taken);
        }
        by_port.emplace(port.port(), port.node_port());
      }
    }
    if (NeedsHealthCheckPort(spec) &&
        (spec.health_check_node_port() == 0 || ours.count(spec.health_check_node_port()) == 0)) {
      Result<int> taken = TakePort(context, spec.health_check_node_port(), effects);
      if (!taken && taken.error().Is(Code::kInvalid))
        return Invalid(service, k8s::Invalid(path.Child("healthCheckNodePort"), spec.health_check_node_port(),
                                             taken.error().message()));
      if (!taken) return taken.error();
      spec.set_health_check_node_port(*taken);
    }
    if (context.options.dry_run) return {};
    const std::set<int> now = NodePorts(spec);
    for (int port : old_ports) {
      if (now.count(port) == 0) effects.OnDone([this, port] { allocator_.ReleasePort(port); });
    }
    return {};
  }

  ServiceAllocator& allocator_;
};

}  // namespace

std::unique_ptr<Strategy> MakeServiceStrategy(const ResourceInfo& info, ServiceAllocator& allocator) {
  return std::make_unique<ServiceStrategy>(info, allocator);
}

}  // namespace keelson::registry
