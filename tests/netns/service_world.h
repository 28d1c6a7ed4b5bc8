// For tests: proxy::World with somebody who answers in every place, and one question asked until it is clear
// who answers it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proxy/nftables/packet_fixture.h"
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
  // What the node has beside its network; made when first asked for.
  Result<NodePlaces> Places();
  // A plane that knows the node's addresses and Service CIDRs.
  Result<std::unique_ptr<ServicePlane>> Start(PlaneOptions options);
  // What asks from here on is a process of this client's machine, for dataplanes that look at processes.
  void Become(const std::string& client) const;
  Question From(const std::string& client, bool v4) const;

  // Empty if all is as it should be, else what is not. Answers are endpoints' names, or refused, dropped,
  // nobody.
  std::string Check(const std::string& client, Question question, const std::vector<std::string>& answers,
                    PacketCase::Seen seen, bool sticky) const;

 private:
  Result<> AwaitLinks() const;
  std::string CheckVerdict(const linux::NetNs& place, const Question& question,
                           const std::string& verdict) const;
  std::unique_ptr<proxy::World> world_;
  std::unique_ptr<NodeMachine> machine_;  // of a dataplane that needs one
  std::vector<std::unique_ptr<Responder>> responders_;
};

}  // namespace keelson::netns
