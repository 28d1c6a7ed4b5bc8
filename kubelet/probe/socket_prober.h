// Asks over plain TCP sockets: whether a connection comes about, or what an HTTP server answers. What waits
// for a peer waits in one epoll set (epoll(7)), so that a thousand probes take no thread each.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

// An address literal and a port; empty where `host` is a name.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;  // 0: none
  static SocketAddress Of(const std::string& host, int port);
  static SocketAddress Of(const sockaddr& address, socklen_t size);
};

class SocketProber {  // thread safe
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Answer {
    int status = 0;  // of HTTP; 0: connected, nothing was asked
    std::string location, body;
  };
  struct Question {
    SocketAddress address;
    std::string name;  // of the peer in errors: "10.0.0.1:80"
    std::string
        request;  // bytes to send, the answer to which ends the connection; empty: to connect is enough
    Time deadline;
  };
  using Done = std::function<void(Result<Answer>)>;  // must not block

  SocketProber();
  ~SocketProber();

  // `done` is called once: before this returns, or from Run(), with what Go's net package would say of a
  // failure.
  void Ask(Question question, Done done);
  // At its end what is under way is answered with kCancelled, as is what is asked later.
  Result<> Run(std::stop_token stop);

 private:
  struct Exchange;
  using Exchanges = std::map<uint64_t, std::unique_ptr<Exchange>>;
  void Await(std::unique_ptr<Exchange> exchange, uint32_t events);
  void Ready(uint64_t id);
  void Expire(Time now);
  int Timeout();  // milliseconds until somebody may have to be looked at, -1: nobody
  std::unique_ptr<Exchange> Take(uint64_t id);

  const UniqueFd epoll_, wake_;
  Mutex mutex_;
  Exchanges exchanges_ GUARDED_BY(mutex_);
  uint64_t next_ GUARDED_BY(mutex_) = 1;
  bool asleep_ GUARDED_BY(mutex_) = false;  // Run() waits without end
  bool asked_ GUARDED_BY(mutex_) = false;   // since it waited last
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::kubelet
