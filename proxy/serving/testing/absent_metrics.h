// For tests: the metrics of kube-proxy that this one does not have, and why.
#pragma once

#include "lib/metrics/conformance.h"

namespace keelson::proxy {

inline constexpr metrics::Exception kAbsentMetrics[] = {
    {"informer_", "not counted; no dashboard or rule of kubernetes-mixin reads it"},
    {"kubeproxy_iptables_", "of the mode iptables, whose rules are programmed into nftables here"},
    {"kubeproxy_sync_proxy_rules_iptables_",
     "of the mode iptables, whose rules are programmed into nftables here"},
    {"leader_election_", "every node has its own"},
    {"rest_client_dns_resolution_duration_seconds", "names are resolved inside of connecting"},
    {"rest_client_exec_plugin_", "credential plugins are not run"},
    {"rest_client_rate_limiter_duration_seconds", "it does not limit its requests: they are watches"},
    {"rest_client_request_retries_total", "the transport tries nothing again: callers do"},
    {"rest_client_transport_", "transports are not shared between clients"},
    {"running_managed_controllers", "of controller managers"},
    {"workqueue_", "it has no work queues: one thread writes all changes"},
};

}  // namespace keelson::proxy
