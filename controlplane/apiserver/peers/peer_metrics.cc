#include "controlplane/apiserver/peers/peer_metrics.h"

#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

metrics::Family& rerouted = metrics::Counter("apiserver_rerouted_request_total",
                                             "Total number of requests that a peer kube-apiserver answered "
                                             "because this one does not serve the resource. "
                                             "Without group, version and resource: requests for discovery.",
                                             {"code", "group", "resource", "version"});
metrics::Family& proxy_errors = metrics::Counter(
    "apiserver_peer_proxy_errors_total", "Total number of errors while a request was passed on to a peer.",
    {"group", "resource", "type", "version"});
metrics::Family& sync_errors =
    metrics::Counter("apiserver_peer_discovery_sync_errors_total",
                     "Total number of errors while the discovery of peers was read.", {"type"});

metrics::Family& no_peer = metrics::Counter("aggregator_discovery_nopeer_requests_total",
                                            "Counter of requests for the discovery of this server alone.");
metrics::Family& hits =
    metrics::Counter("aggregator_discovery_peer_aggregated_cache_hits_total",
                     "Counter of discovery requests served from the peer-aggregated cache.");
metrics::Family& misses =
    metrics::Counter("aggregator_discovery_peer_aggregated_cache_misses_total",
                     "Counter of discovery requests for which the discovery of all servers was merged.");

}  // namespace

void CountRerouted(int status, const RequestInfo* info) {
  const std::string code = std::to_string(status);
  if (info) {
    rerouted.With({code, info->group, info->resource, info->version}).Increment();
  } else {
    rerouted.With({code, "", "", ""}).Increment();
  }
}

void CountPeerProxyError(PeerProxyError type, const RequestInfo& info) {
  const char* name = type == PeerProxyError::kTransport ? "proxy_transport" : "endpoint_resolution";
  proxy_errors.With({info.group, info.resource, name, info.version}).Increment();
}

void CountPeerSyncError(PeerSyncError type) {
  sync_errors.With({type == PeerSyncError::kHostPort ? "hostport_resolution" : "fetch_discovery"})
      .Increment();
}

void CountPeerDiscovery(PeerDiscovery what) {
  metrics::Family& family = what == PeerDiscovery::kNoPeer ? no_peer
                            : what == PeerDiscovery::kHit  ? hits
                                                           : misses;
  family.With().Increment();
}

}  // namespace keelson::apiserver
