// Deleting an interface without waiting for what the kernel does afterwards.
#pragma once

#include <string>

#include "cni/lib/error.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// Returns when no interface of this name is in the namespace any more. The kernel then frees the device, for
// which it waits some 20 ms until others have let go of it; a child process waits for that in our place.
// Absent is fine. `child_socket`
// and `own` are two sockets of that namespace; the first is used up.
Outcome<> RemoveLink(netlink::Socket& child_socket, netlink::Socket& own, const std::string& name);

// For a child process that outlives its parent: runtimes wait until a plugin's output has no writer left.
void LetGoOfStandardStreams();

}  // namespace keelson::cni
