// Endpoints and EndpointSlices.
#include <set>

#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr int kMaxEndpoints = 1000, kMaxAddresses = 100, kMaxTopology = 16, kMaxPorts = 20000, kMaxHints = 8;

// ---- Endpoints ----

void CheckAddress(const corev1::EndpointAddress& address, const Strings& old, const Path& path,
                  FieldErrors& errors) {
  CheckStrictIp(address.ip(), old, path.Child("ip"), errors);
  if (!address.hostname().empty()) {
    AddProblems(CheckDns1123Label(address.hostname()), address.hostname(), path.Child("hostname"), errors);
  }
  if (address.has_node_name()) {
    AddProblems(CheckDns1123Subdomain(address.node_name()), address.node_name(), path.Child("nodeName"),
                errors);
  }
  CheckNonSpecialIp(address.ip(), path.Child("ip"), errors);
}

void CheckProtocol(const std::string& protocol, const Path& path, FieldErrors& errors) {
  CheckEnum(protocol, {"SCTP", "TCP", "UDP"}, path, errors);
}

void CheckPort(const corev1::EndpointPort& port, bool needs_name, const Path& path, FieldErrors& errors) {
  if (needs_name && port.name().empty()) {
    errors.push_back(Required(path.Child("name")));
  } else if (!port.name().empty()) {
    AddProblems(CheckDns1123Label(port.name()), port.name(), path.Child("name"), errors);
  }
  for (const std::string& problem : CheckPortNumber(port.port())) {
    errors.push_back(Invalid(path.Child("port"), int64_t{port.port()}, problem));
  }
  CheckProtocol(port.protocol(), path.Child("protocol"), errors);
  if (port.has_app_protocol()) {
    AddProblems(CheckQualifiedName(port.app_protocol()), port.app_protocol(), path.Child("appProtocol"),
                errors);
  }
}

void CheckSubset(const corev1::EndpointSubset& subset, const Strings& old, const Path& path,
                 FieldErrors& errors) {
  if (subset.addresses().empty() && subset.not_ready_addresses().empty()) {
    errors.push_back(Required(path, "must specify `addresses` or `notReadyAddresses`"));
  }
  const Path ready = path.Child("addresses"), not_ready = path.Child("notReadyAddresses");
  for (int i = 0; i < subset.addresses_size(); ++i) {
    CheckAddress(subset.addresses(i), old, ready.Index(i), errors);
  }
  for (int i = 0; i < subset.not_ready_addresses_size(); ++i) {
    CheckAddress(subset.not_ready_addresses(i), old, not_ready.Index(i), errors);
  }
  const Path ports = path.Child("ports");
  for (int i = 0; i < subset.ports_size(); ++i) {
    CheckPort(subset.ports(i), subset.ports_size() > 1, ports.Index(i), errors);
  }
}

void CheckSubsets(const corev1::Endpoints& object, const Strings& old, FieldErrors& errors) {
  const Path list("subsets");
  for (int i = 0; i < object.subsets_size(); ++i) CheckSubset(object.subsets(i), old, list.Index(i), errors);
}

void CheckEndpoints(const corev1::Endpoints& object, FieldErrors& errors) {
  CheckSubsets(object, {}, errors);
}

// Subsets that were stored before the rules became stricter may stay.
void CheckEndpointsUpdate(const corev1::Endpoints& object, const corev1::Endpoints& old,
                          FieldErrors& errors) {
  bool same = object.subsets_size() == old.subsets_size();
  for (int i = 0; same && i < object.subsets_size(); ++i) {
    same = SameMessage(object.subsets(i), old.subsets(i));
  }
  if (same) return;
  Strings addresses;
  for (const corev1::EndpointSubset& subset : old.subsets()) {
    for (const corev1::EndpointAddress& address : subset.addresses()) *addresses.Add() = address.ip();
    for (const corev1::EndpointAddress& address : subset.not_ready_addresses()) {
      *addresses.Add() = address.ip();
    }
  }
  CheckSubsets(object, addresses, errors);
}

// ---- EndpointSlice ----

void CheckSliceAddress(const std::string& type, const std::string& address, const Strings& old,
                       const Path& path, FieldErrors& errors) {
  if (type == "FQDN") {
    CheckFullyQualifiedDomain(address, path, errors);
  } else if (type == "IPv4" || type == "IPv6") {
    const bool valid = CheckIp(address).empty();
    CheckStrictIp(address, old, path, errors);
    if (valid && type == "IPv4" && !IsIpv4(address)) {
      errors.push_back(Invalid(path, address, "must be an IPv4 address"));
    } else if (valid && type == "IPv6" && !IsIpv6(address)) {
      errors.push_back(Invalid(path, address, "must be an IPv6 address"));
    }
    CheckNonSpecialIp(address, path, errors);
  }
}

