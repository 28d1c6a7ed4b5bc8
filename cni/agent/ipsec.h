// --encryption ipsec: brings the kernel's states and policies to what ipsec_plan.h says. It adds states
// before the policies that use them, and keeps receiving states for a while after they expire.
#pragma once

#include <map>

#include "cni/agent/extension.h"
#include "cni/agent/ipsec_plan.h"
#include "lib/base/clock.h"
#include "lib/netlink/socket.h"

namespace keelson::cni::agent {

class Ipsec : public Extension {
 public:
  // Opens its sockets in the calling thread's network namespace.
  static Result<std::unique_ptr<Ipsec>> Open(const Config& config, Clock& clock = Clock::Real());

  Result<int> BeforeRoutes(const Plan& plan, const NodeMap& nodes, int& link) override;
  // Removes all of the agent's states and policies.
  static Result<> RemoveAll(netlink::Socket& socket);

 private:
  Ipsec(const Config& config, Clock& clock, netlink::Socket socket)
      : config_(config), clock_(clock), socket_(std::move(socket)) {}
  Result<int> AddStates(const IpsecPlan& wanted, const std::vector<netlink::XfrmState>& found);
  Result<int> SetPolicies(const IpsecPlan& wanted);
  Result<int> DropStates(const IpsecPlan& wanted, const std::vector<netlink::XfrmState>& found);

  const Config config_;
  Clock& clock_;
  netlink::Socket socket_;
  std::map<std::pair<IpAddress, uint32_t>, SteadyTime> unwanted_since_;
};

}  // namespace keelson::cni::agent
