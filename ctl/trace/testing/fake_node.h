// For tests: a node whose rules, servers, maps and routes are as a test says, and one Service behind it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ctl/trace/report.h"

namespace keelson::ctl {

using nft::Field;
using nft::Key;
using nft::Rule;
using nft::Type;

inline IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

inline constexpr char kNode[] = "node1", kNodeIp[] = "192.0.2.1", kVip[] = "10.96.0.7";

// A node with the pods 10.244.0.0/24 on a bridge, those of node2 behind a gateway, and a table that sends to
// its endpoints what is for the addresses in it, drops what is in @drop, and rejects what is in @reject.
class FakeNode : public NodeView {
 public:
  FakeNode() {
    nft::Ruleset& contents = tables_[0].contents;
    contents.table = {nft::Family::kIpv4, "services"};
    Base("nat-prerouting", nft::HookType::kNat, nft::HookPoint::kPrerouting, -100);
    Base("nat-output", nft::HookType::kNat, nft::HookPoint::kOutput, -100);
    Base("forward", nft::HookType::kFilter, nft::HookPoint::kForward, -90);
    Base("postrouting", nft::HookType::kNat, nft::HookPoint::kPostrouting, 100);
    contents.sets["endpoints"].set = {.name = "endpoints",
                                      .key = {Type::kIpv4Addr, Type::kInetService, Type::kMark},
                                      .data = {Type::kIpv4Addr, Type::kInetService}};
    for (const char* name : {"vips", "drop", "reject"}) {
      contents.sets[name].set = {.name = name, .key = {Type::kIpv4Addr, Type::kInetService}};
    }
    contents.sets["masquerade"].set = {.name = "masquerade", .key = {Type::kIpv4Addr, Type::kIpv4Addr}};
    for (const char* chain : {"nat-prerouting", "nat-output"}) Add(Rule(chain).Finish(nft::Jump("services")));
    Add(ToVip("services").InSet(0, "vips").Finish(nft::Goto("pick")));
    Add(ToVip("forward").InSet(0, "drop").Finish({nft::Verdict::Kind::kDrop}));
    Add(ToVip("forward").InSet(0, "reject").RejectTcpReset());
    Rule hairpin("postrouting");
    hairpin.Load(0, Field::kIpSaddr).Load(1, Field::kIpDaddr).InSet(0, "masquerade");
    Add(hairpin.Masquerade());
  }

  // The kernel's part of a Service with these endpoints; `slots` are drawn from.
  void Program(const std::string& vip, uint16_t port, const std::vector<std::string>& endpoints,
               uint32_t slots = 0) {
    if (slots == 0) slots = static_cast<uint32_t>(endpoints.size());
    tables_[0].programs["pick"].clear();
    Add(ToVip("pick").Random(2, slots).Map(0, "endpoints", 0).Dnat(nft::Family::kIpv4, 0, 1));
    Put("vips", Key().Ip(Ip(vip)).Port(port));
    for (uint32_t slot = 0; slot < endpoints.size(); ++slot) {
      Put("endpoints", Key().Ip(Ip(vip)).Port(port).Mark(slot),
          Key().Ip(Ip(endpoints[slot])).Port(8080).bytes());
    }
  }
  void Base(const char* name, nft::HookType type, nft::HookPoint point, int priority) {
    tables_[0].contents.chains[name].chain = {.name = name, .hook = nft::Hook{type, point, priority}};
  }
  void Add(const Rule& rule) { tables_[0].programs[rule.chain()].push_back({rule.exprs(), ""}); }
  void AddNotUnderstood(const char* chain, const char* what) {
    tables_[0].programs[chain].push_back({{}, what});
  }
  void AddAddress(const IpAddress& ip) { addresses_.push_back(ip); }
  void Put(const std::string& set, const Key& key, const std::string& data = "") {
    tables_[0].contents.sets[set].elements[key.bytes()] = {.key = key.bytes(), .data = data};
  }

