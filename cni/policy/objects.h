// What NetworkPolicy enforcement needs of API objects, as plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
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

struct Block {
  IpPrefix cidr;
  std::vector<IpPrefix> except = {};
  bool operator==(const Block&) const = default;
};

// Either a block or selectors. Without a namespace selector the pods are those of the policy's namespace.
struct Peer {
  std::optional<Selector> pods = {}, namespaces = {};
  std::optional<Block> block = {};
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

struct Policy {
  std::string ns = {}, name = {};
  Selector pods;
  bool isolates_ingress = false, isolates_egress = false;
  std::vector<Rule> ingress = {}, egress = {};
  // What cannot be understood, and therefore permits nothing.
  std::vector<std::string> problems = {};
  bool operator==(const Policy&) const = default;
};

// The cluster. Keys are "NAMESPACE/NAME", and names of namespaces.
struct Cluster {
  std::map<std::string, Pod, std::less<>> pods;
  std::map<std::string, Labels, std::less<>> namespaces;
  std::map<std::string, Policy, std::less<>> policies;
};

}  // namespace keelson::cni::policy
