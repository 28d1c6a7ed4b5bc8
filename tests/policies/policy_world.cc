#include "tests/policies/policy_world.h"

#include <netinet/in.h>

#include "lib/api/codec/codec.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/conntrack.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route.h"
#include "tests/policies/policy_objects.h"

namespace keelson::policies {
namespace {

const std::vector<std::pair<std::string, int>> kPods = {{"x/a", 1}, {"x/b", 1}, {"y/a", 1}, {"z/a", 1},
                                                        {"x/c", 2}, {"y/b", 2}, {"y/c", 2}, {"z/b", 2}};

struct Way {
  std::string destination, gateway;
};

Result<> Configure(netlink::Socket& socket, const std::string& name,
                   const std::vector<std::string>& addresses, const std::vector<Way>& ways) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(socket, name));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(socket, link.index));
  for (const std::string& address : addresses) {
    KEELSON_RETURN_IF_ERROR(netlink::AddAddress(socket, link.index, *IpPrefix::Parse(address)));
  }
  for (const Way& way : ways) {
    KEELSON_RETURN_IF_ERROR(netlink::AddRoute(socket, {.destination = *IpPrefix::Parse(way.destination),
                                                       .gateway = *IpAddress::Parse(way.gateway),
                                                       .link_index = link.index}));
  }
  return {};
}

// IPv6 looks for another holder of the address first, for two seconds: there is none here.
Result<> NoDuplicates() {
  Result<> set = linux::WriteSysctl("net/ipv6/conf/default/accept_dad", "0");
  return !set && set.error().Is(Code::kNotFound) ? Result<>() : set;
}

Result<> AddBridge(netlink::Socket& socket, uint8_t number) {
  const std::string n = std::to_string(number);
  KEELSON_RETURN_IF_ERROR(
      netlink::CreateBridge(socket, "br0", 0, netlink::MacAddress({2, 0, 0, 0, 0, number})));
  KEELSON_RETURN_IF_ERROR(Configure(socket, "lo", {}, {}));
  return Configure(socket, "br0", {"10." + n + ".0.254/24", "fd0" + n + "::fe/64"}, {});
}

policy::Node NodeNumber(int number) {
  const std::string n = std::to_string(number);
  return {"node" + n, {*IpPrefix::Parse("10." + n + ".0.0/24"), *IpPrefix::Parse("fd0" + n + "::/64")}};
}

}  // namespace

Result<std::unique_ptr<PolicyWorld>> PolicyWorld::Make() {
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs first, linux::NetNs::Make());
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs second, linux::NetNs::Make());
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs outside, linux::NetNs::Make());
  std::unique_ptr<PolicyWorld> out(new PolicyWorld(std::move(first), std::move(second), std::move(outside)));
  KEELSON_RETURN_IF_ERROR(out->Build());
  KEELSON_RETURN_IF_ERROR(out->StartAgents());
  for (uint16_t port : kPorts) {
    for (const auto& [name, pod] : out->pods_) {
      out->responders_.push_back(std::make_unique<netns::Responder>(name, *pod.netns, port));
    }
    for (const char* name : {"node1", "node2", "outside"}) {
      out->responders_.push_back(std::make_unique<netns::Responder>(name, out->Place(name), port));
    }
  }
  return out;
}

