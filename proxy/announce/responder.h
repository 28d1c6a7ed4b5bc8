// Announces addresses on their links: answers ARP requests and neighbour solicitations, and sends unsolicited
// ones when it takes an address over. It needs no API server.
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

// The links that an address belongs to: those with a subnet that holds it, else those of the Node's own
// addresses of its family. None where the address is this machine's own. Pure.
std::set<int> LinksFor(const IpAddress& address, const std::vector<netlink::Address>& own,
                       const std::vector<IpAddress>& node_ips);

class Responder {
 public:
  Responder();
  ~Responder();

  // Replaces the addresses to announce. Until its time an address is announced whatever other neighbours
  // claim; after that, until another neighbour claims it. Then it is not announced before a call with a time
  // in the future. Thread safe, as are the next three.
  void Speak(std::map<IpAddress, SteadyTime> addresses);
  // This machine's links or addresses have changed.
  void Rescan();
  // The Node's own addresses.
  void SetNodeIps(std::vector<IpAddress> node_ips);
  // The addresses that are announced now.
  std::set<IpAddress> Spoken() const;
  // Runs until `stop`, in the network namespace of the calling thread.
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
  std::map<IpAddress, SteadyTime> wanted_ KEELSON_GUARDED_BY(mutex_);
  std::map<IpAddress, SteadyTime> yielded_ KEELSON_GUARDED_BY(mutex_);  // with the time it was ours until
  std::vector<IpAddress> node_ips_ KEELSON_GUARDED_BY(mutex_);
  bool rescan_ KEELSON_GUARDED_BY(mutex_) = true;
  bool changed_ KEELSON_GUARDED_BY(mutex_) = true;  // what is to be spoken for

  // Run's thread only.
  std::map<int, std::unique_ptr<Place>> places_;  // by link
  std::vector<netlink::Link> links_;
  std::vector<netlink::Address> own_;
  std::vector<IpAddress> own_node_ips_;
};

}  // namespace keelson::proxy