template <typename Names>
void CheckHints(const Names& names, NameRule rule, const Path& path, FieldErrors& errors) {
  if (names.size() > kMaxHints) {
    errors.push_back(TooMany(path, names.size(), kMaxHints));
    return;
  }
  std::set<std::string_view> seen;
  for (int i = 0; i < names.size(); ++i) {
    const Path item = path.Index(i);
    const Path name = item.Child("name");
    if (!seen.insert(names[i].name()).second) errors.push_back(Duplicate(name, names[i].name()));
    AddProblems(rule(names[i].name()), names[i].name(), name, errors);
  }
}

void CheckSliceEndpoint(const std::string& type, const discoveryv1::Endpoint& endpoint, const Strings& old,
                        const Path& path, FieldErrors& errors) {
  const Path addresses = path.Child("addresses");
  if (endpoint.addresses().empty()) {
    errors.push_back(Required(addresses, "must contain at least 1 address"));
  } else if (endpoint.addresses_size() > kMaxAddresses) {
    errors.push_back(TooMany(addresses, endpoint.addresses_size(), kMaxAddresses));
  }
  for (int i = 0; i < endpoint.addresses_size(); ++i) {
    CheckSliceAddress(type, endpoint.addresses(i), old, addresses.Index(i), errors);
  }
  if (endpoint.has_node_name()) {
    AddProblems(CheckDns1123Subdomain(endpoint.node_name()), endpoint.node_name(), path.Child("nodeName"),
                errors);
  }
  const Path topology = path.Child("deprecatedTopology");
  if (endpoint.deprecated_topology().size() > kMaxTopology) {
    errors.push_back(
        TooMany(topology, static_cast<int64_t>(endpoint.deprecated_topology().size()), kMaxTopology));
  }
  CheckLabels(endpoint.deprecated_topology(), topology, errors);
  if (endpoint.has_hostname()) {
    AddProblems(CheckDns1123Label(endpoint.hostname()), endpoint.hostname(), path.Child("hostname"), errors);
  }
  if (!endpoint.has_hints()) return;
  const Path hints = path.Child("hints");
  CheckHints(endpoint.hints().for_zones(), CheckLabelValue, hints.Child("forZones"), errors);
  CheckHints(endpoint.hints().for_nodes(), CheckDns1123Subdomain, hints.Child("forNodes"), errors);
}

void CheckSlicePorts(const discoveryv1::EndpointSlice& object, FieldErrors& errors) {
  const Path list("ports");
  if (object.ports_size() > kMaxPorts) {
    errors.push_back(TooMany(list, object.ports_size(), kMaxPorts));
    return;
  }
  std::set<std::string_view> names;
  for (int i = 0; i < object.ports_size(); ++i) {
    const discoveryv1::EndpointPort& port = object.ports(i);
    const Path item = list.Index(i);
    if (!port.name().empty()) {
      AddProblems(CheckDns1123Label(port.name()), port.name(), item.Child("name"), errors);
    }
    if (!names.insert(port.name()).second) errors.push_back(Duplicate(item.Child("name"), port.name()));
    CheckProtocol(port.protocol(), item.Child("protocol"), errors);
    if (port.has_port()) {
      for (const std::string& problem : CheckPortNumber(port.port())) {
        errors.push_back(Invalid(item.Child("port"), int64_t{port.port()}, problem));
      }
    }
    if (port.has_app_protocol()) {
      AddProblems(CheckQualifiedName(port.app_protocol()), port.app_protocol(), item.Child("appProtocol"),
                  errors);
    }
  }
}

void CheckSliceParts(const discoveryv1::EndpointSlice& object, const Strings& old, FieldErrors& errors) {
  CheckEnum(object.address_type(), {"FQDN", "IPv4", "IPv6"}, Path("addressType"), errors);
  const Path list("endpoints");
  if (object.endpoints_size() > kMaxEndpoints) {
    errors.push_back(TooMany(list, object.endpoints_size(), kMaxEndpoints));
  } else {
    for (int i = 0; i < object.endpoints_size(); ++i) {
      CheckSliceEndpoint(object.address_type(), object.endpoints(i), old, list.Index(i), errors);
    }
  }
  CheckSlicePorts(object, errors);
}

void CheckSlice(const discoveryv1::EndpointSlice& object, FieldErrors& errors) {
  CheckSliceParts(object, {}, errors);
}

void CheckSliceUpdate(const discoveryv1::EndpointSlice& object, const discoveryv1::EndpointSlice& old,
                      FieldErrors& errors) {
  Strings addresses;
  for (const discoveryv1::Endpoint& endpoint : old.endpoints()) addresses.MergeFrom(endpoint.addresses());
  CheckSliceParts(object, addresses, errors);
  CheckImmutable(object.address_type(), old.address_type(), Path("addressType"), errors);
}

}  // namespace

void RegisterEndpointRules(RuleTable& table) {
  table.Add<corev1::Endpoints, CheckEndpoints>();
  table.AddUpdate<corev1::Endpoints, CheckEndpointsUpdate>(true);
  table.Add<discoveryv1::EndpointSlice, CheckSlice>();
  table.AddUpdate<discoveryv1::EndpointSlice, CheckSliceUpdate>(true);
}

}  // namespace keelson::k8s
