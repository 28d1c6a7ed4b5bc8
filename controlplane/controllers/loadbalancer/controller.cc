#include "controlplane/controllers/loadbalancer/controller.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>

#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr char kBalanced[] = "load-balancer", kByPort[] = "load-balancer-port", kByService[] = "service",
               kByHostPort[] = "host-port";

bool HasFinalizer(const corev1::Service& service) {
  const auto& all = service.metadata().finalizers();
  return std::find(all.begin(), all.end(), kLoadBalancerFinalizer) != all.end();
}

std::vector<std::string> ServiceIndex(const discoveryv1::EndpointSlice& slice) {
  auto name = slice.metadata().labels().find("kubernetes.io/service-name");
  if (name == slice.metadata().labels().end()) return {};
  return {api::KeyOf(slice.metadata().namespace_(), name->second)};
}

std::string Joined(const std::vector<IpAddress>& addresses) {
  std::string out;
  for (const IpAddress& ip : addresses) out += (out.empty() ? "" : ",") + ip.ToString();
  return out;
}

}  // namespace

LoadBalancerController::LoadBalancerController(client::RestClient api, client::InformerFactory& informers,
                                               client::EventRecorder& events, Clock& clock, AddressPool pool)
    : Controller("service", clock),
      api_(std::move(api)),
      events_(events),
      pool_(std::move(pool)),
      services_(informers.Get<corev1::Service>()),
      nodes_(informers.Get<corev1::Node>()),
      pods_(informers.Get<corev1::Pod>()),
      slices_(informers.Get<discoveryv1::EndpointSlice>()) {
  services_.AddIndex(kBalanced, [](const corev1::Service& service) -> std::vector<std::string> {
    if (!IsServed(service)) return {};
    return {""};
  });
  services_.AddIndex(kByPort, [](const corev1::Service& service) -> std::vector<std::string> {
    if (!IsServed(service)) return {};
    const std::set<std::string> ports = PortsOf(service);
    return {ports.begin(), ports.end()};
  });
  pods_.AddIndex(kByHostPort, [](const corev1::Pod& pod) {
    const std::set<std::string> ports = HostPortsOf(pod);
    return std::vector<std::string>(ports.begin(), ports.end());
  });
  slices_.AddIndex(kByService, ServiceIndex);
  services_.AddHandler([this](const client::Change<corev1::Service>& change) { OnService(change); });
  nodes_.AddHandler([this](const client::Change<corev1::Node>& change) { OnNode(change); });
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) { OnPod(change); });
  slices_.AddHandler([this](const client::Change<discoveryv1::EndpointSlice>& change) {
    for (const std::string& key : ServiceIndex(change.object())) {
      auto service = services_.Get(key);
      if (service && IsServed(*service) && service->spec().external_traffic_policy() == "Local") {
        queue().Add(key);
      }
    }
  });
}

bool LoadBalancerController::Hold(const std::string& key, std::vector<IpAddress> addresses) {
  MutexLock lock(mutex_);
  std::vector<IpAddress>& held = held_[key];
  const bool released = std::any_of(held.begin(), held.end(), [&](const IpAddress& ip) {
    return std::find(addresses.begin(), addresses.end(), ip) == addresses.end();
  });
  held = std::move(addresses);
  if (held.empty()) held_.erase(key);
  return released;
}

void LoadBalancerController::OnService(const client::Change<corev1::Service>& change) {
  const corev1::Service& service = change.object();
  const bool served = change.new_object && IsServed(service);
  const bool was_served = change.old_object && IsServed(*change.old_object);
  if (!served && !was_served && !HasFinalizer(service)) return;
  queue().Add(change.key);
  bool released = was_served && (!served || PortsOf(*change.old_object) != PortsOf(service));
  if (!change.new_object) {
    written_.Clear(change.key);
    released = Hold(change.key, {}) || released;
  } else if (written_.IsReady(change.key, service.metadata())) {
    released = Hold(change.key, IngressOf(service)) || released;
  }
  const std::vector<IpAddress> has = change.new_object ? IngressOf(service) : std::vector<IpAddress>();
  const bool shared = std::any_of(has.begin(), has.end(), [&](const IpAddress& ip) {
    MutexLock lock(mutex_);
    return std::any_of(held_.begin(), held_.end(), [&](const auto& other) {
      return other.first != change.key &&
             std::find(other.second.begin(), other.second.end(), ip) != other.second.end();
    });
  });
  if (released || (shared && UsesPool(service, !pool_.empty()))) EnqueueWanting();
}

void LoadBalancerController::OnNode(const client::Change<corev1::Node>& change) {
  auto facts = [](const std::shared_ptr<const corev1::Node>& node) {
    corev1::Node out;
    if (node && TakesTraffic(*node)) *out.mutable_status()->mutable_addresses() = node->status().addresses();
    return out;
  };
  // Ignores heartbeats.
  if (change.old_object && MessageDifferencer::Equals(facts(change.old_object), facts(change.new_object))) {
    return;
  }
  for (const auto& service : services_.ByIndex(kBalanced, "")) {
    if (!UsesPool(*service, !pool_.empty())) queue().Add(api::KeyOf(*service));
  }
}

void LoadBalancerController::OnPod(const client::Change<corev1::Pod>& change) {
  auto ports = [](const std::shared_ptr<const corev1::Pod>& pod) {
    return pod ? HostPortsOf(*pod) : std::set<std::string>();
  };
  std::set<std::string> before = ports(change.old_object), now = ports(change.new_object);
  if (before == now) return;
  now.merge(before);
  for (const std::string& port : now) {
    for (const auto& service : services_.ByIndex(kByPort, port)) {
      if (!UsesPool(*service, !pool_.empty())) queue().Add(api::KeyOf(*service));
    }
  }
}

