// What becomes of a connection to a Service: the rules that every dataplane has to follow, and what tests
// hold them to. Pure.
//
//               | pod                  | this node's processes | from outside
//   cluster IP  | internal policy      | internal policy, m    | internal policy, m
//   NodePort, external, load balancer address:
//     policy Cluster | all, m          | all, m                | all, m
//     policy Local   | all             | all, m                | those on this node; none: dropped
//
// m: masqueraded. Pods and the node are short-circuited past policy Local, as if they had gone out to a load
// balancer and come back. Without any endpoint in the cluster everything is refused.
#pragma once

#include <vector>

#include "proxy/model/service_port.h"

namespace keelson::proxy {

enum class Entry { kClusterIp, kExternalIp, kLoadBalancerIp, kNodePort };
enum class Origin { kPod, kNode, kOutside };

enum class Fate { kServed, kRefused, kDropped };

// Of what comes to the cluster IP.
Fate InternalFate(const ResolvedPort& port);
// Of what comes from outside to any other address, if source ranges let it in.
Fate ExternalFate(const ResolvedPort& port);

struct TrafficOptions {
  bool masquerade_all = false;
  bool detects_pods = true;  // pods can be told from others; else they count as outside
};

struct Decision {
  Fate fate = Fate::kServed;
  const std::vector<Backend>* endpoints = nullptr;  // kServed: of `port`
  bool masquerade = false;                          // besides what goes back to the client itself (hairpin)
};

// `source` and `vip` matter to load balancer addresses with source ranges: a node that has the address itself
// appears as that address, and is let in when the ranges include the node (`node_ips`).
Decision Decide(const ResolvedPort& port, Entry entry, Origin origin, const IpAddress& source,
                const TrafficOptions& options = {});

// Source ranges of `port` with what they imply for the node itself.
std::vector<IpPrefix> AdmittedSources(const ServicePort& port, const std::vector<IpAddress>& node_ips);

}  // namespace keelson::proxy
