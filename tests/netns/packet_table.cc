#include "tests/netns/packet_table.h"

#include <algorithm>
#include <sstream>

#include "lib/base/file.h"

namespace keelson::netns {
namespace {

IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

Error Bad(int line, const std::string& what) {
  return Error(Code::kInvalid, "line " + std::to_string(line) + ": " + what);
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

PacketCase ParseCase(const std::vector<std::string>& words, int line) {
  PacketCase out{.line = line, .client = words[0], .entry = words[1]};
  out.answers.assign(words.begin() + 2, words.end());
  if (out.answers.back() == "keep" || out.answers.back() == "masq") {
    out.seen = out.answers.back() == "keep" ? PacketCase::kKeep : PacketCase::kMasq;
    out.answers.pop_back();
  }
  std::sort(out.answers.begin(), out.answers.end());
  return out;
}

// "outside,others" as CIDRs of both families.
void AddRanges(const std::string& who, corev1::ServiceSpec& spec) {
  std::istringstream in(who);
  for (std::string name; std::getline(in, name, ',');) {
    if (name == "others") {
      spec.add_load_balancer_source_ranges("203.0.113.0/24");
      spec.add_load_balancer_source_ranges("fd99::/64");
    } else if (name == "pods") {
      spec.add_load_balancer_source_ranges("10.1.0.0/16");
      spec.add_load_balancer_source_ranges("fd01::/64");
    } else {
      spec.add_load_balancer_source_ranges(ClientAddress(name, true).ToString() + "/32");
      spec.add_load_balancer_source_ranges(ClientAddress(name, false).ToString() + "/128");
    }
  }
}

}  // namespace

IpAddress ClientAddress(const std::string& client, bool v4) {
  static const std::map<std::string, std::pair<const char*, const char*>> kAddresses = {
      {"pod1", {"10.1.0.1", "fd01::1"}},       {"pod2", {"10.1.0.2", "fd01::2"}},
      {"node", {"172.30.0.1", "fd30::1"}},     {"outside", {"172.30.0.2", "fd30::2"}},
      {"stranger", {"172.30.0.9", "fd30::9"}}, {"remote", {"10.2.0.1", "fd02::1"}}};
  const auto& [ip, ip6] = kAddresses.at(client);
  return Ip(v4 ? ip : ip6);
}

IpAddress EndpointAddress(const std::string& endpoint, bool v4) {
  return ClientAddress(endpoint == "host" ? "node" : endpoint, v4);
}

bool ServiceBlock::Has(const std::string& flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

uint8_t ServiceBlock::Protocol() const {
  return protocol == "udp" ? proxy::kUdp : protocol == "sctp" ? proxy::kSctp : proxy::kTcp;
}

std::pair<IpAddress, uint16_t> ServiceBlock::Destination(const std::string& entry, bool v4) const {
  auto at = [&](const char* base, const char* base6) { return Ip(v4 ? base : base6).Plus(number); };
  const auto node_port = static_cast<uint16_t>(30000 + number);
  if (entry == "cluster") return {at("10.96.0.0", "fd96::"), 80};
  if (entry == "cluster:81") return {at("10.96.0.0", "fd96::"), 81};
  if (entry == "external") return {at("192.0.2.0", "fd97::1:0"), 80};
  if (entry == "lb") return {at("198.51.100.0", "fd97::2:0"), 80};
  if (entry == "lbproxy") return {at("203.0.113.0", "fd97::3:0"), 80};
  if (entry == "nodeport") return {ClientAddress("node", v4), node_port};
  if (entry == "nodeport-bridge") return {Ip(v4 ? "10.1.0.254" : "fd01::fe"), node_port};
  if (entry == "nodeport-loopback") return {Ip(v4 ? "127.0.0.1" : "::1"), node_port};
  return {Ip(v4 ? "10.96.255.9" : "fd96::ff:9"), 80};  // unallocated
}

corev1::Service ServiceBlock::Service() const {
  corev1::Service out;
  out.mutable_metadata()->set_namespace_("default");
  out.mutable_metadata()->set_name(name);
  auto& spec = *out.mutable_spec();
  auto address = [&](const char* entry, bool v4) { return Destination(entry, v4).first.ToString(); };
  spec.set_type(Has("lb") || Has("lbproxy") ? "LoadBalancer" : Has("nodeport") ? "NodePort" : "ClusterIP");
  for (bool v4 : {true, false}) {
    spec.add_cluster_ips(Has("headless") ? "None" : address("cluster", v4));
    if (Has("external")) spec.add_external_ips(address("external", v4));
    for (const char* entry : {"lb", "lbproxy"}) {
      if (!Has(entry)) continue;
      auto& ingress = *out.mutable_status()->mutable_load_balancer()->add_ingress();
      ingress.set_ip(address(entry, v4));
      ingress.set_ip_mode(std::string(entry) == "lb" ? "VIP" : "Proxy");
    }
  }
  spec.set_cluster_ip(spec.cluster_ips(0));
  if (Has("internal-local")) spec.set_internal_traffic_policy("Local");
  if (Has("external-local")) spec.set_external_traffic_policy("Local");
  if (Has("sticky")) spec.set_session_affinity("ClientIP");
  if (Has("otherproxy")) {
    (*out.mutable_metadata()->mutable_labels())["service.kubernetes.io/service-proxy-name"] = "another";
  }
  for (const std::string& flag : flags) {
    if (flag.starts_with("ranges=")) AddRanges(flag.substr(7), spec);
  }
  auto& port = *spec.add_ports();
  port.set_protocol(protocol == "udp" ? "UDP" : protocol == "sctp" ? "SCTP" : "TCP");
  port.set_port(80);
  if (Has("nodeport")) port.set_node_port(30000 + number);
  return out;
}

discoveryv1::EndpointSlice ServiceBlock::Slice(bool v4) const {
  discoveryv1::EndpointSlice out;
  out.mutable_metadata()->set_namespace_("default");
  (*out.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = name;
  out.set_address_type(v4 ? "IPv4" : "IPv6");
  auto& port = *out.add_ports();
  port.set_port(kEndpointPort);
  port.set_protocol(protocol == "udp" ? "UDP" : protocol == "sctp" ? "SCTP" : "TCP");
  for (const std::string& text : endpoints) {
    auto& added = *out.add_endpoints();
    const std::string who = text.substr(0, text.find_first_of("!-@#"));
    added.add_addresses(EndpointAddress(who, v4).ToString());
    added.set_node_name(who == "remote" ? "there" : "here");
    const bool leaving = text.find('!') != std::string::npos, unready = text.find('-') != std::string::npos;
    added.mutable_conditions()->set_ready(!leaving && !unready);
    added.mutable_conditions()->set_serving(!unready);
    added.mutable_conditions()->set_terminating(leaving);
    auto hints = [&](char mark, auto add) {
      auto at = text.find(mark);
      if (at == std::string::npos) return;
      std::istringstream in(text.substr(at + 1, text.find_first_of("@#", at + 1) - at - 1));
      for (std::string hint; std::getline(in, hint, ',');) add(hint);
    };
    hints('@', [&](const std::string& zone) { added.mutable_hints()->add_for_zones()->set_name(zone); });
    hints('#', [&](const std::string& node) { added.mutable_hints()->add_for_nodes()->set_name(node); });
  }
  return out;
}

Result<std::vector<ServiceBlock>> ReadPacketTable(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  std::istringstream in(text);
  std::vector<ServiceBlock> out;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::vector<std::string> words = Words(line.substr(0, line.starts_with("#") ? 0 : std::string::npos));
    if (words.empty()) continue;
    if (words[0] == "service") {
      if (words.size() < 3) return Bad(number, "service NAME PROTOCOL expected");
      ServiceBlock& block = out.emplace_back(
          ServiceBlock{.number = static_cast<int>(out.size()) + 1, .name = words[1], .protocol = words[2]});
      block.flags.assign(words.begin() + 3, words.end());
    } else if (out.empty()) {
      return Bad(number, "no service yet");
    } else if (words[0] == "endpoints") {
      out.back().endpoints.assign(words.begin() + 1, words.end());
    } else if (words.size() < 3) {
      return Bad(number, "CLIENT ENTRY ANSWERS... expected");
    } else {
      out.back().cases.push_back(ParseCase(words, number));
    }
  }
  return out;
}

std::optional<proxy::Frontend> EntryOf(const std::string& entry) {
  if (entry == "cluster") return proxy::Frontend::kClusterIp;
  if (entry == "external") return proxy::Frontend::kExternalIp;
  if (entry == "lb") return proxy::Frontend::kLoadBalancerIp;
  if (entry == "nodeport") return proxy::Frontend::kNodePort;
  return std::nullopt;
}

proxy::Origin OriginOf(const std::string& client) {
  if (client == "node") return proxy::Origin::kNode;
  return client == "outside" || client == "stranger" ? proxy::Origin::kExternal : proxy::Origin::kPod;
}

}  // namespace keelson::netns
