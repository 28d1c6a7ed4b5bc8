// Changes of etcd's membership that several verbs make.
#pragma once

#include <cstdint>

#include "ctl/etcd/view.h"
#include "ctl/host/host.h"

namespace keelson::ctl {

// Takes the member out of the cluster; one that has gone is fine. Tries again for half a minute while etcd refuses changes, as it
// does for some seconds after a member has come or gone.
Result<> RemoveFromEtcd(const EtcdAccess& access, uint64_t id);

// Writes the members' client URLs to the ConfigMap that control planes read before they join. Needs the machine's admin.conf.
Result<> PublishEtcdEndpoints(const Host& host, const EtcdAccess& access);

}  // namespace keelson::ctl
