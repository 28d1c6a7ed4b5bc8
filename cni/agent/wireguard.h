// --encryption wireguard: a device keelson.wg whose peers are the cluster's nodes. The agent makes the
// private key once and keeps it in its own folder in the data directory; it publishes the public key in an
// annotation of this node's Node object. A node without a public key is unreachable: nothing is ever sent
// unencrypted instead.
#pragma once

#include <functional>
#include <memory>

#include "cni/agent/extension.h"
#include "lib/netlink/wireguard.h"

namespace keelson::cni::agent {

// The changes from the device's peers to the plan's. Leaves out peers with an invalid key. Pure.
netlink::WireguardChange CompareWireguard(const std::vector<netlink::WireguardPeer>& found, const Plan& plan,
                                          uint16_t port);

class Wireguard : public Extension {
 public:
  // Publishes this node's public key (base64) unless it is published already.
  using Publish = std::function<Result<>(const std::string& key)>;
  // Opens its sockets in the calling thread's network namespace. kUnimplemented when the kernel has no
  // WireGuard.
  static Result<std::unique_ptr<Wireguard>> Open(const Config& config, Publish publish);

  Result<int> BeforeRoutes(const Plan& plan, const NodeMap& nodes, int& link) override;

 private:
  Wireguard(const Config& config, Publish publish, netlink::Socket route, netlink::Socket generic)
      : config_(config),
        publish_(std::move(publish)),
        route_(std::move(route)),
        generic_(std::move(generic)) {}
  Result<std::string> PrivateKey() const;
  Result<netlink::Link> EnsureDevice(const Plan& plan, int& changes);

  const Config config_;
  const Publish publish_;
  netlink::Socket route_, generic_;
};

}  // namespace keelson::cni::agent
