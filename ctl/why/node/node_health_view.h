// What the API server has about a node, and what its own disk tells where nodectl runs on it.
#pragma once

#include <optional>
#include <string>

#include "ctl/why/events.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

struct NodeHealthView {
  corev1::Node node;
  std::optional<coordinationv1::Lease> lease;  // the kubelet's, in kube-node-lease
  Events events;                               // of the node, the oldest first
  WallTime now;

  // Of this machine, if it is the node.
  struct Machine {
    std::string certificate;          // the file of the kubelet's client certificate
    std::string certificate_problem;  // why it cannot be read; empty: `not_after` is known
    std::optional<WallTime> not_after;
    WallTime not_before{};  // known with `not_after`
    bool kubelet_runs = false;
    std::string cni_configuration;  // the first file of /etc/cni/net.d; empty: there is none
  };
  std::optional<Machine> machine;

  const corev1::Event* Last(const std::vector<std::string>& reasons) const { return LastOf(events, reasons); }
};

// `root` stands before the paths of the machine's files.
Result<NodeHealthView> ReadNodeHealth(const client::RestClient& api, const std::string& name,
                                      const std::string& root, WallTime now);

}  // namespace keelson::ctl
