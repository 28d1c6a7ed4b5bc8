// The plugins that come with the scheduler. Each is one file.
#pragma once

#include <memory>

#include "controlplane/scheduler/framework.h"
#include "lib/client/rest.h"

namespace keelson::scheduler {

// spec.nodeName, should it be set on a pod that is scheduled.
std::unique_ptr<Plugin> NewNodeName(Reasons& reasons);
// spec.unschedulable of nodes, unless the pod tolerates node.kubernetes.io/unschedulable.
std::unique_ptr<Plugin> NewNodeUnschedulable(Reasons& reasons);
// spec.nodeSelector and node affinity: required as filter, preferred as score (weight 2).
std::unique_ptr<Plugin> NewNodeAffinity(Reasons& reasons);
// NoSchedule and NoExecute taints as filter, PreferNoSchedule as score (weight 3).
std::unique_ptr<Plugin> NewTaintToleration(Reasons& reasons);
// Host ports.
std::unique_ptr<Plugin> NewNodePorts(Reasons& reasons);
// Requests within what is allocatable as filter, the emptiest node as score (weight 1).
std::unique_ptr<Plugin> NewNodeResourcesFit(Reasons& reasons, const ResourceNames& names);
// Score: cpu and memory in use to the same degree (weight 1).
std::unique_ptr<Plugin> NewBalancedAllocation();
// POST to pods/binding.
std::unique_ptr<Plugin> NewDefaultBinder(client::RestClient api);

// All of the above but the binder, in upstream's order.
void AddNodePlugins(Framework& framework, Reasons& reasons, const ResourceNames& names);

}  // namespace keelson::scheduler
