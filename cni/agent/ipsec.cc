#include "cni/agent/ipsec.h"

#include <algorithm>
#include <set>

#include "lib/base/file.h"

namespace keelson::cni::agent {
namespace {

using netlink::XfrmPolicy;
using netlink::XfrmState;

// Peers learn about a new secret, or a node that has gone, with their next syncs.
constexpr auto kKeepReceiving = std::chrono::minutes(10);

bool Ours(const XfrmPolicy& policy) {
  return policy.priority == kPriorityOwn || policy.priority == kPriorityTunnel ||
         policy.priority == kPriorityBlock;
}

std::pair<IpAddress, uint32_t> IdOf(const XfrmState& state) { return {state.destination, state.spi}; }

}  // namespace

Result<std::unique_ptr<Ipsec>> Ipsec::Open(const Config& config, Clock& clock) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenXfrm());
  return std::unique_ptr<Ipsec>(new Ipsec(config, clock, std::move(socket)));
}

Result<int> Ipsec::AddStates(const IpsecPlan& wanted, const std::vector<XfrmState>& found) {
  std::set<std::pair<IpAddress, uint32_t>> present;
  for (const XfrmState& state : found) present.insert(IdOf(state));
  int added = 0;
  for (const XfrmState& state : wanted.states) {
    if (!present.insert(IdOf(state)).second) continue;
    KEELSON_RETURN_IF_ERROR(netlink::AddState(socket_, state));
    ++added;
  }
  return added;
}

Result<int> Ipsec::SetPolicies(const IpsecPlan& wanted) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<XfrmPolicy> found, netlink::ListPolicies(socket_));
  auto key = [](const XfrmPolicy& p) { return std::tuple(p.direction, p.source, p.destination); };
  std::map<std::tuple<XfrmPolicy::Direction, IpPrefix, IpPrefix>, const XfrmPolicy*> present;
  for (const XfrmPolicy& policy : found) present[key(policy)] = &policy;
  int changes = 0;
  // First what protects packets, then what blocks them or lets them pass unencrypted.
  for (uint32_t priority : {kPriorityTunnel, kPriorityOwn, kPriorityBlock}) {
    for (const XfrmPolicy& policy : wanted.policies) {
      if (policy.priority != priority) continue;
      auto it = present.find(key(policy));
      if (it == present.end() || !(*it->second == policy)) {
        KEELSON_RETURN_IF_ERROR(netlink::ReplacePolicy(socket_, policy));
        ++changes;
      }
      if (it != present.end()) present.erase(it);
    }
  }
  for (const auto& [k, policy] : present) {
    if (!Ours(*policy)) continue;
    KEELSON_RETURN_IF_ERROR(netlink::DeletePolicy(socket_, *policy));
    ++changes;
  }
  return changes;
}

Result<int> Ipsec::DropStates(const IpsecPlan& wanted, const std::vector<XfrmState>& found) {
  std::set<std::pair<IpAddress, uint32_t>> kept;
  for (const XfrmState& state : wanted.states) kept.insert(IdOf(state));
  std::erase_if(unwanted_since_, [&](const auto& entry) { return kept.contains(entry.first); });
  int dropped = 0;
  const SteadyTime now = clock_.SteadyNow();
  for (const XfrmState& state : found) {
    if (state.reqid != kIpsecReqid || kept.contains(IdOf(state))) continue;
    SteadyTime since = unwanted_since_.try_emplace(IdOf(state), now).first->second;
    if (now - since < kKeepReceiving) continue;
    KEELSON_RETURN_IF_ERROR(netlink::DeleteState(socket_, state));
    unwanted_since_.erase(IdOf(state));
    ++dropped;
  }
  return dropped;
}

Result<int> Ipsec::BeforeRoutes(const Plan& plan, const NodeMap& nodes, int&) {
  Result<std::string> file = ReadFile(config_.ipsec_key_file);
  if (!file) return file.error();
  Result<std::vector<std::string>> secrets = ParseIpsecSecrets(*file);
  if (!secrets) return secrets.error().Wrap(config_.ipsec_key_file);
  int64_t now = std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
  KEELSON_ASSIGN_OR_RETURN(IpsecPlan wanted,
                           MakeIpsecPlan(config_, plan, nodes, *secrets, now / kEpochSeconds));
  KEELSON_ASSIGN_OR_RETURN(std::vector<XfrmState> found, netlink::ListStates(socket_));
  KEELSON_ASSIGN_OR_RETURN(int added, AddStates(wanted, found));
  KEELSON_ASSIGN_OR_RETURN(int policies, SetPolicies(wanted));
  KEELSON_ASSIGN_OR_RETURN(int dropped, DropStates(wanted, found));
  return added + policies + dropped;
}

Result<> Ipsec::RemoveAll(netlink::Socket& socket) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<XfrmPolicy> policies, netlink::ListPolicies(socket));
  for (const XfrmPolicy& policy : policies) {
    if (Ours(policy)) KEELSON_RETURN_IF_ERROR(netlink::DeletePolicy(socket, policy));
  }
  KEELSON_ASSIGN_OR_RETURN(std::vector<XfrmState> states, netlink::ListStates(socket));
  for (const XfrmState& state : states) {
    if (state.reqid == kIpsecReqid) KEELSON_RETURN_IF_ERROR(netlink::DeleteState(socket, state));
  }
  return {};
}

}  // namespace keelson::cni::agent
