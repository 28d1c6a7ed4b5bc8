// For tests: proxy::World with a Responder in every place, and requests that check who answers.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proxy/nftables/testing/packet_fixture.h"
#include "tests/netns/node_machine.h"
#include "tests/netns/packet_table.h"
#include "tests/netns/service_plane.h"
#include "tests/netns/wire.h"

namespace keelson::netns {

class ServiceWorld {
 public:
  static Result<std::unique_ptr<ServiceWorld>> Make();

  const linux::NetNs& Place(const std::string& client) const;
  const linux::NetNs& node() const { return world_->node; }
  // The node's cgroup and BPF file system; created on first use.
  Result<NodePlaces> Places();
  // A plane with the node's addresses and Service CIDRs.
  Result<std::unique_ptr<ServicePlane>> Start(PlaneOptions options);
  // Makes this process act as one on the client's machine, for dataplanes that distinguish processes.
  void Become(const std::string& client) const;
  Question From(const std::string& client, bool v4) const;

  // Returns the differences; empty: as expected. `answers`: endpoint names, or refused, dropped, nobody.
  std::string Check(const std::string& client, Question question, const std::vector<std::string>& answers,
                    PacketCase::Seen seen, bool sticky) const;

 private:
  Result<> AwaitLinks() const;
  std::string CheckVerdict(const linux::NetNs& place, const Question& question,
                           const std::string& verdict) const;
  std::unique_ptr<proxy::World> world_;
  std::unique_ptr<NodeMachine> machine_;  // for dataplanes that need one
  std::vector<std::unique_ptr<Responder>> responders_;
};

}  // namespace keelson::netns
