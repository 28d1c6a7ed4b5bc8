// What becomes of a connection to a Service: the rules that every dataplane follows, and that tests hold it
// to. Pure.
//
//               | pod                  | this node's processes | from outside
//   cluster IP  | internal policy      | internal policy, m    | internal policy, m
//   NodePort, external, load balancer address:
//     policy Cluster | all, m          | all, m                | all, m
//     policy Local   | all             | all, m                | those on this node; none: dropped
//
// m: masqueraded. For pods and the node policy Local is short-circuited, as if their traffic had gone out to
// a load balancer and come back. Without any endpoint in the cluster everything is refused.
#pragma once

#include <vector>

#include "proxy/model/service_port.h"

namespace keelson::proxy {

// The kinds of addresses that a Service is reached at, and of clients.
enum class Frontend { kClusterIp, kExternalIp, kLoadBalancerIp, kNodePort };
enum class Origin { kPod, kNode, kExternal };

enum class TrafficVerdict { kServed, kRefused, kDropped };

// The verdict for the cluster IP (internalTrafficPolicy).
TrafficVerdict InternalVerdict(const ResolvedPort& port);
// The verdict for external traffic to any other address (externalTrafficPolicy), if source ranges let it in.
TrafficVerdict ExternalVerdict(const ResolvedPort& port);

struct TrafficOptions {
  bool masquerade_all = false;
  bool detects_pods = true;  // pods can be told from others; else their traffic is external
};

struct Decision {
  TrafficVerdict verdict = TrafficVerdict::kServed;
  const std::vector<Backend>* endpoints = nullptr;  // kServed: a list of `port`
  bool masquerade = false;  // hairpin traffic, to the client itself, is masqueraded in any case
};

// What becomes of a connection from `origin` to a frontend of `port`. `source`: the client's address, which
// matters to load balancer addresses with source ranges only. The result points into `port`.
Decision Decide(const ResolvedPort& port, Frontend frontend, Origin origin, const IpAddress& source,
                const TrafficOptions& options = {});

// The source ranges of `port`. Where one includes the node, the load balancer addresses are added: the node
// itself connects from these.
std::vector<IpPrefix> AdmittedSources(const ServicePort& port, const std::vector<IpAddress>& node_ips);

}  // namespace keelson::proxy
