// NetworkPolicies.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lib/api/proto/networking_v1.pb.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace networkingv1 = api::networking::v1;

namespace {

struct Block {
  std::array<uint8_t, 16> address{};
  int bits = 0;
  bool ipv6 = false;
};

std::optional<Block> ParseBlock(const std::string& text) {
  if (!IsCidr(text)) return std::nullopt;
  const size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  Block block;
  block.ipv6 = address.find(':') != std::string::npos;
  block.bits = std::atoi(text.c_str() + slash + 1);
  if (inet_pton(block.ipv6 ? AF_INET6 : AF_INET, address.c_str(), block.address.data()) != 1) {
    return std::nullopt;
  }
  return block;
}

// `inner` is a proper subset of `outer`.
bool IsStrictPart(const Block& inner, const Block& outer) {
  if (inner.ipv6 != outer.ipv6 || inner.bits <= outer.bits) return false;
  for (int bit = 0; bit < outer.bits; ++bit) {
    const uint8_t mask = static_cast<uint8_t>(0x80 >> (bit % 8));
    if ((inner.address[bit / 8] & mask) != (outer.address[bit / 8] & mask)) return false;
  }
  return true;
}

void CheckPort(const networkingv1::NetworkPolicyPort& port, const Path& path, FieldErrors& errors) {
  if (port.has_protocol()) {
    CheckOneOf(port.protocol(), {"TCP", "UDP", "SCTP"}, path.Child("protocol"), errors);
  }
  const Path end = path.Child("endPort");
  if (!port.has_port()) {
    if (port.has_end_port()) {
      errors.push_back(
          Invalid(end, int64_t{port.end_port()}, "may not be specified when `port` is not specified"));
    }
    return;
  }
  if (IsString(port.port()) && port.has_end_port()) {
    errors.push_back(
        Invalid(end, int64_t{port.end_port()}, "may not be specified when `port` is non-numeric"));
  }
  CheckPortNumberOrName(port.port(), path.Child("port"), errors);
  if (IsString(port.port()) || !port.has_end_port()) return;
  if (port.end_port() < port.port().int_val()) {
    errors.push_back(Invalid(end, int64_t{port.end_port()}, "must be greater than or equal to `port`"));
  }
  for (const std::string& problem : CheckPortNumber(port.end_port())) {
    errors.push_back(Invalid(end, int64_t{port.end_port()}, problem));
  }
}

void CheckBlock(const networkingv1::IPBlock& block, const Strings& old, const Path& path,
                FieldErrors& errors) {
  if (block.cidr().empty()) {
    errors.push_back(Required(path.Child("cidr")));
    return;
  }
  CheckStrictCidr(block.cidr(), old, path.Child("cidr"), errors);
  const std::optional<Block> whole = ParseBlock(block.cidr());
  if (!whole) return;
  const Path list = path.Child("except");
  for (int i = 0; i < block.except_size(); ++i) {
    CheckStrictCidr(block.except(i), old, list.Index(i), errors);
    const std::optional<Block> part = ParseBlock(block.except(i));
    if (part && !IsStrictPart(*part, *whole)) {
      errors.push_back(Invalid(list.Index(i), block.except(i), "must be a strict subset of `cidr`"));
    }
  }
}

void CheckPeer(const networkingv1::NetworkPolicyPeer& peer, const Strings& old, const Path& path,
               FieldErrors& errors) {
  if (peer.has_pod_selector()) CheckLabelSelector(peer.pod_selector(), path.Child("podSelector"), errors);
  if (peer.has_namespace_selector()) {
    CheckLabelSelector(peer.namespace_selector(), path.Child("namespaceSelector"), errors);
  }
  if (peer.has_ip_block()) CheckBlock(peer.ip_block(), old, path.Child("ipBlock"), errors);
  const bool selects = peer.has_pod_selector() || peer.has_namespace_selector();
  if (!selects && !peer.has_ip_block()) {
    errors.push_back(Required(path, "must specify a peer"));
  } else if (selects && peer.has_ip_block()) {
    errors.push_back(Forbidden(path, "may not specify both ipBlock and another peer"));
  }
}

using Ports = google::protobuf::RepeatedPtrField<networkingv1::NetworkPolicyPort>;
using Peers = google::protobuf::RepeatedPtrField<networkingv1::NetworkPolicyPeer>;

void CheckRule(const Ports& ports, const Peers& peers, const char* peers_field, const Strings& old,
               const Path& path, FieldErrors& errors) {
  const Path port_list = path.Child("ports"), peer_list = path.Child(peers_field);
  for (int i = 0; i < ports.size(); ++i) CheckPort(ports[i], port_list.Index(i), errors);
  for (int i = 0; i < peers.size(); ++i) CheckPeer(peers[i], old, peer_list.Index(i), errors);
}

void CheckPolicy(const networkingv1::NetworkPolicy& object, const Strings& old, FieldErrors& errors) {
  const Path path("spec");
  const networkingv1::NetworkPolicySpec& spec = object.spec();
  CheckLabelSelector(spec.pod_selector(), path.Child("podSelector"), errors);
  const Path ingress = path.Child("ingress"), egress = path.Child("egress");
  for (int i = 0; i < spec.ingress_size(); ++i) {
    CheckRule(spec.ingress(i).ports(), spec.ingress(i).from(), "from", old, ingress.Index(i), errors);
  }
  for (int i = 0; i < spec.egress_size(); ++i) {
    CheckRule(spec.egress(i).ports(), spec.egress(i).to(), "to", old, egress.Index(i), errors);
  }
  const Path types = path.Child("policyTypes");
  if (spec.policy_types_size() > 2) {
    errors.push_back(
        InvalidRaw(types, PrintStrings(spec.policy_types()), "may not specify more than two policyTypes"));
    return;
  }
  for (int i = 0; i < spec.policy_types_size(); ++i) {
    CheckOneOf(spec.policy_types(i), {"Ingress", "Egress"}, types.Index(i), errors);
  }
}

void CheckNetworkPolicy(const networkingv1::NetworkPolicy& object, FieldErrors& errors) {
  CheckPolicy(object, {}, errors);
}

// Ranges that the policy had before may stay, even at another place.
void CheckNetworkPolicyUpdate(const networkingv1::NetworkPolicy& object,
                              const networkingv1::NetworkPolicy& old, FieldErrors& errors) {
  Strings ranges;
  const auto collect = [&](const Peers& peers) {
    for (const networkingv1::NetworkPolicyPeer& peer : peers) {
      if (!peer.has_ip_block()) continue;
      *ranges.Add() = peer.ip_block().cidr();
      ranges.MergeFrom(peer.ip_block().except());
    }
  };
  for (const auto& rule : old.spec().ingress()) collect(rule.from());
  for (const auto& rule : old.spec().egress()) collect(rule.to());
  CheckPolicy(object, ranges, errors);
}

}  // namespace

void RegisterNetworkPolicyRules(RuleTable& table) {
  table.Add<networkingv1::NetworkPolicy, CheckNetworkPolicy>();
  table.AddUpdate<networkingv1::NetworkPolicy, CheckNetworkPolicyUpdate>(true);
}

}  // namespace keelson::k8s
