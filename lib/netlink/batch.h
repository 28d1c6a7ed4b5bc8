// Many changes in few system calls: the kernel is asked for an acknowledgement once a hundred changes, and
// speaks up in between for those that it refuses.
#pragma once

#include <memory>
#include <vector>

#include "lib/netlink/fdb.h"
#include "lib/netlink/neigh.h"
#include "lib/netlink/route.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

class Batch {
 public:
  explicit Batch(Socket& socket);  // of the routing family
  ~Batch();

  void ReplaceRoute(const Route& route);
  void DeleteRoute(const Route& route);
  void ReplaceNeighbor(const Neighbor& neighbor);
  void DeleteNeighbor(int link_index, const IpAddress& address);
  void ReplaceForwarding(const Forwarding& entry);
  void DeleteForwarding(const Forwarding& entry);
  size_t size() const;

  // Makes the changes in order, and is empty afterwards. A refused change does not keep the others back:
  // the refusals are returned. Deleting what has gone is no refusal. An error is one of the socket.
  Result<std::vector<Error>> Run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::netlink
