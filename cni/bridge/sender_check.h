// macspoofchk: a container may only send frames with its own MAC address.
#pragma once

#include <functional>
#include <string>

#include "cni/lib/error.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// Adds elements for the container to `table bridge keelson-cni`, with the attachment's label.
Outcome<> CheckSender(const std::string& port, const netlink::MacAddress& mac, const std::string& label);
// Removes the elements whose label `unwanted` accepts.
Outcome<> RemoveSenders(const std::function<bool(std::string_view label)>& unwanted);
// kCheckFailed when the container is not limited to this address.
Outcome<> VerifySender(const std::string& port, const netlink::MacAddress& mac);

}  // namespace keelson::cni
