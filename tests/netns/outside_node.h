// For tests: a node in mode ebpf that serves outside clients, without rules, and so without masquerading.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lib/bpf/map.h"
#include "tests/netns/ebpf_node.h"

namespace keelson::netns {

// As kube-proxy's options.
struct Ways {
  bool direct = false, dsr = false;
  std::string xdp = "off";
};

class OutsideNodeTest : public EbpfNodeTest {
 protected:
  using Backend = proxy::Backend;
  using ResolvedPort = proxy::ResolvedPort;
  using Devices = proxy::ebpf::Devices;
  using Plan = proxy::ebpf::Plan;
  using Datapath = proxy::ebpf::Datapath;

  Plan MakePlan(bool v4 = true) {
    Plan plan({.v4 = v4, .pod_cidrs = {*IpPrefix::Parse(v4 ? "10.0.0.0/8" : "fd02::/64")}});
    plan.SetNodeIps({ClientAddress("node", v4)});
    return plan;
  }
  Datapath Start(bool v4 = true, const Ways& ways = {}) { return StartIn("node", {}, v4, ways); }
  // Of the node, or of the one that is behind `place`, which then has pins of its own; all `devices` if
  // empty.
  Datapath StartIn(const std::string& place, std::vector<std::string> devices, bool v4, const Ways& ways) {
    auto netns = linux::NetNs::OpenCurrent();
    EXPECT_TRUE(world_->Place(place).Run([&]() -> Result<> {
      netns = linux::NetNs::OpenCurrent();
      return {};
    }));
    const std::string pins = machine_->places().pins + (place == "node" ? "" : "/" + place);
    const std::vector<IpPrefix> pods = {*IpPrefix::Parse("10.0.0.0/8"), *IpPrefix::Parse("fd01::/64")};
    return {{.cgroup = machine_->places().cgroup,
             .pin_directory = pins,
             .least_entries = 64,
             .dsr = ways.dsr,
             .connections = 1024},
            v4,
            std::make_unique<Devices>(std::move(*netns),
                                      proxy::ebpf::DeviceOptions{.names = std::move(devices),
                                                                 .direct = ways.direct,
                                                                 .xdp = {ways.xdp},
                                                                 .pod_cidrs = pods,
                                                                 .pin_directory = pins},
                                      v4)};
  }
  // A port with policy Local, at a NodePort and an external address.
  static ResolvedPort Local(std::vector<Backend> endpoints, bool v4 = true, uint8_t protocol = proxy::kTcp) {
    ResolvedPort out{.service = {.name = "ns/web",
                                 .protocol = protocol,
                                 .cluster_ip = Ip(v4 ? "10.96.0.1" : "fd96::1"),
                                 .port = 80,
                                 .node_port = 30080,
                                 .external_ips = {Ip(v4 ? "192.0.2.1" : "fd99::1")},
                                 .external_local = true}};
    out.has_endpoints = true;
    out.local = out.cluster = std::move(endpoints);
    return out;
  }
  Question To(const char* client, const IpAddress& to, uint16_t port, uint8_t protocol = proxy::kTcp) {
    Question out = world_->From(client, to.is_v4());
    out.protocol = protocol;
    out.to = to;
    out.port = port;
    out.limit = std::chrono::milliseconds(500);
    return out;
  }
  // "SERVER CLIENT-IP", or the error.
  std::string Ask(const Question& question) {
    Result<Answer> answer = netns::Ask(world_->Place("outside"), question);
    return answer ? answer->server + " " + answer->seen_as : std::strerror(answer.error().errnum());
  }
  std::vector<bpf::Map::Entry> Connections(bool v4 = true) {
    auto map = bpf::Map::OpenPinned(Pins("maps-1/connections", v4));
    if (!map) return {};
    auto entries = map->Dump();
    EXPECT_TRUE(entries) << entries.error().message();
    return entries ? *entries : std::vector<bpf::Map::Entry>();
  }
  size_t Remembered(bool v4 = true) { return Connections(v4).size(); }
  Result<> OnNode(const std::string& command) {
    return world_->node().Run([&]() -> Result<> {
      return std::system(command.c_str()) == 0 ? Result<>() : Error(Code::kInternal, command);
    });
  }
};

}  // namespace keelson::netns