void LoadBalancerController::EnqueueWanting() {
  for (const auto& service : services_.ByIndex(kBalanced, "")) queue().Add(api::KeyOf(*service));
}

std::string LoadBalancerController::HolderBefore(const corev1::Service& service,
                                                 const IpAddress& address) const {
  const std::string key = api::KeyOf(service);
  std::string holder;
  bool ours = false;
  {
    MutexLock lock(mutex_);
    for (const auto& [other, addresses] : held_) {
      if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) continue;
      if (other == key) {
        ours = true;
      } else {
        holder = other;
      }
    }
  }
  if (holder.empty() || !ours) return holder;
  auto other = services_.Get(holder);
  return other && Precedes(*other, service) ? holder : "";
}

BalancerPlan LoadBalancerController::PlanAtNodes(const corev1::Service& service) const {
  for (const std::string& port : PortsOf(service)) {
    for (const auto& other : services_.ByIndex(kByPort, port)) {
      if (UsesPool(*other, !pool_.empty()) || !Precedes(*other, service)) continue;
      return {.problem =
                  fmt::format("port {} of the nodes is taken by Service {}", port, api::KeyOf(*other))};
    }
  }
  std::set<std::string> endpoint_nodes;
  for (const auto& slice : slices_.ByIndex(kByService, api::KeyOf(service))) {
    for (const discoveryv1::Endpoint& endpoint : slice->endpoints()) {
      const bool ready = !endpoint.conditions().has_ready() || endpoint.conditions().ready();
      if (ready && !endpoint.node_name().empty()) endpoint_nodes.insert(endpoint.node_name());
    }
  }
  std::map<std::string, std::map<std::string, std::string>> host_ports;
  for (const std::string& port : PortsOf(service)) {
    for (const auto& pod : pods_.ByIndex(kByHostPort, port)) {
      host_ports[pod->spec().node_name()][port] = api::KeyOf(*pod);
    }
  }
  return PlanNodeAddresses(service, nodes_.List(), endpoint_nodes, host_ports);
}

Result<Requeue> LoadBalancerController::Reconcile(const std::string& key, std::stop_token stop) {
  auto service = services_.Get(key);
  if (!service || !written_.IsReady(key, service->metadata())) return Requeue{};
  const client::RestClient api = api_.With(stop);
  Result<> result = IsServed(*service) ? Serve(api, *service) : CleanUp(api, *service);
  if (!result && !result.error().Is(Code::kNotFound)) return result.error();
  return Requeue{};
}

Result<> LoadBalancerController::Serve(const client::RestClient& api, const corev1::Service& service) {
  if (!UsesPool(service, !pool_.empty())) return Publish(api, service, PlanAtNodes(service));
  if (pool_.empty()) {
    return Publish(api, service, {.problem = "there is no address pool: --load-balancer-addresses"});
  }
  // Two Services must not find the same free address.
  MutexLock lock(giving_out_);
  return Publish(api, service, PlanPoolAddresses(service, pool_, [&](const IpAddress& ip) {
                   return HolderBefore(service, ip);
                 }));
}

Result<> LoadBalancerController::Publish(const client::RestClient& api, corev1::Service service,
                                         const BalancerPlan& plan) {
  const std::string key = api::KeyOf(service);
  if (!plan.problem.empty()) {
    events_.Record(service, "Warning", "SyncLoadBalancerFailed",
                   "Error syncing load balancer: " + plan.problem);
  }
  if (plan.no_nodes) {
    events_.Record(service, "Warning", "UnAvailableLoadBalancer",
                   "There are no available nodes for LoadBalancer");
  }
  const std::vector<IpAddress> before = IngressOf(service);
  corev1::Service changed = service;
  SetIngress(changed, plan.addresses);
  if (!HasFinalizer(service)) {
    events_.Record(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer");
    changed.mutable_metadata()->add_finalizers(kLoadBalancerFinalizer);
  } else if (MessageDifferencer::Equals(changed.status().load_balancer(), service.status().load_balancer())) {
    return {};
  }
  Hold(key, plan.addresses);  // reserve it before the write, so that no other Service gets it
  Result<corev1::Service> stored = api.UpdateStatus(changed);
  if (!stored) {
    Hold(key, before);
    return stored.error();
  }
  written_.WroteAt(key, stored->metadata());
  if (before.empty() && !plan.addresses.empty()) {
    events_.Record(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer");
  } else if (!plan.addresses.empty()) {
    events_.Record(service, "Normal", "UpdatedLoadBalancer",
                   "Updated load balancer with new hosts: " + Joined(plan.addresses));
  }
  return {};
}

Result<> LoadBalancerController::CleanUp(const client::RestClient& api, corev1::Service service) {
  if (!HasFinalizer(service)) return {};
  const std::string key = api::KeyOf(service);
  const std::string& name = service.spec().load_balancer_class();
  // Another controller's class
  if (!name.empty() && name != kNodeAddressClass && name != kAddressPoolClass) return {};
  events_.Record(service, "Normal", "DeletingLoadBalancer", "Deleting load balancer");
  service.mutable_status()->mutable_load_balancer()->clear_ingress();
  auto& finalizers = *service.mutable_metadata()->mutable_finalizers();
  finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), kLoadBalancerFinalizer),
                   finalizers.end());
  KEELSON_ASSIGN_OR_RETURN(service, api.UpdateStatus(service));
  written_.WroteAt(key, service.metadata());
  if (Hold(key, {})) EnqueueWanting();
  events_.Record(service, "Normal", "DeletedLoadBalancer", "Deleted load balancer");
  return {};
}

}  // namespace keelson::controllers
