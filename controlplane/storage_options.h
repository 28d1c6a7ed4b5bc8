// What etcd, its client and the store get from flags and from the files that these name.
#pragma once

#include "controlplane/etcd/client.h"
#include "controlplane/etcd/supervisor.h"
#include "controlplane/options/options.h"
#include "controlplane/storage/store.h"

namespace keelson::controlplane {

// Fails for flags that exclude each other, and for --etcd-servers-overrides: one watch over one etcd feeds the caches of
// all resources.
Result<> CheckEtcdFlags(const Options& options);

// etcd as a child of this process, for want of --etcd-servers.
Result<etcd::SupervisorOptions> SupervisorOptionsOf(const Options& options);

// The etcd of --etcd-servers, without a key prefix.
Result<etcd::ClientOptions> EtcdClientOptionsOf(const Options& options);

Result<storage::Store::Options> StoreOptionsOf(const Options& options);

}  // namespace keelson::controlplane