Result<> PolicyWorld::Build() {
  for (const linux::NetNs* place : {&first_, &second_, &outside_}) {
    KEELSON_RETURN_IF_ERROR(place->Run(NoDuplicates));
  }
  for (uint8_t number : {1, 2}) {
    for (const char* key : {"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"}) {
      KEELSON_RETURN_IF_ERROR(NodeNs(number).Run([&] { return linux::WriteSysctl(key, "1"); }));
    }
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenIn(NodeNs(number)));
    KEELSON_RETURN_IF_ERROR(AddBridge(socket, number));
  }
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket first, netlink::Socket::OpenIn(first_));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket second, netlink::Socket::OpenIn(second_));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket outside, netlink::Socket::OpenIn(outside_));
  KEELSON_RETURN_IF_ERROR(netlink::CreateVeth(first, {.name = "outside", .up = true},
                                              {.name = "eth0", .netns_fd = outside_.fd()}, 0));
  KEELSON_RETURN_IF_ERROR(netlink::CreateVeth(first, {.name = "peer", .up = true},
                                              {.name = "peer", .netns_fd = second_.fd()}, 0));
  // Service addresses need some route before they are translated.
  KEELSON_RETURN_IF_ERROR(Configure(first, "outside", {"172.30.0.1/24", "fd30::1/64"},
                                    {{"0.0.0.0/0", "172.30.0.2"}, {"::/0", "fd30::2"}}));
  KEELSON_RETURN_IF_ERROR(Configure(first, "peer", {"172.31.0.1/24", "fd31::1/64"},
                                    {{"10.2.0.0/24", "172.31.0.2"}, {"fd02::/64", "fd31::2"}}));
  KEELSON_RETURN_IF_ERROR(Configure(second, "peer", {"172.31.0.2/24", "fd31::2/64"},
                                    {{"0.0.0.0/0", "172.31.0.1"}, {"::/0", "fd31::1"}}));
  KEELSON_RETURN_IF_ERROR(Configure(outside, "eth0", {"172.30.0.2/24", "fd30::2/64"},
                                    {{"0.0.0.0/0", "172.30.0.1"}, {"::/0", "fd30::1"}}));
  int numbers[] = {0, 0, 0};
  for (const auto& [name, node] : kPods) KEELSON_RETURN_IF_ERROR(AddPod(name, node, ++numbers[node]));
  return {};
}

Result<> PolicyWorld::AddPod(const std::string& name, int node, int number) {
  PodPlace& pod = pods_[name];
  pod.node = node;
  pod.number = number;
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::Make());
  pod.netns = std::make_unique<linux::NetNs>(std::move(netns));
  KEELSON_RETURN_IF_ERROR(pod.netns->Run(NoDuplicates));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket outer, netlink::Socket::OpenIn(NodeNs(node)));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link bridge, netlink::GetLink(outer, "br0"));
  const std::string port = "pod" + std::to_string(number);
  KEELSON_RETURN_IF_ERROR(netlink::CreateVeth(outer, {.name = port, .master = bridge.index, .up = true},
                                              {.name = "eth0", .netns_fd = pod.netns->fd()}, 0));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(outer, port));
  KEELSON_RETURN_IF_ERROR(netlink::ChangePort(outer, link.index, {.hairpin = true}));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket inside, netlink::Socket::OpenIn(*pod.netns));
  KEELSON_RETURN_IF_ERROR(Configure(inside, "lo", {}, {}));
  const std::string n = std::to_string(node);
  return Configure(inside, "eth0",
                   {Address(name, true).ToString() + "/24", Address(name, false).ToString() + "/64"},
                   {{"0.0.0.0/0", "10." + n + ".0.254"}, {"::/0", "fd0" + n + "::fe"}});
}

Result<> PolicyWorld::StartAgents() {
  KEELSON_ASSIGN_OR_RETURN(node1_, PolicyNode::Open(first_, NodeNumber(1)));
  KEELSON_ASSIGN_OR_RETURN(node2_, PolicyNode::Open(second_, NodeNumber(2)));
  for (const char* name : {"node1", "node2"}) {
    const corev1::Node object = MakeNode(name, {Address(name, true), Address(name, false)});
    for (PolicyNode* node : {node1_.get(), node2_.get()}) node->Put(object);
  }
  Reset();
  KEELSON_RETURN_IF_ERROR(Sync());
  for (const auto& [name, pod] : pods_) {
    KEELSON_RETURN_IF_ERROR(node(pod.node).Attach("pod" + std::to_string(pod.number), "uid-" + name,
                                                  {Address(name, true), Address(name, false)}));
  }
  return Sync();
}

const linux::NetNs& PolicyWorld::Place(const std::string& name) const {
  if (name == "outside") return outside_;
  auto pod = pods_.find(name);
  return pod == pods_.end() ? NodeNs(NodeOf(name)) : *pod->second.netns;
}

IpAddress PolicyWorld::Address(const std::string& name, bool v4) const {
  auto at = [v4](const std::string& ip, const std::string& ip6) { return *IpAddress::Parse(v4 ? ip : ip6); };
  if (name == "outside") return at("172.30.0.2", "fd30::2");
  if (name == "node1") return at("172.31.0.1", "fd31::1");
  if (name == "node2") return at("172.31.0.2", "fd31::2");
  const PodPlace& pod = pods_.at(name);
  const std::string node = std::to_string(pod.node), number = std::to_string(pod.number);
  return at("10." + node + ".0." + number, "fd0" + node + "::" + number);
}

