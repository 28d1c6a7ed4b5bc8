// What network policies have decided about a traced packet, read from the notes of kube-cni's rules. Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/nft/trace.h"

namespace keelson::ctl {

struct PolicyDecision {
  enum Kind {
    kAllowed,  // by the rules in `by`: "NAMESPACE/NAME ingress[0]"; of a ClusterNetworkPolicy "NAME ingress[0]"
    kPassedOn,  // to the next tier, by such a rule
    kDeniedBy,  // by such a rule
    kDenied,    // the policies in `by` isolate the pod, and none of their rules matches
    kNotReady,  // an address of this node's pods that has no policies in place, or no pod
  } kind = kAllowed;
  bool Refuses() const { return kind == kDeniedBy || kind == kDenied || kind == kNotReady; }
  std::string direction;  // "ingress", "egress"; empty: kNotReady
  std::string by;
};

// In the order in which they were made. A direction that is missing has not been restricted by any policy here.
std::vector<PolicyDecision> PolicyDecisionsOf(const std::vector<nft::TraceStep>& steps);

// "ingress is denied: default/web isolates the pod, and none of its rules lets this in"
std::string ToText(const PolicyDecision& decision);

}  // namespace keelson::ctl
