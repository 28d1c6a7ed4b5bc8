// For tests: drives the built plugins as a container runtime does, in network namespaces of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cni/lib/plugin.h"
#include "lib/base/fd.h"
#include "lib/linux/netns.h"
#include "lib/netlink/link.h"
#include "lib/nft/kernel.h"

namespace keelson::cni {

struct Container {
  Container(const std::string& name, const std::string& dir);
  ~Container();
  std::string id, path;
  linux::NetNs netns;
};

class PluginFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Reply Call(const std::string& plugin, const std::string& command, const Container& c,
             const std::string& config);
  // With variables besides those that a runtime always sets, or in their place.
  Reply Call(const std::string& plugin, const std::string& command, const Container& c,
             const std::string& config, const std::vector<std::string>& variables);
  // A bridge configuration: `more` is fields, each with a comma behind it.
  std::string Bridge(const std::string& more) const;
  // The same with another address manager's section.
  std::string BridgeWith(const std::string& more, const std::string& ipam) const;
  std::string HostLocal(const std::string& ranges) const;
  // ADD of the bridge, which has to succeed; its answer.
  std::string Join(const Container& c, const std::string& more = R"("isDefaultGateway":true,)");
  AddResult Parse(const Reply& reply);

  netlink::Socket Routing(const linux::NetNs& netns) const { return *netlink::Socket::OpenIn(netns); }
  std::optional<nft::Ruleset> Table(nft::Family family, const std::string& name) const;
  std::string Sysctl(const std::string& key) const;
  std::string Ipam() const { return dir_ + "/ipam/net"; }

  // Another machine's namespace, joined to the host by a veth pair: 192.0.2.1 here, 192.0.2.2 there, which
  // has no route to containers but by the host.
  std::unique_ptr<linux::NetNs> Outside();

  std::unique_ptr<linux::NetNs> host_;
  std::string dir_;
  std::unique_ptr<Container> a_, b_;
};

// `config` as the runtime hands it on in a chain.
std::string WithField(const std::string& config, const std::string& name, const std::string& json);
inline std::string WithPrevious(const std::string& config, const std::string& result) {
  return WithField(config, "prevResult", result);
}

// Answers with the sender's address as it sees it.
class EchoServer {
 public:
  // At all addresses of the namespace. Port 0: any.
  EchoServer(const linux::NetNs& netns, int socket_type, uint16_t port);
  ~EchoServer();
  uint16_t port() const { return port_; }

 private:
  void Serve();
  int type_;
  uint16_t port_;
  UniqueFd listener_, stop_;
  std::unique_ptr<class EchoThread> thread_;
};
// What an EchoServer at address:port answers; "" when nobody does within the time. `own_port` 0: any.
std::string Ask(const linux::NetNs& from, int socket_type, const std::string& address, uint16_t port,
                int patience_ms = 3000, uint16_t own_port = 0);

}  // namespace keelson::cni
