// Addresses of the cluster's own Services, as this server reaches them: for webhooks, aggregated API servers
// and services/proxy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/storage/store.h"
#include "lib/base/error.h"

namespace keelson::apiserver {

struct EndpointAddress {
  std::string ip;
  int32_t port = 0;
  std::string HostPort() const;  // 10.0.0.1:80, [fd00::1]:80
};

// The ready endpoints of one port of a Service, from the cached EndpointSlices. `port_name` is the name in
// the Service; it may be empty.
std::vector<EndpointAddress> ReadyEndpoints(const storage::Store& store, std::string_view ns,
                                            std::string_view service, std::string_view port_name);

class ServiceResolver {  // thread safe
 public:
  // kEndpoints: a ready endpoint. It needs no kube-proxy on this server's host, which may be no node.
  // kClusterIp: the Service's ClusterIP; a headless Service still gets an endpoint.
  enum class Routing { kEndpoints, kClusterIp };

  // `store` must outlive the resolver.
  explicit ServiceResolver(const storage::Store& store, Routing routing = Routing::kEndpoints)
      : store_(store), routing_(routing) {}

  // host:port to connect to for `port` (its number) of a Service. The certificate there is valid for
  // NAME.NAMESPACE.svc. A Service of type ExternalName is its external name. While `preferred`, a result of
  // an earlier call, is still a ready endpoint, it is the result again, so that connections are kept; otherwise
  // the choice is random.
  // kNotFound: no such Service. kUnavailable: no such port, or no endpoint.
  Result<std::string> Resolve(std::string_view ns, std::string_view name, int32_t port,
                              std::string_view preferred = {}) const;

 private:
  const storage::Store& store_;
  const Routing routing_;
};

}  // namespace keelson::apiserver
