// Deletes an interface without waiting for the kernel's cleanup.
#pragma once

#include <string>

#include "cni/lib/error.h"
#include "lib/netlink/link.h"

namespace keelson::cni {

// Returns when the namespace has no interface of this name. The kernel then waits about 20 ms, until others
// have released the device, before it frees it; a child process waits for that instead of the caller. An
// absent interface is fine. `child_socket` and `own` are two sockets of that namespace; the first cannot be
// used afterwards.
Outcome<> RemoveLink(netlink::Socket& child_socket, netlink::Socket& own, const std::string& name);

// For a child process that outlives its parent: runtimes wait until no writer of a plugin's output is left.
void LetGoOfStandardStreams();

}  // namespace keelson::cni
