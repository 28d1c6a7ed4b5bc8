// The threads of the cluster's DNS in a daemon.
#pragma once

#include "lib/base/service_group.h"
#include "proxy/dns/cluster_dns.h"

namespace keelson::proxy::dns {

// "dns" answers over UDP; "dns-zone" follows changes, and makes the addresses the node's own (dns_link.h)
// from when there is something to answer until the daemon ends. A daemon that is killed leaves them: clients
// are refused then, and do not wait.
void AddServices(ServiceGroup& group, ClusterDns& dns);

}  // namespace keelson::proxy::dns
