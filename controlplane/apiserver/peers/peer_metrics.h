// Metrics of requests that other API servers answer, with kube-apiserver's names.
#pragma once

#include <string>

#include "controlplane/apiserver/request/request_info.h"

namespace keelson::apiserver {

// Sent with every request that one API server passes on to another, which answers it itself whatever it serves.
inline constexpr char kPeerProxiedHeader[] = "X-Kubernetes-Peer-Proxied";

// apiserver_rerouted_request_total. `info` null: a request for discovery.
void CountRerouted(int status, const RequestInfo* info);

// apiserver_peer_proxy_errors_total
enum class PeerProxyError { kEndpointResolution, kTransport };
void CountPeerProxyError(PeerProxyError type, const RequestInfo& info);

// apiserver_peer_discovery_sync_errors_total
enum class PeerSyncError { kHostPort, kFetch };
void CountPeerSyncError(PeerSyncError type);

// aggregator_discovery_nopeer_requests_total, aggregator_discovery_peer_aggregated_cache_hits_total and ..._misses_total:
// a client wanted this server's resources alone; or it got those of all servers, as merged before or merged now.
enum class PeerDiscovery { kNoPeer, kHit, kMiss };
void CountPeerDiscovery(PeerDiscovery what);

}  // namespace keelson::apiserver
