// Connections to one Service that stay open: by pods, the node and strangers, to each of its addresses.
#pragma once

#include <vector>

#include "tests/netns/service_world.h"

namespace keelson::netns {

class Crowd {
 public:
  // `block` has the entries nodeport and external.
  Crowd(const ServiceWorld& world, const ServiceBlock& block) : world_(world), block_(block) {}
  // Whether this process may open so many at all.
  static Result<> MayOpen(size_t connections);

  Result<> Join(int count);
  int Dead();  // those that do not echo any more
  size_t size() const { return open_.size(); }
  void Reset();   // all end at once
  void Vanish();  // and so that nobody hears of it

 private:
  const ServiceWorld& world_;
  const ServiceBlock& block_;
  std::vector<Conversation> open_;
};

}  // namespace keelson::netns