int PolicyWorld::NodeOf(const std::string& name) const {
  auto pod = pods_.find(name);
  if (pod != pods_.end()) return pod->second.node;
  return name == "node1" ? 1 : name == "node2" ? 2 : 0;
}

std::vector<std::string> PolicyWorld::Pods() const {
  std::vector<std::string> out;
  for (const auto& [name, pod] : pods_) out.push_back(name);
  return out;
}

int PolicyWorld::NumberOf(const std::string& pod) const {
  int number = 0;
  for (const auto& [name, place] : pods_) {
    ++number;
    if (name == pod) return number;
  }
  return 0;
}

void PolicyWorld::LabelPod(const std::string& pod, const std::map<std::string, std::string>& labels) {
  const PodPlace& place = pods_.at(pod);
  const corev1::Pod object =
      MakePod(pod, "node" + std::to_string(place.node), labels, {Address(pod, true), Address(pod, false)});
  for (PolicyNode* node : {node1_.get(), node2_.get()}) node->Put(object);
}

void PolicyWorld::LabelNamespace(const std::string& ns, const std::map<std::string, std::string>& labels) {
  const corev1::Namespace object = MakeNamespace(ns, labels);
  for (PolicyNode* node : {node1_.get(), node2_.get()}) node->Put(object);
}

Result<> PolicyWorld::PutPolicy(const std::string& name, const std::string& spec) {
  KEELSON_ASSIGN_OR_RETURN(const networkingv1::NetworkPolicy object, MakePolicy(name, spec));
  policies_[name] = spec;
  for (PolicyNode* node : {node1_.get(), node2_.get()}) node->Put(object);
  return {};
}

void PolicyWorld::DeletePolicy(const std::string& name) {
  policies_.erase(name);
  for (PolicyNode* node : {node1_.get(), node2_.get()}) node->ErasePolicy(name);
}

Result<> PolicyWorld::PutClusterPolicy(agent::ClusterPolicyKind kind, const std::string& name,
                                       const std::string& spec) {
  KEELSON_ASSIGN_OR_RETURN(
      const agent::ClusterPolicyList list,
      agent::ParseClusterPolicies(
          R"({"items":[{"metadata":{"name":")" + name + R"("},"spec":)" + spec + "}]}", kind));
  const policy::ClusterPolicy& policy = list.policies.at(0).policy;
  if (!policy.problems.empty()) return Error(Code::kInvalid, policy.problems[0]);
  cluster_policies_.insert(policy.name);
  for (PolicyNode* node : {node1_.get(), node2_.get()}) node->Put(policy);
  return {};
}

void PolicyWorld::DeleteClusterPolicy(const std::string& name) {
  cluster_policies_.erase(name);
  for (PolicyNode* node : {node1_.get(), node2_.get()}) node->EraseClusterPolicy(name);
}

void PolicyWorld::Reset() {
  for (const std::string& name : std::set(cluster_policies_)) DeleteClusterPolicy(name);
  for (const auto& [name, spec] : std::map(policies_)) DeletePolicy(name);
  for (const char* ns : {"x", "y", "z"}) LabelNamespace(ns, {});
  for (const std::string& pod : Pods()) LabelPod(pod, {});
}

Result<> PolicyWorld::Sync() {
  for (PolicyNode* node : {node1_.get(), node2_.get()}) {
    KEELSON_ASSIGN_OR_RETURN(const bool changed, node->Sync());
    (void)changed;
  }
  return {};
}

Result<> PolicyWorld::ForgetDatagrams() {
  for (int number : {1, 2}) {
    KEELSON_RETURN_IF_ERROR(NodeNs(number).Run([]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenNetfilter());
      for (uint8_t protocol : {IPPROTO_UDP, IPPROTO_SCTP}) {
        for (bool v4 : {true, false}) {
          KEELSON_ASSIGN_OR_RETURN(const auto flows, netlink::ListFlows(socket, v4, protocol));
          for (const netlink::Flow& flow : flows) {
            KEELSON_ASSIGN_OR_RETURN(const bool deleted, netlink::DeleteFlow(socket, flow));
            (void)deleted;
          }
        }
      }
      return {};
    }));
  }
  return {};
}

}  // namespace keelson::policies
