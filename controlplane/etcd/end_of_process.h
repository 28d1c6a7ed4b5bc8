// A process that stops finishes what it has begun: requests, Leases to release, its place in the Service kubernetes. All of it
// needs etcd, and each of it waits for etcd in its turn. Where etcd has no leader or hangs, the waits add up to minutes, and none
// of them can succeed.
#pragma once

#include <stop_token>

#include "controlplane/etcd/client.h"

namespace keelson::etcd {

// From `ending` on asks etcd again and again for its revision, and closes the client once there is no answer. Blocks until `over`,
// or until the client is closed.
void CloseWhenSilent(Client& client, const std::stop_token& ending, const std::stop_token& over);

}  // namespace keelson::etcd
