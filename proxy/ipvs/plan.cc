#include "proxy/ipvs/plan.h"

#include <algorithm>

#include "proxy/model/traffic.h"

namespace keelson::proxy::ipvs {
namespace {

Server ServerOf(const ServicePort& service, const std::vector<Backend>& backends) {
  Server out{.affinity = service.affinity, .targets = {}};
  for (const Backend& backend : backends) out.targets.push_back({backend.ip, backend.port});
  std::sort(out.targets.begin(), out.targets.end());
  out.targets.erase(std::unique(out.targets.begin(), out.targets.end()), out.targets.end());
  return out;
}

}  // namespace

Plan::Contribution Plan::ContributionOf(const std::vector<ResolvedPort>& ports) const {
  Contribution out;
  for (const ResolvedPort& port : ports) {
    const ServicePort& s = port.service;
    out.vips.insert(s.cluster_ip);
    // Of a duplicate address the first one counts.
    if (InternalVerdict(port) == TrafficVerdict::kServed) {
      out.servers.try_emplace({s.protocol, s.cluster_ip, s.port},
                              ServerOf(s, s.internal_local ? port.local : port.cluster));
    }
    const bool served = ExternalVerdict(port) == TrafficVerdict::kServed;
    const std::vector<Backend>& external = s.external_local ? port.local : port.cluster;
    for (const auto* list : {&s.external_ips, &s.load_balancer_ips}) {
      for (const IpAddress& ip : *list) {
        out.vips.insert(ip);
        if (served) out.servers.try_emplace({s.protocol, ip, s.port}, ServerOf(s, external));
      }
    }
    if (s.node_port != 0 && served) {
      out.servers.try_emplace({s.protocol, IpAddress(), s.node_port}, ServerOf(s, external));
    }
  }
  return out;
}

void Plan::SetService(const std::string& key, const std::vector<ResolvedPort>& ports) {
  Replace(key, ContributionOf(ports));
  if (ports.empty()) owners_.erase(key);
}

void Plan::Replace(const std::string& key, Contribution now) {
  Owned& owned = owners_[key];
  for (const ServerAddress& address : owned.servers) {
    auto wanted = now.servers.find(address);
    auto claims = claims_.find(address);
    auto mine = std::find_if(claims->second.begin(), claims->second.end(),
                             [&](const Claim& claim) { return claim.owner == key; });
    if (wanted != now.servers.end()) {
      if (mine->server != wanted->second) {
        mine->server = std::move(wanted->second);
        Touch(address);
      }
      continue;
    }
    claims->second.erase(mine);
    if (claims->second.empty()) claims_.erase(claims);
    Touch(address);
  }
  std::vector<ServerAddress> servers;
  for (auto& [address, server] : now.servers) {
    servers.push_back(address);
    // `owned` is sorted: it comes from such a map.
    if (std::binary_search(owned.servers.begin(), owned.servers.end(), address)) continue;
    claims_[address].push_back({key, std::move(server)});
    Touch(address);
  }
  for (const IpAddress& ip : now.vips) {
    if (++vips_[ip] == 1) changed_ips_.insert(ip);
  }
  for (const IpAddress& ip : owned.vips) {
    if (--vips_[ip] > 0) continue;
    vips_.erase(ip);
    changed_ips_.insert(ip);
  }
  owned.servers = std::move(servers);
  owned.vips.assign(now.vips.begin(), now.vips.end());
}

void Plan::Touch(const ServerAddress& address) {
  if (!address.ip.IsUnspecified()) {
    changed_servers_.insert(address);
    return;
  }
  for (const IpAddress& ip : node_ips_) changed_servers_.insert({address.protocol, ip, address.port});
}

void Plan::SetNodeIps(const std::vector<IpAddress>& ips) {
  std::set<IpAddress> now;
  for (const IpAddress& ip : ips) {
    if (ip.is_v4() == v4_) now.insert(ip);
  }
  std::set<IpAddress> different;
  std::set_symmetric_difference(now.begin(), now.end(), node_ips_.begin(), node_ips_.end(),
                                std::inserter(different, different.end()));
  for (const auto& [address, claims] : claims_) {
    if (!address.ip.IsUnspecified()) continue;
    for (const IpAddress& ip : different) changed_servers_.insert({address.protocol, ip, address.port});
  }
  node_ips_ = std::move(now);
}

void Plan::SetOwnIps(const std::vector<IpAddress>& ips) {
  std::set<IpAddress> now(ips.begin(), ips.end());
  for (const auto* list : {&now, &own_ips_}) {
    for (const IpAddress& ip : *list) {
      if (vips_.contains(ip) && now.contains(ip) != own_ips_.contains(ip)) changed_ips_.insert(ip);
    }
  }
  own_ips_ = std::move(now);
}

std::set<ServerAddress> Plan::TakeServers() { return std::exchange(changed_servers_, {}); }
std::set<IpAddress> Plan::TakeAddresses() { return std::exchange(changed_ips_, {}); }

const Plan::Claim* Plan::FindClaim(const ServerAddress& address) const {
  auto found = claims_.find(address);
  if (found == claims_.end() && node_ips_.contains(address.ip)) {
    found = claims_.find({address.protocol, IpAddress(), address.port});
  }
  return found == claims_.end() ? nullptr : &found->second.front();
}

const Server* Plan::Find(const ServerAddress& address) const {
  const Claim* claim = FindClaim(address);
  return claim ? &claim->server : nullptr;
}

std::string Plan::OwnerOf(const ServerAddress& address) const {
  const Claim* claim = FindClaim(address);
  return claim ? claim->owner : "";
}

void Plan::StartOver() {
  for (const auto& [address, claims] : claims_) Touch(address);
  for (const auto& [ip, users] : vips_) changed_ips_.insert(ip);
}

}  // namespace keelson::proxy::ipvs
