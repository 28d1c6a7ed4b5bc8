// The other API servers of the cluster, found by their identity Leases, and the resources that each of them serves.
//
// A peer is asked when its Lease appears or has another holder: what a process serves of the API itself stays the same as
// long as it runs. Resources that objects of the cluster define (CustomResourceDefinitions, APIServices) are left out,
// since every server knows these by itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "controlplane/apiserver/peers/peer_clients.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"
#include "lib/base/clock.h"

namespace keelson::apiserver {

namespace discoveryapi = api::apidiscovery::v2;

class PeerDirectory {
 public:
  struct Sources {
    std::string own;  // the name of this server's Lease
    // Holder by name of all servers' Leases. Does not block.
    std::function<std::map<std::string, std::string>()> holders;
    // host:port by name of the Lease. May block for seconds.
    std::function<Result<std::map<std::string, std::string>>(std::stop_token)> addresses;
    // Whether an object of the cluster defines resources of the group version.
    std::function<bool(const std::string& group, const std::string& version)> is_custom;
  };
  struct Peer {
    std::string holder;
    std::set<std::tuple<std::string, std::string, std::string>> resources;  // group, version, resource
    discoveryapi::APIGroupDiscoveryList groups;                             // without the core group
  };
  using Peers = std::map<std::string, std::shared_ptr<const Peer>>;  // by name of the Lease

  // `clients` must outlive this.
  PeerDirectory(Sources sources, PeerClients& clients, Clock& clock);

  // Looks for changes every second, until `stop`.
  void Run(std::stop_token stop);
  // One look. Asks peers that are new, and again, ever less often, those that did not answer.
  void Look(std::stop_token stop);

  // ---- thread safe ----
  // As of the last look.
  std::shared_ptr<const Peers> All() const { return peers_.load(); }
  // The peers that serve the resource, by name.
  std::vector<std::string> ServersOf(const std::string& group, const std::string& version,
                                     const std::string& resource) const;
  // host:port of peers, those without one left out. Blocks as `addresses` does.
  Result<std::vector<std::string>> AddressesOf(const std::vector<std::string>& names,
                                               std::stop_token stop) const;

 private:
  struct Failure {
    SteadyTime again;
    std::chrono::milliseconds delay{0};
  };
  Result<Peer> Ask(const std::string& address, std::stop_token stop);
  Result<discoveryapi::APIGroupDiscoveryList> Read(const std::string& address, const std::string& path,
                                                   std::stop_token stop);

  const Sources sources_;
  PeerClients& clients_;
  Clock& clock_;
  std::map<std::string, Failure> failures_;  // of Look()
  std::atomic<std::shared_ptr<const Peers>> peers_{std::make_shared<const Peers>()};
};

}  // namespace keelson::apiserver
