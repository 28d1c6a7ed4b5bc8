// Asks over plain TCP sockets: whether a connection comes about, or what an HTTP server answers. One thread
// asks and waits for all peers (epoll(7)): a thousand probes take no thread each, and of those that are asked
// together the answers are there, mostly, by the time that it looks for them.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

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
  };
  using Done = std::function<void(Result<Answer>)>;  // must not block

  SocketProber();
  ~SocketProber();

  // `done` is called once, from Run(), with what Go's net package would say of a failure.
  void Ask(std::shared_ptr<const Question> question, Time deadline, Done done);
  // From now; a timeout of 0 is none.
  static Time After(std::chrono::seconds timeout) {
    return timeout.count() > 0 ? std::chrono::steady_clock::now() + timeout : Time::max();
  }
  // At its end what is under way is answered with kCancelled, as is, at once, what is asked later.
  Result<> Run(std::stop_token stop);

 private:
  struct Exchange;
  using Exchanges = std::vector<std::unique_ptr<Exchange>>;
  Exchanges TakeAsked();
  // Lets `exchange` go on, and keeps it if it has to wait for its peer.
  void Advance(std::unique_ptr<Exchange> exchange);
  void Ready(int fd);
  void Expire(Time now);
  // Until the kernel has something to tell, somebody asks, or a deadline passes.
  void Wait();

  const UniqueFd epoll_, wake_;
  std::map<int, std::unique_ptr<Exchange>> waiting_;  // by socket; of Run() alone
  Mutex mutex_;
  Exchanges asked_ GUARDED_BY(mutex_);
  bool asleep_ GUARDED_BY(mutex_) = false;  // Run() waits in the kernel
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::kubelet
