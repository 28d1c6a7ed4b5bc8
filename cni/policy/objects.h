// What NetworkPolicy enforcement needs of API objects, as plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/ip.h"

namespace keelson::cni::policy {

using Labels = std::map<std::string, std::string, std::less<>>;

// A LabelSelector; without requirements it matches everything.
struct Selector {
  enum class Op { kIn, kNotIn, kExists, kDoesNotExist, kNothing };  // kNothing: an operator that is not known
  struct Requirement {
    std::string key = {};
    Op op = Op::kIn;
    std::vector<std::string> values = {};
    bool operator==(const Requirement&) const = default;
  };
  std::vector<Requirement> requirements = {};

  bool Matches(const Labels& labels) const;
  // Unambiguous: equal texts mean equal requirements in the same order.
  std::string Text() const;
  bool operator==(const Selector&) const = default;
};

struct ContainerPort {
  std::string name = {};  // ports without a name are left out
  uint8_t protocol = 6;
  uint16_t port = 0;
  bool operator==(const ContainerPort&) const = default;
};

struct Pod {
  std::string ns = {}, name = {}, uid = {}, node = {};
  std::string static_uid = {};  // of a mirror pod: the UID that the runtime knows the static pod by
  Labels labels = {};
  std::vector<ContainerPort> ports = {};
  std::vector<IpAddress> addresses = {};  // status.podIPs
  bool host_network = false;
  bool finished = false;     // phase Succeeded or Failed
  bool terminating = false;  // metadata.deletionTimestamp is set
  int64_t created = 0;       // seconds since 1970
  bool operator==(const Pod&) const = default;
};

// A Node as a peer.
struct ClusterNode {
  Labels labels = {};
  std::vector<IpAddress> addresses = {};  // those of status.addresses that are IPs
  bool operator==(const ClusterNode&) const = default;
};
using ClusterNodes = std::map<std::string, ClusterNode, std::less<>>;  // by name

struct Block {
  IpPrefix cidr;
  std::vector<IpPrefix> except = {};
  bool operator==(const Block&) const = default;
};

// A block, a domain name, nodes or selectors. Without a namespace selector the pods are those of the policy's namespace.
struct Peer {
  std::optional<Selector> pods = {}, namespaces = {};
  std::optional<Block> block = {};
  // "www.example.com", "*.example.com": addresses that the cluster's DNS has given for such a name
  // (lib/dataplane/domain_sets.h). In egress rules of ClusterPolicies that accept.
  std::string domain = {};
  // Addresses of the nodes that it picks. In egress rules of ClusterPolicies.
  std::optional<Selector> nodes = {};
  bool operator==(const Peer&) const = default;
};

struct Port {
  uint8_t protocol = 6;
  std::string name = {};  // else the numbers
  uint16_t first = 0, last = 65535;
  bool operator==(const Port&) const = default;
};

struct Rule {
  std::vector<Peer> peers = {};  // empty: any
  std::vector<Port> ports = {};  // empty: any
  bool operator==(const Rule&) const = default;
};

enum class Direction { kIngress, kEgress };

struct Policy {
  std::string ns = {}, name = {};
  Selector pods;
  bool isolates_ingress = false, isolates_egress = false;
  bool Isolates(Direction direction) const {
    return direction == Direction::kIngress ? isolates_ingress : isolates_egress;
  }
  std::vector<Rule> ingress = {}, egress = {};
  // What cannot be understood, and therefore permits nothing.
  std::vector<std::string> problems = {};
  bool operator==(const Policy&) const = default;
};

// A rule of a ClusterNetworkPolicy. Its peers have a namespace selector, or are blocks, domain names or nodes; without peers
// it matches any address, without ports every packet. Beside a domain name or nodes no port is named.
struct TierRule {
  enum class Action { kAccept, kDeny, kPass };
  Action action = Action::kDeny;
  std::string name = {};  // may be empty
  std::vector<Peer> peers = {};
  std::vector<Port> ports = {};
  bool operator==(const TierRule&) const = default;
};

// A ClusterNetworkPolicy, or one of the older kinds AdminNetworkPolicy and BaselineAdminNetworkPolicy, whose `name` has
// their kind in front: "AdminNetworkPolicy/NAME". The tier Admin decides before NetworkPolicies, the tier Baseline about pods that no
// NetworkPolicy isolates. Within a tier the lower priority comes first, and of equal ones the lower name.
struct ClusterPolicy {
  enum class Tier { kAdmin, kBaseline };
  std::string name = {};
  Tier tier = Tier::kAdmin;
  int priority = 0;           // 0 to 1000; 1001 of a BaselineAdminNetworkPolicy, which has none
  Selector namespaces, pods;  // both have to match
  std::vector<TierRule> ingress = {}, egress = {};
  // What cannot be understood or enforced: it is handled as the API says of an unknown peer ("fail closed").
  std::vector<std::string> problems = {};
  // "ClusterNetworkPolicy NAME", "AdminNetworkPolicy/NAME": for people.
  std::string Title() const {
    return name.find('/') == std::string::npos ? "ClusterNetworkPolicy " + name : name;
  }
  const std::vector<TierRule>& Rules(Direction direction) const {
    return direction == Direction::kIngress ? ingress : egress;
  }
  bool Selects(const Labels& pod, const Labels* of_namespace) const {
    return of_namespace && namespaces.Matches(*of_namespace) && pods.Matches(pod);
  }
  // Whether it comes before another one of its tier.
  bool Before(const ClusterPolicy& other) const {
    return std::tie(priority, name) < std::tie(other.priority, other.name);
  }
  bool operator==(const ClusterPolicy&) const = default;
};

// Packets that policies deny are logged: their headers go to an nfnetlink_log group, with the policies as
// prefix. The limit is that of one chain, which pods with equal rules share.
struct DeniedLog {
  uint16_t group = 0;
  uint32_t per_second = 10;  // and as many at once
  bool operator==(const DeniedLog&) const = default;
};

// The cluster. Keys are "NAMESPACE/NAME", and names of objects without a namespace.
struct Cluster {
  std::map<std::string, Pod, std::less<>> pods;
  std::map<std::string, Labels, std::less<>> namespaces;
  std::map<std::string, Policy, std::less<>> policies;
  std::map<std::string, ClusterPolicy, std::less<>> cluster_policies;
  ClusterNodes nodes;
};

}  // namespace keelson::cni::policy
