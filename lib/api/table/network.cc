// Tables of Services, their endpoints, ingress and network policy.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/table/cells.h"
#include "lib/base/text.h"

namespace keelson::api {
namespace {

// Sorted, without duplicates.
template <typename Entries>
std::string Balancers(const Entries& entries) {
  std::set<std::string> out;
  for (const auto& entry : entries) out.insert(entry.ip().empty() ? entry.hostname() : entry.ip());
  out.erase("");
  return Join({out.begin(), out.end()}, ",");
}

std::string ExternalIp(const corev1::Service& service) {
  const auto& spec = service.spec();
  std::vector<std::string> external(spec.external_ips().begin(), spec.external_ips().end());
  if (spec.type() == "ExternalName") return spec.external_name();
  if (spec.type() == "LoadBalancer") {
    std::string balancers = Balancers(service.status().load_balancer().ingress());
    if (!balancers.empty()) external.insert(external.begin(), balancers);
    return external.empty() ? "<pending>" : Join(external, ",");
  }
  return external.empty() ? "<none>" : Join(external, ",");
}

void FillService(const corev1::Service& object, Cells& cells) {
  const auto& spec = object.spec();
  std::vector<std::string> ports;
  for (const auto& port : spec.ports()) {
    ports.push_back(port.node_port() > 0
                        ? fmt::format("{}:{}/{}", port.port(), port.node_port(), port.protocol())
                        : fmt::format("{}/{}", port.port(), port.protocol()));
  }
  const std::string& ip = spec.cluster_ips_size() > 0 ? spec.cluster_ips(0) : spec.cluster_ip();
  cells.Text(object.metadata().name()).Text(spec.type()).TextOr(ip, "<none>").Text(ExternalIp(object));
  cells.Text(ports.empty() ? "<none>" : Join(ports, ","))
      .Age(object.metadata())
      .Text(FormatLabels(spec.selector()));
}

void FillEndpoints(const corev1::Endpoints& object, Cells& cells) {
  std::vector<std::string> all;
  for (const auto& subset : object.subsets()) {
    for (const auto& port : subset.ports()) {
      for (const auto& address : subset.addresses()) {
        bool v6 = address.ip().find(':') != std::string::npos;
        all.push_back(v6 ? fmt::format("[{}]:{}", address.ip(), port.port())
                         : fmt::format("{}:{}", address.ip(), port.port()));
      }
    }
    if (subset.ports_size() > 0) continue;
    for (const auto& address : subset.addresses()) all.push_back(address.ip());
  }
  cells.Text(object.metadata().name()).Text(Some(all, 3, "<none>")).Age(object.metadata());
}

void FillEndpointSlice(const discoveryv1::EndpointSlice& object, Cells& cells) {
  std::vector<std::string> ports, endpoints;
  for (const auto& port : object.ports()) {
    ports.push_back(port.has_port() ? std::to_string(port.port()) : port.name().empty() ? "*" : port.name());
  }
  for (const auto& endpoint : object.endpoints()) {
    endpoints.insert(endpoints.end(), endpoint.addresses().begin(), endpoint.addresses().end());
  }
  cells.Text(object.metadata().name()).Text(object.address_type()).Text(Some(ports, 3, "<unset>"));
  cells.Text(Some(endpoints, 3, "<unset>")).Age(object.metadata());
}

void FillIngress(const networking::v1::Ingress& object, Cells& cells) {
  std::vector<std::string> hosts;
  for (const auto& rule : object.spec().rules()) {
    if (!rule.host().empty()) hosts.push_back(rule.host());
  }
  cells.Text(object.metadata().name())
      .TextOr(object.spec().ingress_class_name(), "<none>")
      .Text(Some(hosts, 3, "*"));
  cells.Text(Balancers(object.status().load_balancer().ingress()));
  cells.Text(object.spec().tls_size() > 0 ? "80, 443" : "80").Age(object.metadata());
}

void FillIngressClass(const networking::v1::IngressClass& object, Cells& cells) {
  std::string parameters = "<none>";
  if (object.spec().has_parameters()) {
    const auto& from = object.spec().parameters();
    parameters = from.kind() + (from.api_group().empty() ? "" : "." + from.api_group()) + "/" + from.name();
  }
  cells.Text(object.metadata().name())
      .Text(object.spec().controller())
      .Text(parameters)
      .Age(object.metadata());
}

void FillNetworkPolicy(const networking::v1::NetworkPolicy& object, Cells& cells) {
  cells.Text(object.metadata().name())
      .Text(FormatSelector(object.spec().pod_selector()))
      .Age(object.metadata());
}

void FillServiceCidr(const networking::v1::ServiceCIDR& object, Cells& cells) {
  cells.Text(object.metadata().name())
      .Text(Join({object.spec().cidrs().begin(), object.spec().cidrs().end()}, ","));
  cells.Age(object.metadata());
}

void FillIpAddress(const networking::v1::IPAddress& object, Cells& cells) {
  const auto& parent = object.spec().parent_ref();
  std::string text = parent.resource();
  if (!parent.group().empty()) text += "." + parent.group();
  text = Lower(text);
  text += "/";
  if (!parent.namespace_().empty()) text += parent.namespace_() + "/";
  cells.Text(object.metadata().name()).Text(object.spec().has_parent_ref() ? text + parent.name() : "<none>");
}

}  // namespace

std::vector<TableKind> NetworkTables() {
  return {
      TableOf<corev1::Service>("Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector+", FillService),
      TableOf<corev1::Endpoints>("Name|Endpoints|Age", FillEndpoints),
      TableOf<discoveryv1::EndpointSlice>("Name|AddressType|Ports|Endpoints|Age", FillEndpointSlice),
      TableOf<networking::v1::Ingress>("Name|Class|Hosts|Address|Ports|Age", FillIngress),
      TableOf<networking::v1::IngressClass>("Name|Controller|Parameters|Age", FillIngressClass),
      TableOf<networking::v1::NetworkPolicy>("Name|Pod-Selector|Age", FillNetworkPolicy),
      TableOf<networking::v1::ServiceCIDR>("Name|CIDRs|Age", FillServiceCidr),
      TableOf<networking::v1::IPAddress>("Name|ParentRef", FillIpAddress),
  };
}

}  // namespace keelson::api
