// For tests: connections between places of a PolicyWorld, many at once: which ones must work, and which ones get
// no answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/netns/node_machine.h"
#include "tests/netns/service_plane.h"
#include "tests/policies/policy_world.h"

namespace keelson::policies {

struct Probe {
  std::string from = {}, to = {};
  const char* way = "";  // how it gets there, for people
  netns::Question question = {};
  bool open = true;
};

// kube-proxy on node1, in one mode and both families. Each pod has a Service of its own, with ports 8080 and 8081
// for its ports 80 and 81 of every protocol, and NodePorts.
class Services {
 public:
  static Result<std::unique_ptr<Services>> Start(const PolicyWorld& world, netns::PlaneOptions options);

  // Appends the ways between two places that the mode has, in both families.
  void AddWays(const PolicyWorld& world, Probe probe, uint8_t protocol, uint16_t port,
               std::vector<Probe>& out) const;
  // Sends all, and returns what is not as it should be. Those that must not work are sent first; they fail
  // here when an answer comes before those that must work have theirs, and some milliseconds more.
  std::vector<std::string> Send(const PolicyWorld& world, const std::vector<Probe>& probes) const;

 private:
  Services() = default;
  Result<> StartFamily(const PolicyWorld& world, netns::PlaneOptions options, bool v4);

  std::unique_ptr<netns::NodeMachine> machine_;  // of node1, for modes that tell processes apart
  std::vector<std::unique_ptr<netns::ServicePlane>> planes_;
  bool any_ = false;
};

}  // namespace keelson::policies
