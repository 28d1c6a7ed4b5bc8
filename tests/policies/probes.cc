#include "tests/policies/probes.h"

#include <atomic>
#include <cerrno>
#include <thread>

namespace keelson::policies {
namespace {

constexpr std::chrono::milliseconds kSilence{40}, kTry{1500};
constexpr int kTries = 8;  // a machine under load loses no packets, but may be slow
constexpr uint16_t kServicePorts = 8000, kNodePorts = 30000;

IpAddress ClusterIp(int number, bool v4) {
  return IpAddress::Parse(v4 ? "10.96.0.0" : "fd96::")->Plus(static_cast<uint64_t>(number));
}

uint16_t NodePort(int number, uint16_t port) {
  return static_cast<uint16_t>(kNodePorts + 2 * number + (port - kPorts[0]));
}

proxy::ResolvedPort PortOf(const PolicyWorld& world, const std::string& pod, uint16_t port, uint8_t protocol,
                           bool v4) {
  const int number = world.NumberOf(pod);
  proxy::ResolvedPort out{.service = {.name = "services/" + pod + ":" + std::to_string(port),
                                      .protocol = protocol,
                                      .cluster_ip = ClusterIp(number, v4),
                                      .port = static_cast<uint16_t>(kServicePorts + port),
                                      .node_port = NodePort(number, port)}};
  out.cluster = {{world.Address(pod, v4), port, world.NodeOf(pod) == 1}};
  out.has_endpoints = true;
  return out;
}

// Empty: as it should be.
std::string Check(const PolicyWorld& world, const Probe& probe) {
  netns::Question question = probe.question;
  question.limit = probe.open ? kTry : kSilence;
  Result<netns::Answer> answer = netns::Ask(world.Place(probe.from), question);
  for (int i = 1; probe.open && !answer && i < kTries; ++i) {
    answer = netns::Ask(world.Place(probe.from), question);
  }
  const std::string what = probe.from + " to " + probe.to + ", " + probe.way + ", " + question.to.ToString() +
                           " port " + std::to_string(question.port) + ": ";
  if (!probe.open) {
    if (answer) return what + answer->server + " answers, and it should be shut";
    const int error = answer.error().errnum();
    return error == ETIMEDOUT || error == EPERM ? "" : what + answer.error().message() + ", not dropped";
  }
  if (!answer) return what + answer.error().message() + ", and it should be open";
  return answer->server == probe.to ? "" : what + answer->server + " answers";
}

}  // namespace

Result<std::unique_ptr<Services>> Services::Start(const PolicyWorld& world, netns::PlaneOptions options) {
  std::unique_ptr<Services> out(new Services());
  if (options.mode == "none") return out;
  KEELSON_RETURN_IF_ERROR(netns::Possible(options.mode));
  if (options.mode == "ebpf") {
    KEELSON_ASSIGN_OR_RETURN(out->machine_, netns::NodeMachine::Make());
  }
  for (bool v4 : {true, false}) KEELSON_RETURN_IF_ERROR(out->StartFamily(world, options, v4));
  out->any_ = true;
  return out;
}

Result<> Services::StartFamily(const PolicyWorld& world, netns::PlaneOptions options, bool v4) {
  options.v4 = v4;
  for (const char* cidr : {v4 ? "10.1.0.0/16" : "fd01::/64", v4 ? "10.2.0.0/16" : "fd02::/64"}) {
    options.pod_cidrs.push_back(*IpPrefix::Parse(cidr));
  }
  KEELSON_ASSIGN_OR_RETURN(auto plane, netns::MakePlane(world.Place("node1"), options,
                                                        machine_ ? machine_->places() : netns::NodePlaces{}));
  plane->SetNodeIps({*IpAddress::Parse(v4 ? "172.30.0.1" : "fd30::1")});
  plane->SetServiceCidrs({*IpPrefix::Parse(v4 ? "10.96.0.0/16" : "fd96::/108")});
  for (const std::string& pod : world.Pods()) {
    std::vector<proxy::ResolvedPort> ports;
    for (uint16_t port : kPorts) {
      for (uint8_t protocol : {proxy::kTcp, proxy::kUdp, proxy::kSctp}) {
        ports.push_back(PortOf(world, pod, port, protocol, v4));
      }
    }
    plane->SetService("services/" + pod, ports);
  }
  planes_.push_back(std::move(plane));
  return planes_.back()->Sync();
}

void Services::AddWays(const PolicyWorld& world, Probe probe, uint8_t protocol, uint16_t port,
                       std::vector<Probe>& out) const {
  for (bool v4 : {true, false}) {
    probe.question.protocol = protocol;
    if (world.IsPod(probe.from)) probe.question.source = world.Address(probe.from, v4);
    probe.question.to = world.Address(probe.to, v4);
    probe.question.port = port;
    probe.way = "by its address";
    // A packet to oneself leaves the pod only by a Service.
    if (probe.from != probe.to) out.push_back(probe);
    if (!any_ || !world.IsPod(probe.to)) continue;
    const int number = world.NumberOf(probe.to);
    if (world.NodeOf(probe.from) == 1) {
      probe.question.to = ClusterIp(number, v4);
      probe.question.port = static_cast<uint16_t>(kServicePorts + port);
      probe.way = "by its Service";
      out.push_back(probe);
    }
    // What node1 sends on to node2 has node1's address there.
    if (world.NodeOf(probe.from) == 0 && world.NodeOf(probe.to) == 1) {
      probe.question.to = *IpAddress::Parse(v4 ? "172.30.0.1" : "fd30::1");
      probe.question.port = NodePort(number, port);
      probe.way = "by a NodePort";
      out.push_back(probe);
    }
  }
}

std::vector<std::string> Services::Send(const PolicyWorld& world, const std::vector<Probe>& probes) const {
  std::vector<std::string> results(probes.size());
  for (bool on_node1 : {true, false}) {
    if (!machine_ && !on_node1) break;
    // All processes of this test move from one node to the other.
    if (machine_) {
      if (Result<> entered = machine_->Enter(on_node1); !entered) return {entered.error().message()};
    }
    std::vector<std::jthread> threads;
    for (bool open : {false, true}) {
      for (size_t i = 0; i < probes.size(); ++i) {
        if (probes[i].open != open) continue;
        if (machine_ && (world.NodeOf(probes[i].from) == 1) != on_node1) continue;
        threads.emplace_back([&, i] { results[i] = Check(world, probes[i]); });
      }
    }
  }
  if (machine_) {
    if (Result<> left = machine_->Enter(false); !left) return {left.error().message()};
  }
  std::erase(results, "");
  return results;
}

}  // namespace keelson::policies
