// The Lease by which the API servers of a cluster know of each other (KEP-1965, APIServerIdentity):
// kube-system/apiserver-<hash of the host name>, labelled apiserver.kubernetes.io/identity=kube-apiserver.
#pragma once

#include <map>
#include <stop_token>
#include <string>

#include "controlplane/registry/registry.h"
#include "controlplane/storage/store.h"
#include "lib/base/clock.h"

namespace keelson::apiserver {

// The name of this host's Lease, as kube-apiserver makes it: a server that takes the place of another one keeps its Lease.
std::string IdentityLeaseName(const std::string& host_name);
// The name of this host's Lease.
std::string OwnIdentityLeaseName();
// spec.holderIdentity of this process: the Lease's name and a random part.
std::string IdentityHolder();

// Makes or renews the Lease of this host, for an hour from `now`. Call it every 10 seconds.
Result<> EnsureIdentityLease(registry::Registry& registry, const std::string& holder, WallTime now,
                             std::stop_token stop);
// Removes Leases of servers that have not renewed them for their duration.
Result<> RemoveExpiredIdentityLeases(registry::Registry& registry, WallTime now, std::stop_token stop);

// spec.holderIdentity by name of the Leases that API servers have, as of the cache.
std::map<std::string, std::string> IdentityHolders(const storage::Store& store);

}  // namespace keelson::apiserver
