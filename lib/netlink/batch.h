// Many changes in few system calls. The kernel acknowledges once per hundred or so changes, and reports
// each change that it refuses.
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

  // Makes the changes in order; the batch is empty afterwards. Returns one error per refused change; the
  // other changes are made all the same. Deleting what does not exist is no error. The Result fails only
  // when the socket does.
  Result<std::vector<Error>> Run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::netlink