  const std::vector<nft::LiveTable>& tables() const override { return tables_; }
  const std::vector<IpAddress>& addresses() const override { return addresses_; }
  const std::vector<EbpfMaps>& ebpf() const override { return ebpf_; }
  // Sockets are served from here on, by these.
  EbpfMaps& ServeByEbpf() {
    EbpfMaps& maps = ebpf_.emplace_back();
    for (const char* name : {"connect4", "sendmsg4"}) maps.programs.push_back({name, 1});
    maps.node_netns = 7;
    return maps;
  }
  Result<Hop> Route(const IpAddress& to) override {
    if (IsLocal(to)) return Hop{true, "lo", std::nullopt, to};
    if (IpPrefix::Parse("10.244.0.0/24")->Contains(to)) {
      return Hop{false, "cni0", std::nullopt, Ip("10.244.0.1")};
    }
    if (IpPrefix::Parse("10.244.9.0/24")->Contains(to)) return Error::FromErrno(ENETUNREACH, "look up route");
    return Hop{false, "eth0", Ip("192.0.2.254"), Ip(kNodeIp)};
  }
  Result<std::vector<netlink::Flow>> Flows(bool, uint8_t) override { return std::vector<netlink::Flow>(); }
  std::optional<Balancer> FindBalancer(const netlink::ServerAddress& address) override {
    auto found = balancers_.find(address);
    return found == balancers_.end() ? std::nullopt : std::optional(found->second);
  }
  // "10.244.0.2*0": takes no new connections.
  void Balance(const std::string& vip, uint16_t port, const std::vector<std::string>& destinations) {
    Balancer& out = balancers_[{6, Ip(vip), port}];
    out.scheduler = "rr";
    for (const std::string& text : destinations) {
      const size_t star = std::min(text.find('*'), text.size());
      netlink::FoundDestination one;
      one.destination = {
          .ip = Ip(text.substr(0, star)), .port = 8080, .weight = star < text.size() ? 0u : 1u};
      out.destinations.push_back(one);
    }
  }

 private:
  static Rule ToVip(const char* chain) {
    return Rule(chain).Load(0, Field::kIpDaddr).Load(1, Field::kDestinationPort);
  }
  std::vector<nft::LiveTable> tables_ = std::vector<nft::LiveTable>(1);
  std::vector<IpAddress> addresses_ = {Ip(kNodeIp)};
  std::vector<EbpfMaps> ebpf_;
  std::map<netlink::ServerAddress, Balancer> balancers_;
};

inline corev1::Service MakeService() {
  corev1::Service out;
  out.mutable_metadata()->set_namespace_("default");
  out.mutable_metadata()->set_name("web");
  auto& spec = *out.mutable_spec();
  spec.set_type("LoadBalancer");
  spec.set_cluster_ip(kVip);
  spec.add_cluster_ips(kVip);
  (*spec.mutable_selector())["app"] = "web";
  auto& port = *spec.add_ports();
  port.set_name("http");
  port.set_port(80);
  port.set_node_port(30080);
  out.mutable_status()->mutable_load_balancer()->add_ingress()->set_ip("198.51.100.7");
  return out;
}

struct SliceEndpoint {
  const char* ip;
  const char* node;
  bool ready = true;
  bool terminating = false;
};

inline discoveryv1::EndpointSlice MakeSlice(const std::vector<SliceEndpoint>& endpoints) {
  discoveryv1::EndpointSlice out;
  out.set_address_type("IPv4");
  auto& port = *out.add_ports();
  port.set_name("http");
  port.set_port(8080);
  for (const SliceEndpoint& from : endpoints) {
    auto& to = *out.add_endpoints();
    to.add_addresses(from.ip);
    to.set_node_name(from.node);
    to.mutable_conditions()->set_ready(from.ready);
    to.mutable_conditions()->set_serving(from.ready || from.terminating);
    to.mutable_conditions()->set_terminating(from.terminating);
    to.mutable_target_ref()->set_kind("Pod");
    to.mutable_target_ref()->set_namespace_("default");
    to.mutable_target_ref()->set_name(std::string("pod-") + from.ip);
  }
  return out;
}

inline const Source kHost{Source::kHost, "host", {}};
inline const Source kPod{Source::kPod, "pod default/client", {Ip("10.244.0.9")}};
inline const Source kOutside{Source::kAddress, "address 203.0.113.5", {Ip("203.0.113.5")}};

class TraceServiceTest : public ::testing::Test {
 protected:
  // The way to one kind of address, and what is wrong with it.
  TracedPath Trace(const Source& source, Frontend::Kind kind = Frontend::kClusterIp) {
    ServiceView view = MakeServiceView(service_, {MakeSlice(endpoints_)}, {Ip(kNodeIp)});
    const PortView& port = view.ports[0];
    for (const Frontend& frontend : port.frontends) {
      if (frontend.kind != kind) continue;
      TracedPath out{port.name, port.protocol, FollowPacket(node_, source, frontend, 6), port.endpoints, 0,
                     {}};
      out.problems = Judge(view, port, out.path, source, kNode);
      return out;
    }
    ADD_FAILURE() << "no such address";
    return {};
  }
  static std::vector<std::string> Reasons(const TracedPath& traced) {
    std::vector<std::string> out;
    for (const Problem& problem : traced.problems) out.push_back(problem.reason);
    return out;
  }

  FakeNode node_;
  corev1::Service service_ = MakeService();
  std::vector<SliceEndpoint> endpoints_ = {{"10.244.0.2", kNode}, {"10.244.1.2", "node2"}};
};

}  // namespace keelson::ctl
