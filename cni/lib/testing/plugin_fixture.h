// For tests: calls the built plugins like a container runtime does, in separate network namespaces.
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

  // `plugin`: a name of ours, or the path of another one.
  Reply Call(const std::string& plugin, const std::string& command, const Container& c,
             const std::string& config);
  // Adds variables to those that a runtime always sets, or replaces them.
  Reply Call(const std::string& plugin, const std::string& command, const Container& c,
             const std::string& config, const std::vector<std::string>& variables);
  // A bridge configuration. `more`: fields, each with a trailing comma.
  std::string Bridge(const std::string& more) const;
  // Bridge() with another `ipam` section.
  std::string BridgeWith(const std::string& more, const std::string& ipam) const;
  std::string HostLocal(const std::string& ranges) const;
  // Runs ADD of the bridge, which must succeed; returns its output.
  std::string Join(const Container& c, const std::string& more = R"("isDefaultGateway":true,)");
  AddResult Parse(const Reply& reply);

  netlink::Socket Routing(const linux::NetNs& netns) const { return *netlink::Socket::OpenIn(netns); }
  std::optional<nft::Ruleset> Table(nft::Family family, const std::string& name) const;
  std::string Sysctl(const std::string& key) const;
  std::string Ipam() const { return dir_ + "/ipam/net"; }

  // The namespace of another machine, connected to the host by a veth pair: 192.0.2.1 here, 192.0.2.2
  // there. Its only route to containers is through the host.
  std::unique_ptr<linux::NetNs> Outside();

  std::unique_ptr<linux::NetNs> host_;
  std::string dir_;
  std::unique_ptr<Container> a_, b_;
};

// `config` as the runtime passes it on in a chain.
std::string WithField(const std::string& config, const std::string& name, const std::string& json);
inline std::string WithPrevious(const std::string& config, const std::string& result) {
  return WithField(config, "prevResult", result);
}

// Answers with the sender's address as it sees it.
class EchoServer {
 public:
  // Listens at all addresses of the namespace. Port 0: any.
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
// What the EchoServer at address:port answers; "" when no answer comes in time. `own_port` 0: any.
std::string Ask(const linux::NetNs& from, int socket_type, const std::string& address, uint16_t port,
                int patience_ms = 3000, uint16_t own_port = 0);

}  // namespace keelson::cni
