// For tests: two nodes with pods, a client outside of the cluster, and kube-cni's policies on both nodes.
//
//   outside 172.30.0.2 --- 172.30.0.1 [node1] 172.31.0.1 --- 172.31.0.2 [node2]
//                                      br0 10.1.0.254                    br0 10.2.0.254
//                                       |- x/a 10.1.0.1                   |- x/c 10.2.0.1
//                                       |- x/b 10.1.0.2                   |- y/b 10.2.0.2
//                                       |- y/a 10.1.0.3                   |- y/c 10.2.0.3
//                                       '- z/a 10.1.0.4                   '- z/b 10.2.0.4
//
// IPv6 likewise: fd30::/64, fd31::/64, fd01::/64, fd02::/64. Everything listens on ports 80 and 81. The Node objects have
// the addresses between the nodes, and the labels `kubernetes.io/os`: linux and `node`: their name.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cni/agent/policy/cluster_policy.h"
#include "lib/linux/netns.h"
#include "tests/netns/wire.h"
#include "tests/policies/policy_node.h"

namespace keelson::policies {

inline constexpr uint16_t kPorts[] = {80, 81};

class PolicyWorld {
 public:
  // Every pod is attached and ready, and no policy exists.
  static Result<std::unique_ptr<PolicyWorld>> Make();

  // A pod as "x/a", "node1", "node2" or "outside".
  const linux::NetNs& Place(const std::string& name) const;
  // A node's towards the other node.
  IpAddress Address(const std::string& name, bool v4) const;
  bool IsPod(const std::string& name) const { return pods_.contains(name); }
  int NodeOf(const std::string& name) const;  // 1 or 2; 0: outside
  std::vector<std::string> Pods() const;
  // Of a pod, from 1 on.
  int NumberOf(const std::string& pod) const;

  PolicyNode& node(int number) { return *(number == 1 ? node1_ : node2_); }
  // Objects, to both nodes; in effect after Sync(). Labels come on top of a pod's {"pod": NAME} and a namespace's
  // name.
  void LabelPod(const std::string& pod, const std::map<std::string, std::string>& labels);
  void LabelNamespace(const std::string& ns, const std::map<std::string, std::string>& labels);
  // `name`: NAMESPACE/NAME; `spec`: as JSON.
  Result<> PutPolicy(const std::string& name, const std::string& spec);
  void DeletePolicy(const std::string& name);
  // A policy of the whole cluster; an error too when a part of it is not enforced as written.
  Result<> PutClusterPolicy(agent::ClusterPolicyKind kind, const std::string& name, const std::string& spec);
  void DeleteClusterPolicy(const std::string& name);
  // No policies, no more labels.
  void Reset();
  Result<> Sync();
  // Connection tracking forgets, so that packets of later rounds are first packets again.
  Result<> ForgetDatagrams();

 private:
  struct PodPlace {
    int node = 0, number = 0;
    std::unique_ptr<linux::NetNs> netns;
  };
  PolicyWorld(linux::NetNs first, linux::NetNs second, linux::NetNs outside)
      : first_(std::move(first)), second_(std::move(second)), outside_(std::move(outside)) {}
  Result<> Build();
  Result<> AddPod(const std::string& name, int node, int number);
  Result<> StartAgents();
  const linux::NetNs& NodeNs(int number) const { return number == 1 ? first_ : second_; }

  linux::NetNs first_, second_, outside_;
  std::map<std::string, PodPlace> pods_;
  std::unique_ptr<PolicyNode> node1_, node2_;
  std::map<std::string, std::string> policies_;
  std::set<std::string> cluster_policies_;
  std::vector<std::unique_ptr<netns::Responder>> responders_;
};

}  // namespace keelson::policies
