// The half of Dataplane that reads: what there is, and whether others have changed it.
#include <algorithm>

#include "proxy/ipvs/dataplane.h"

namespace keelson::proxy::ipvs {

bool Dataplane::IsOurs(const IpAddress& ip) const {
  return ip.is_v4() == v4() && std::none_of(options_.excluded.begin(), options_.excluded.end(),
                                            [&](const IpPrefix& cidr) { return cidr.Contains(ip); });
}

// What is in the kernel, and what of it is not as it should be.
Result<> Dataplane::Look() {
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::FoundServer> found, kernel_->Servers());
  KEELSON_ASSIGN_OR_RETURN(std::set<IpAddress> bound, kernel_->Bound());
  present_.clear();
  for (const netlink::FoundServer& one : found) {
    const netlink::VirtualServer& server = one.server;
    if (!IsOurs(server.address.ip)) continue;
    const bool alike =
        server.scheduler == options_.scheduler && server.scheduler_flags == options_.scheduler_flags;
    present_[server.address] = alike ? server.affinity : std::chrono::seconds(-1);
    pending_.insert(server.address);
  }
  bound_.clear();
  for (const IpAddress& ip : bound) {
    if (ip.is_v4() != v4()) continue;
    bound_.insert(ip);
    pending_ips_.insert(ip);
    Guard(ip, true);
  }
  draining_.clear();
  refused_.clear();
  plan_.StartOver();
  in_step_ = true;
  return {};
}

// Whether a server is as this dataplane has left it. Of those that drain others than it know more.
bool Dataplane::IsAsWritten(const netlink::ListedServer& listed) const {
  auto present = present_.find(listed.address);
  if (present == present_.end()) return false;
  if (draining_.contains(listed.address) || refused_.contains(listed.address)) return true;
  const Server* wanted = retiring_ ? nullptr : plan_.Find(listed.address);
  if (!wanted || listed.scheduler != options_.scheduler || listed.sticky != (present->second.count() > 0) ||
      listed.destinations.size() != wanted->targets.size()) {
    return false;
  }
  return std::all_of(listed.destinations.begin(), listed.destinations.end(), [&](const auto& one) {
    const Target target{one.destination.ip, one.destination.port};
    return one.translates && one.destination.weight == 1 &&
           std::binary_search(wanted->targets.begin(), wanted->targets.end(), target);
  });
}

Result<bool> Dataplane::IsInStep() {
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::ListedServer> listed, kernel_->List());
  std::erase_if(listed, [&](const netlink::ListedServer& one) { return !IsOurs(one.address.ip); });
  if (listed.size() != present_.size()) return false;
  for (const netlink::ListedServer& one : listed) {
    if (!IsAsWritten(one)) return false;
  }
  KEELSON_ASSIGN_OR_RETURN(std::set<IpAddress> bound, kernel_->Bound());
  std::erase_if(bound, [&](const IpAddress& ip) { return ip.is_v4() != v4(); });
  return bound == bound_;
}

}  // namespace keelson::proxy::ipvs
