// --encryption wireguard: a device keelson.wg whose peers are the cluster's nodes. The private key is made
// once and kept in the agent's own folder of the data directory; the public one is published in an annotation
// of this node's Node object. A node without it cannot be reached: nothing is ever sent in the clear instead.
#pragma once

#include <functional>
#include <memory>

#include "cni/agent/extension.h"
#include "lib/netlink/wireguard.h"

namespace keelson::cni::agent {

// Pure: from the device's peers to those of the plan. Peers whose key is no key are left out.
netlink::WireguardChange CompareWireguard(const std::vector<netlink::WireguardPeer>& found, const Plan& plan,
                                          uint16_t port);
std::string EncodeBase64(std::string_view bytes);
Result<std::string> DecodeBase64(std::string_view text);

class Wireguard : public Extension {
 public:
  // Publishes this node's key, base64, where it is not yet so.
  using Publish = std::function<Result<>(const std::string& key)>;
  // In the calling thread's network namespace. kUnimplemented when the kernel has no WireGuard.
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
