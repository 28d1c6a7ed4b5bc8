// The elements of one container in kube-cni's nftables tables (lib/dataplane/policy_sets.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cni/lib/error.h"
#include "lib/base/ip.h"
#include "lib/nft/kernel.h"

namespace keelson::cni {

struct PodAttachment {
  std::string port;   // the container's port of the bridge
  std::string uid;    // of the pod
  std::string label;  // LabelOf() the attachment
  uint32_t epoch = 0;
  std::vector<IpAddress> addresses;
};

// Adds the elements. Whatever the addresses were to a former pod ends: they are not ready, and tracked
// connections from and to them are forgotten. kNotFound while the agent has made no tables.
Result<> Attach(nft::Kernel& kernel, const PodAttachment& attachment);

// Removes what permits packets of the attachments whose label `unwanted` accepts; to be called before their
// addresses are released. The ports' elements stay until the agent finds the ports gone, so that a container
// that still runs sends nothing around the rules.
Outcome<> Detach(nft::Kernel& kernel, const std::function<bool(std::string_view label)>& unwanted);

// kCheckFailed when an element is missing, or an address is not ready.
Outcome<> VerifyAttachment(nft::Kernel& kernel, const PodAttachment& attachment);

}  // namespace keelson::cni
