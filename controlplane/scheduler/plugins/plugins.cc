#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

void AddNodePlugins(Framework& framework, Reasons& reasons, const ResourceNames& names) {
  framework.Add(NewNodeUnschedulable(reasons));
  framework.Add(NewNodeName(reasons));
  framework.Add(NewTaintToleration(reasons));
  framework.Add(NewNodeAffinity(reasons));
  framework.Add(NewNodePorts(reasons));
  framework.Add(NewNodeResourcesFit(reasons, names));
  framework.Add(NewBalancedAllocation());
}

}  // namespace keelson::scheduler
