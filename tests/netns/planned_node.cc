#include "tests/netns/planned_node.h"

#include <cstdlib>

#include "ctl/ebpf/socket_lb.h"
#include "tests/netns/packet_table.h"

namespace keelson::netns {
namespace {

proxy::nftables::Options Rules(const std::string& mode, proxy::nftables::Options options) {
  options.ipvs = mode == "ipvs";
  if (mode != "nftables") options.table += "-" + mode;
  return options;
}

}  // namespace

IpAddress PlannedNode::Own(const char* v4, const char* v6) const {
  return *IpAddress::Parse(rules_.options().v4 ? v4 : v6);
}

PlannedNode::PlannedNode(const std::string& mode, proxy::nftables::Options options)
    : rules_(Rules(mode, options)) {
  machine_ = {ClientAddress("node", options.v4), Own("10.1.0.254", "fd01::fe"), Own("172.31.0.1", "fd31::1")};
  const std::vector<IpAddress> node_ips = {ClientAddress("node", options.v4)};
  rules_.SetNodeIps(node_ips);
  if (mode == "ipvs") {
    servers_.emplace(options.v4);
    servers_->SetNodeIps(node_ips);
    servers_->SetOwnIps(machine_);
  } else if (mode == "ebpf") {
    socket_plan_.emplace(proxy::ebpf::Options{.v4 = options.v4,
                                              .masquerade_all = options.masquerade_all,
                                              .detects_pods = options.DetectsPods(),
                                              .pod_cidrs = options.pod_cidrs});
    socket_plan_->SetNodeIps(node_ips);
  }
}

void PlannedNode::SetService(const std::string& key, const std::vector<proxy::ResolvedPort>& ports) {
  rules_.SetService(key, ports);
  if (servers_) servers_->SetService(key, ports);
  if (socket_plan_) socket_plan_->SetService(key, ports);
}

void PlannedNode::Write() {
  if (servers_) {
    for (const IpAddress& ip : servers_->TakeAddresses()) {
      const bool wanted = servers_->Bound(ip);
      rules_.Guard(ip, wanted);
      wanted ? (void)bound_.insert(ip) : (void)bound_.erase(ip);
    }
  }
  addresses_ = machine_;
  addresses_.insert(addresses_.end(), bound_.begin(), bound_.end());
  nft::LiveTable table;
  table.contents = rules_.Wanted();
  for (auto& [name, chain] : table.contents.chains) {
    for (const nft::Rule& rule : chain.rules) table.programs[name].push_back({rule.exprs(), ""});
    chain.rules.clear();
  }
  tables_ = {std::move(table)};
  if (!socket_plan_) return;
  ctl::EbpfMaps maps{.v4 = rules_.options().v4};
  for (int id = 0; id < proxy::ebpf::kMapCount; ++id) {
    const auto map = static_cast<proxy::ebpf::MapId>(id);
    if (!maps.Decode(MapName(map), socket_plan_->Difference(map, {}).put)) std::abort();
  }
  for (ctl::SocketCall call : {ctl::SocketCall::kConnect, ctl::SocketCall::kSend}) {
    maps.programs.push_back({ctl::ProgramName(call, maps.v4), 1});
  }
  int index = 0;
  for (const char* link : {"outside", "other"}) {
    maps.external.devices[++index] = {
        .link = link, .served = true, .ingress_filter = true, .egress_filter = true};
  }
  ebpf_ = {std::move(maps)};
}

Result<ctl::Hop> PlannedNode::Route(const IpAddress& to) {
  if (IsLocal(to)) return ctl::Hop{.local = true, .link = "lo", .source = to};
  auto within = [&](const char* v4, const char* v6) {
    return IpPrefix::Parse(rules_.options().v4 ? v4 : v6)->Contains(to);
  };
  if (within("10.1.0.0/24", "fd01::/64")) {
    return ctl::Hop{.link = "br0", .source = Own("10.1.0.254", "fd01::fe")};
  }
  if (within("10.2.0.0/24", "fd02::/64")) {
    return ctl::Hop{
        .link = "other", .gateway = Own("172.31.0.2", "fd31::2"), .source = Own("172.31.0.1", "fd31::1")};
  }
  return ctl::Hop{.link = "outside", .gateway = Own("172.30.0.2", "fd30::2"), .source = machine_[0]};
}

std::optional<ctl::NodeView::Balancer> PlannedNode::FindBalancer(const netlink::ServerAddress& address) {
  const proxy::ipvs::Server* server = servers_ ? servers_->Find(address) : nullptr;
  if (!server) return std::nullopt;
  Balancer out{.scheduler = "rr"};
  for (const proxy::ipvs::Target& target : server->targets) {
    out.destinations.emplace_back().destination = {.ip = target.ip, .port = target.port};
  }
  return out;
}

}  // namespace keelson::netns
