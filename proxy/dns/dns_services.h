// The threads of the cluster's DNS in a daemon.
#pragma once

#include "lib/base/service_group.h"
#include "proxy/dns/cluster_dns.h"

namespace keelson::proxy::dns {

// "dns" serves UDP. "dns-addresses" tells network policies by domain name which addresses answers have. "dns-zone" follows changes; it gives the node the addresses (dns_link.h) when the zone is
// complete, and removes them when the daemon ends. A killed daemon leaves them, so that clients get an error at once
// instead of a timeout.
void AddServices(ServiceGroup& group, ClusterDns& dns);

}  // namespace keelson::proxy::dns
