// For benchmarks: as many policies as pods of one node.
#pragma once

#include <optional>
#include <string>

#include "cni/policy/plan.h"

namespace keelson::cni::policy {

inline constexpr int kPerNamespace = 10;

inline Selector Is(const char* key, const std::string& value) {
  return Selector{{{.key = key, .op = Selector::Op::kIn, .values = {value}}}};
}

inline Pod PodNumber(int number) {
  std::string n = std::to_string(number);
  Pod pod{.ns = "ns-" + std::to_string(number / kPerNamespace), .name = "pod-" + n, .uid = "uid-" + n};
  pod.node = "n1";
  pod.labels = {{"app", "app-" + std::to_string(number % kPerNamespace)},
                {"team", "team-" + std::to_string(number % 7)}};
  pod.ports = {{"web", 6, 8080}};
  pod.addresses = {IpAddress::Parse("10.128.0.2")->Plus(number)};
  return pod;
}

// Each policy selects one app of a namespace, and lets in another app and a team of the whole cluster.
inline Policy PolicyNumber(int number) {
  int app = number % kPerNamespace;
  Policy policy{.ns = "ns-" + std::to_string(number / kPerNamespace),
                .name = "policy-" + std::to_string(number)};
  policy.pods = Is("app", "app-" + std::to_string(app));
  policy.isolates_ingress = true;
  Rule near{.peers = {{.pods = Is("app", "app-" + std::to_string((app + 1) % kPerNamespace))}},
            .ports = {{.protocol = 6, .name = "web"}}};
  Rule far{.peers = {{.pods = Is("team", "team-" + std::to_string(number % 7)), .namespaces = Selector()}},
           .ports = {{.protocol = 6, .first = 9090, .last = 9099}}};
  policy.ingress = {near, far};
  return policy;
}

struct World {
  Cluster cluster;
  Attachments attachments;
  Node node{"n1", {*IpPrefix::Parse("10.128.0.0/16")}};

  explicit World(int count) {
    for (int i = 0; i < count; ++i) {
      Add(i);
      Policy policy = PolicyNumber(i);
      cluster.policies[policy.ns + "/" + policy.name] = policy;
    }
  }
  void Add(int number) {
    Pod pod = PodNumber(number);
    cluster.namespaces[pod.ns];
    attachments[pod.addresses[0]] = {.uid = pod.uid, .epoch = static_cast<uint32_t>(number + 1)};
    cluster.pods[pod.ns + "/" + pod.name] = pod;
  }
  void Remove(int number) {
    Pod pod = PodNumber(number);
    attachments.erase(pod.addresses[0]);
    cluster.pods.erase(pod.ns + "/" + pod.name);
  }
};

// The same policies as others write them: a chain a policy, and a rule a policy that leads there.
inline nft::Ruleset ChainPerPolicy(const World& world) {
  const nft::Verdict accept = {nft::Verdict::Kind::kAccept};
  nft::Ruleset out{.table = {nft::Family::kInet, "chain-per-policy"}};
  auto new_set = [&](const std::string& name, const Cluster& cluster, auto picks) {
    auto& contents = out.sets[name];
    contents.set = {.name = name, .key = {nft::Type::kIpv4Addr}};
    for (const auto& [key, pod] : cluster.pods) {
      if (!picks(pod)) continue;
      std::string address = nft::Key().Ip(pod.addresses[0]).bytes();
      contents.elements[address] = {.key = address};
    }
  };
  auto& forward = out.chains["forward"];
  forward.chain = {"forward", nft::Hook{nft::HookType::kFilter, nft::HookPoint::kForward, 0}};
  nft::Rule known("forward");
  forward.rules.push_back(std::move(known.AnyBit(nft::Field::kCtState, 6).Finish(accept)));
  new_set("isolated", world.cluster, [](const Pod&) { return true; });
  for (const auto& entry : world.cluster.policies) {
    const Policy& policy = entry.second;
    const std::string chain = "chain-" + policy.name, pods = "pods-" + policy.name;
    new_set(pods, world.cluster,
            [&](const Pod& pod) { return pod.ns == policy.ns && policy.pods.Matches(pod.labels); });
    nft::Rule enter("forward");
    enter.Load(0, nft::Field::kIpDaddr).InSet(0, pods).Finish(nft::Jump(chain));
    forward.rules.push_back(std::move(enter));
    auto& contents = out.chains[chain];
    contents.chain = {chain, std::nullopt};
    for (size_t i = 0; i < policy.ingress.size(); ++i) {
      const Peer& peer = policy.ingress[i].peers[0];
      const std::string from = "from-" + std::to_string(i) + "-" + policy.name;
      new_set(from, world.cluster, [&](const Pod& pod) {
        return (peer.namespaces || pod.ns == policy.ns) && peer.pods->Matches(pod.labels);
      });
      nft::Rule rule(chain);
      rule.Load(0, nft::Field::kIpSaddr).InSet(0, from).Load(0, nft::Field::kDestinationPort);
      rule.Equal(0, nft::Key().Port(i == 0 ? 8080 : 9090).bytes()).Finish(accept);
      contents.rules.push_back(std::move(rule));
    }
  }
  nft::Rule rest("forward");
  rest.Load(0, nft::Field::kIpDaddr).InSet(0, "isolated").Finish({nft::Verdict::Kind::kDrop});
  forward.rules.push_back(std::move(rest));
  return out;
}

}  // namespace keelson::cni::policy
