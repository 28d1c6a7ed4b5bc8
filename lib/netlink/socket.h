// A netlink socket, of the routing family unless its Open function says otherwise. It stays bound to the
// network namespace that it was opened in, whatever its thread does later, so one process may hold sockets
// of many namespaces. Not thread safe.
//
// The functions in link.h, addr.h, route.h and neigh.h take one. They are synchronous: the kernel has done
// or refused the work when they return. Errors carry errno and, where the kernel gives one, its reason.
#pragma once

#include <memory>

#include "lib/base/error.h"
#include "lib/linux/netns.h"

struct nl_sock;

namespace keelson::netlink {

class Socket {
 public:
  static Result<Socket> Open();  // in the calling thread's namespace
  static Result<Socket> OpenIn(const linux::NetNs& netns);
  static Result<Socket> OpenNetfilter();  // for conntrack.h
  static Result<Socket> OpenNetfilterIn(const linux::NetNs& netns);
  static Result<Socket> OpenXfrm();     // for xfrm.h
  static Result<Socket> OpenGeneric();  // for wireguard.h, ipvs.h and xdp_features.h
  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) noexcept;
  ~Socket();

  nl_sock* get() const { return socket_; }  // for lib/netlink only
  // This socket's netlink port: KernelEvent::author (monitor.h) of changes made through it.
  uint32_t port() const;

 private:
  explicit Socket(nl_sock* socket) : socket_(socket) {}
  static Result<Socket> OpenProtocol(int protocol);
  static Result<Socket> OpenProtocolIn(const linux::NetNs& netns, int protocol);
  nl_sock* socket_;
};

}  // namespace keelson::netlink
