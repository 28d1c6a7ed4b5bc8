// Connects to TCP peers, and sends HTTP requests, for all probes on one thread (epoll(7)).
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

// An IP address and a port; empty if `host` is a name.
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
    int status = 0;  // HTTP status; 0: connected, without a request
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

  // Starts an exchange. `done` is called once, on Run()'s thread; an error has the message of Go's net package.
  void Ask(std::shared_ptr<const Question> question, Time deadline, Done done);
  // `timeout` from now; 0: never.
  static Time After(std::chrono::seconds timeout) {
    return timeout.count() > 0 ? std::chrono::steady_clock::now() + timeout : Time::max();
  }
  // Runs until `stop`. Then exchanges under way end with kCancelled, and so do later ones at once.
  Result<> Run(std::stop_token stop);

 private:
  struct Exchange;
  using Exchanges = std::vector<std::unique_ptr<Exchange>>;
  Exchanges TakeAsked();
  // Continues `exchange`, and keeps it if it has to wait for its peer.
  void Advance(std::unique_ptr<Exchange> exchange);
  void Ready(int fd);
  void Expire(Time now);
  // Waits for events, new exchanges or a deadline.
  void Wait();

  const UniqueFd epoll_, wake_;
  std::map<int, std::unique_ptr<Exchange>> waiting_;  // by socket; of Run() alone
  Mutex mutex_;
  Exchanges asked_ KEELSON_GUARDED_BY(mutex_);
  bool asleep_ KEELSON_GUARDED_BY(mutex_) = false;  // Run() waits in the kernel
  bool ended_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::kubelet
