// For tests: a small network of nodes on one switch or behind a router, each a network namespace with a pod
// in another one; agents that run on them against one fake API; and traffic between the pods.
//
//   pod - keelson0 [node a] eth0 10.0.0.1 --+                       +-- eth0 10.9.0.3 [node far] - pod
//   pod - keelson0 [node b] eth0 10.0.0.2 --+-- 10.0.0.254 [router]-+
//                                        (switch)   192.0.2.1: outside the cluster
//
// IPv6 likewise: fd10::N/64, fd19::N/64, outside 2001:db8::1. Node number N has pods 10.244.N.0/24 and
// fd44:N::/64; its pod is .2.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cni/agent/node_watch.h"
#include "cni/agent/syncer.h"
#include "lib/client/testing/fake_api.h"
#include "lib/linux/netns.h"

namespace keelson::cni::agent {

// Answers each datagram at UDP port 7 of a namespace with the sender's address, at one address or all (the
// reply then comes from the address that the kernel prefers).
class Echo {
 public:
  explicit Echo(const linux::NetNs& netns, const char* address = "::");

 private:
  UniqueFd socket_;
  std::jthread thread_;
};

// The source address that `to` sees for a datagram from `from`; empty when no reply comes within five
// seconds.
std::string SeenAs(const linux::NetNs& from, const IpAddress& to);

// Sends a datagram every millisecond, until Finish().
class Traffic {
 public:
  Traffic(const linux::NetNs& from, const IpAddress& to);
  void AwaitReplies(int more);  // blocks until `more` datagrams have been answered
  int Finish();                 // returns how many were never answered

 private:
  UniqueFd socket_;
  std::atomic<int> sent_{0}, answered_{0};
  std::jthread sender_, receiver_;
};

struct NodeSite {
  std::string name;
  int number = 0;
  linux::NetNs host, pod;
  std::vector<IpAddress> addresses;  // of `host`
  IpAddress PodIp(bool v4 = true) const;
};

// The agent's parts in a node's namespace, connected as in services.cc.
class RunningAgent {
 public:
  RunningAgent(const NodeSite& site, std::shared_ptr<client::Transport> api, Config config,
               std::unique_ptr<Extension> extension = nullptr);
  ~RunningAgent();
  Syncer& syncer() { return *syncer_; }
  Health& health() { return health_; }
  // Blocks until `condition` holds; checks it after every sync.
  bool Await(const std::function<bool()>& condition);

 private:
  Health health_;
  std::unique_ptr<Syncer> syncer_;
  NodeWatch nodes_;
  std::vector<std::jthread> threads_;
};

class Network {
 public:
  static Result<std::unique_ptr<Network>> Make();
  ~Network();
  // Adds a node on the switch, or behind the router; stores its Node object in the fake API.
  Result<> AddNode(const std::string& name, bool behind_router = false, bool dual_stack = true);
  const NodeSite& site(const std::string& name) const;
  Config ConfigFor(const std::string& name, Mode mode = Mode::kAuto) const;
  corev1::Node ObjectOf(const NodeSite& site, bool dual_stack = true) const;

  std::shared_ptr<client::FakeApi> api() const { return api_; }
  const linux::NetNs& lan() const { return lan_; }  // the switch: node number N is on port nodeN
  const linux::NetNs& router() const { return router_; }
  const std::string& dir() const { return dir_; }

 private:
  Network(linux::NetNs lan, linux::NetNs router);
  Result<> Build();
  Result<> Connect(NodeSite& site, bool behind_router);
  Result<> AddPod(NodeSite& site);
  linux::NetNs lan_, router_;
  std::shared_ptr<client::FakeApi> api_;
  std::string dir_;
  std::vector<std::unique_ptr<NodeSite>> sites_;
};

}  // namespace keelson::cni::agent
