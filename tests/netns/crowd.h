// Long-lived connections to one Service: from pods, the node and strangers, to each of its addresses.
#pragma once

#include <vector>

#include "tests/netns/service_world.h"

namespace keelson::netns {

class Crowd {
 public:
  // `block` needs the entries nodeport and external.
  Crowd(const ServiceWorld& world, const ServiceBlock& block) : world_(world), block_(block) {}
  // Error when this process may not open that many connections.
  static Result<> MayOpen(size_t connections);

  Result<> Join(int count);
  int Dead();  // connections that no longer echo
  size_t size() const { return open_.size(); }
  void Reset();   // resets all connections
  void Vanish();  // drops all connections silently

 private:
  const ServiceWorld& world_;
  const ServiceBlock& block_;
  std::vector<Conversation> open_;
};

}  // namespace keelson::netns
