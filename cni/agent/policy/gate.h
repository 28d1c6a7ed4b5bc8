// Answers the CNI plugin keelson-policy: a container is held back until its addresses are ready
// (lib/dataplane/policy_sets.h describes the socket). Requests are hints only: what is attached stands in the
// kernel, where only root of the node can write.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/ip.h"

namespace keelson::cni::agent {

class PolicyGate {
 public:
  struct Agent {
    std::function<void()> requested;  // a pod has been attached
    std::function<bool(const IpAddress& address, uint32_t epoch)> is_ready;
  };
  // Listens in the calling thread's network namespace. kAlreadyExists when another agent does so.
  static Result<std::unique_ptr<PolicyGate>> Open(Agent agent);

  void Wake();  // more may be ready; thread safe
  // Serves until `stop`; needs a thread of its own.
  Result<> Run(std::stop_token stop);

 private:
  struct Waiter {
    UniqueFd connection;
    std::string request;  // as far as it has been received
    bool complete = false;
    uint32_t epoch = 0;
    std::vector<IpAddress> addresses;
  };
  PolicyGate(Agent agent, UniqueFd listener, UniqueFd wake)
      : agent_(std::move(agent)), listener_(std::move(listener)), wake_(std::move(wake)) {}
  void Accept();
  bool Receive(Waiter& waiter);  // false: hang up
  bool Answer(Waiter& waiter);   // true: done with it

  const Agent agent_;
  const UniqueFd listener_, wake_;
  std::vector<Waiter> waiters_;
};

}  // namespace keelson::cni::agent
