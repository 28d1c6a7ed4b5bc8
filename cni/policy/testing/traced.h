// For tests: what a plan's rules do with a packet, by the interpreter of lib/nft.
#pragma once

#include "cni/policy/plan.h"
#include "cni/policy/testing/naive.h"
#include "lib/dataplane/domain_sets.h"
#include "lib/nft/trace.h"

namespace keelson::cni::policy {

class TracedPlan {
 public:
  // `names`: what the cluster's DNS has written into the sets of the plan.
  explicit TracedPlan(Plan plan, const ResolvedNames& names = {}) {
    nft::LiveTable table;
    table.contents = std::move(plan.rules);
    for (const auto& [name, addresses] : names) {
      for (const IpAddress& address : addresses) {
        for (const std::string& set : dataplane::DomainSetsOf(name, address.is_v4())) {
          auto contents = table.contents.sets.find(set);
          if (contents == table.contents.sets.end()) continue;
          const std::string key = nft::Key().Ip(address).bytes();
          contents->second.elements.insert_or_assign(key, nft::Element{.key = key});
        }
      }
    }
    for (const auto& [name, contents] : table.contents.chains) {
      auto& programs = table.programs[name];
      for (const nft::Rule& rule : contents.rules) programs.push_back({rule.exprs(), "", 0, {}, rule.note()});
    }
    tables_.push_back(std::move(table));
  }

  nft::TraceOutcome At(nft::HookPoint point, const Packet& packet, uint32_t source_type = 1) const {
    nft::Packet out{.source = packet.source, .destination = packet.destination, .protocol = packet.protocol};
    out.source_port = 40000;
    out.destination_port = packet.port;
    return nft::TraceHook(tables_, point, out, [&](const IpAddress&) { return source_type; }).front();
  }
  bool Passes(const Packet& packet) const {
    return At(nft::HookPoint::kForward, packet).end == nft::TraceOutcome::kGoesOn;
  }

  // A packet that arrives at an address of the node itself.
  bool ReachesNode(const Packet& packet) const {
    return At(nft::HookPoint::kInput, packet).end == nft::TraceOutcome::kGoesOn;
  }

 private:
  std::vector<nft::LiveTable> tables_;
};

}  // namespace keelson::cni::policy
