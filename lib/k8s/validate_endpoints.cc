// Endpoints and EndpointSlices.
#include <set>

#include <fmt/format.h>

#include "lib/k8s/rule_table.h"

namespace keelson::k8s {

namespace {

const std::vector<std::string_view> kProtocols = {"SCTP", "TCP", "UDP"};
constexpr int64_t kMaxEndpoints = 1000, kMaxSlicePorts = 20000, kMaxAddresses = 100;

// Addresses that traffic must not be led to.
void CheckEndpointIp(const std::string& ip, const Path& path, FieldErrors& errors) {
  const size_t before = errors.size();
  CheckIpAddress(ip, path, errors);
  if (errors.size() != before) return;
  if (ip == "0.0.0.0" || ip == "::") {
    errors.push_back(Invalid(path, ip, "may not be unspecified (0.0.0.0 or ::)"));
  }
  if (ip.starts_with("127.") || ip == "::1") {
    errors.push_back(Invalid(path, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
  }
  if (ip.starts_with("169.254.") || ip.starts_with("fe80:")) {
    errors.push_back(Invalid(path, ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
  }
  if (ip.starts_with("224.0.0.") || ip.starts_with("ff02:")) {
    errors.push_back(
        Invalid(path, ip, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
  }
}

void CheckEndpointAddresses(const google::protobuf::RepeatedPtrField<corev1::EndpointAddress>& addresses,
                            const Path& path, FieldErrors& errors) {
  for (int i = 0; i < addresses.size(); ++i) {
    const Path item = path.Index(i);
    CheckEndpointIp(addresses[i].ip(), item.Child("ip"), errors);
    if (!addresses[i].hostname().empty()) {
      AddProblems(CheckDns1123Label(addresses[i].hostname()), addresses[i].hostname(), item.Child("hostname"),
                  errors);
    }
    if (!addresses[i].node_name().empty()) {
      AddProblems(CheckDns1123Subdomain(addresses[i].node_name()), addresses[i].node_name(),
                  item.Child("nodeName"), errors);
    }
  }
}

void CheckEndpoints(const corev1::Endpoints& endpoints, FieldErrors& errors) {
  const Path subsets("subsets");
  for (int i = 0; i < endpoints.subsets_size(); ++i) {
    const corev1::EndpointSubset& subset = endpoints.subsets(i);
    const Path item = subsets.Index(i);
    if (subset.addresses().empty() && subset.not_ready_addresses().empty()) {
      errors.push_back(Required(item, "must specify `addresses` or `notReadyAddresses`"));
    }
    CheckEndpointAddresses(subset.addresses(), item.Child("addresses"), errors);
    CheckEndpointAddresses(subset.not_ready_addresses(), item.Child("notReadyAddresses"), errors);
    const Path ports = item.Child("ports");
    for (int j = 0; j < subset.ports_size(); ++j) {
      const corev1::EndpointPort& port = subset.ports(j);
      const Path here = ports.Index(j);
      if (port.name().empty()) {
        if (subset.ports_size() > 1) errors.push_back(Required(here.Child("name")));
      } else {
        AddProblems(CheckDns1123Label(port.name()), port.name(), here.Child("name"), errors);
      }
      CheckRange(port.port(), 1, 65535, here.Child("port"), errors);
      CheckEnum(port.protocol(), kProtocols, here.Child("protocol"), errors);
    }
  }
}

void CheckSliceAddress(const std::string& type, const std::string& address, const Path& path,
                       FieldErrors& errors) {
  if (type == "FQDN") {
    AddProblems(CheckDns1123Subdomain(address), address, path, errors);
  } else if (type == "IPv4" && !IsIpv4(address)) {
    errors.push_back(Invalid(path, address, "must be an IPv4 address"));
  } else if (type == "IPv6" && !IsIpv6(address)) {
    errors.push_back(Invalid(path, address, "must be an IPv6 address"));
  } else {
    CheckEndpointIp(address, path, errors);
  }
}

void CheckSliceEndpoints(const discoveryv1::EndpointSlice& slice, FieldErrors& errors) {
  const Path list("endpoints");
  if (slice.endpoints_size() > kMaxEndpoints) {
    errors.push_back(TooMany(list, slice.endpoints_size(), kMaxEndpoints));
    return;
  }
  for (int i = 0; i < slice.endpoints_size(); ++i) {
    const discoveryv1::Endpoint& endpoint = slice.endpoints(i);
    const Path item = list.Index(i);
    const Path addresses = item.Child("addresses");
    if (endpoint.addresses().empty()) {
      errors.push_back(Required(addresses, "must contain at least 1 address"));
    } else if (endpoint.addresses_size() > kMaxAddresses) {
      errors.push_back(TooMany(addresses, endpoint.addresses_size(), kMaxAddresses));
    }
    for (int j = 0; j < endpoint.addresses_size(); ++j) {
      CheckSliceAddress(slice.address_type(), endpoint.addresses(j), addresses.Index(j), errors);
    }
    if (endpoint.has_hostname()) {
      AddProblems(CheckDns1123Label(endpoint.hostname()), endpoint.hostname(), item.Child("hostname"),
                  errors);
    }
    if (endpoint.has_node_name()) {
      AddProblems(CheckDns1123Subdomain(endpoint.node_name()), endpoint.node_name(), item.Child("nodeName"),
                  errors);
    }
  }
}

void CheckSlice(const discoveryv1::EndpointSlice& slice, FieldErrors& errors) {
  CheckEnum(slice.address_type(), {"FQDN", "IPv4", "IPv6"}, Path("addressType"), errors);
  CheckSliceEndpoints(slice, errors);
  const Path ports("ports");
  if (slice.ports_size() > kMaxSlicePorts) {
    errors.push_back(TooMany(ports, slice.ports_size(), kMaxSlicePorts));
    return;
  }
  std::set<std::string_view> names;
  for (int i = 0; i < slice.ports_size(); ++i) {
    const discoveryv1::EndpointPort& port = slice.ports(i);
    const Path item = ports.Index(i);
    if (!port.name().empty()) {
      AddProblems(CheckDns1123Label(port.name()), port.name(), item.Child("name"), errors);
    }
    if (!names.insert(port.name()).second) errors.push_back(Duplicate(item.Child("name"), port.name()));
    CheckEnum(port.protocol(), kProtocols, item.Child("protocol"), errors);
  }
}

void CheckSliceUpdate(const discoveryv1::EndpointSlice& slice, const discoveryv1::EndpointSlice& old,
                      FieldErrors& errors) {
  CheckImmutable(slice.address_type(), old.address_type(), Path("addressType"), errors);
}

}  // namespace

void RegisterEndpointRules(RuleTable& table) {
  table.Add<corev1::Endpoints, CheckEndpoints>();
  table.Add<discoveryv1::EndpointSlice, CheckSlice>();
  table.AddUpdate<discoveryv1::EndpointSlice, CheckSliceUpdate>();
}

}  // namespace keelson::k8s
