// macspoofchk: a container may send frames with its own MAC address only.
#pragma once

#include <functional>
#include <string>

#include "cni/lib/error.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// One set element a container in `table bridge keelson-cni`, which carries the attachment's label.
Outcome<> CheckSender(const std::string& port, const netlink::MacAddress& mac, const std::string& label);
Outcome<> RemoveSenders(const std::function<bool(std::string_view label)>& unwanted);
// kCheckFailed when the container is not held to this address.
Outcome<> VerifySender(const std::string& port, const netlink::MacAddress& mac);

}  // namespace keelson::cni
