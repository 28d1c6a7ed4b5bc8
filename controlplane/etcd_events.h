// Alarms of etcd as Events of the namespace kube-system.
#pragma once

#include <memory>

#include "controlplane/etcd/alarms.h"
#include "lib/base/service_group.h"
#include "lib/client/transport.h"

namespace keelson::controlplane {

// Adds a service after "apiserver". While etcd has no room Events cannot be written: then the log and ComponentStatus have
// the alarms. `alarms` must outlive the group.
void AddEtcdEvents(ServiceGroup& group, etcd::AlarmFollower& alarms, std::shared_ptr<client::Transport> api);

}  // namespace keelson::controlplane
