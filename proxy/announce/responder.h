// Speaks for addresses on the links that they belong on: says who has them when somebody asks, and tells all
// when that is news. It needs no API, and while nobody else speaks up it goes on without one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/mutex.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"
#include "proxy/announce/link_socket.h"

namespace keelson::proxy {

// The links that an address belongs on: where it lies in a subnet, else those of the node's own addresses of
// its family. None where the address is this machine's own.
std::set<int> LinksFor(const IpAddress& address, const std::vector<netlink::Address>& own,
                       const std::vector<IpAddress>& node_ips);

class Responder {
 public:
  Responder();
  ~Responder();

  // The addresses to speak for, all of them. Until its time an address is ours whatever others say; after it,
  // until somebody else says to have it: then we are silent until we are asked anew to speak for it, with a
  // time in the future.
  void Speak(std::map<IpAddress, SteadyTime> addresses);
  // Links or addresses have changed; `node_ips` are the Node's own.
  void Rescan();
  void SetNodeIps(std::vector<IpAddress> node_ips);
  // Those that this speaks for now.
  std::set<IpAddress> Spoken() const;
  // Until `stop`, in the network namespace of the calling thread.
  Result<> Run(std::stop_token stop);

 private:
  struct Place;  // a link with its sockets and what is spoken for there
  void Wake();
  void Settle();
  void Scan(const std::vector<IpAddress>& node_ips);
  int Announce();
  void Listen(Place& place, LinkSocket& socket);
  void Yield(const IpAddress& address, const netlink::MacAddress& to);

  UniqueFd wake_;
  mutable Mutex mutex_;
  std::map<IpAddress, SteadyTime> wanted_ GUARDED_BY(mutex_);
  std::map<IpAddress, SteadyTime> yielded_ GUARDED_BY(mutex_);  // with the time it was ours until
  std::vector<IpAddress> node_ips_ GUARDED_BY(mutex_);
  bool rescan_ GUARDED_BY(mutex_) = true;
  bool changed_ GUARDED_BY(mutex_) = true;  // what is to be spoken for

  // Run's thread only.
  std::map<int, std::unique_ptr<Place>> places_;  // by link
  std::vector<netlink::Link> links_;
  std::vector<netlink::Address> own_;
  std::vector<IpAddress> own_node_ips_;
};

}  // namespace keelson::proxy
