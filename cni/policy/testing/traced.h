// For tests: what a plan's rules do with a packet, by the interpreter of lib/nft.
#pragma once

#include "cni/policy/plan.h"
#include "cni/policy/testing/naive.h"
#include "lib/nft/trace.h"

namespace keelson::cni::policy {

class TracedPlan {
 public:
  explicit TracedPlan(const Plan& plan) {
    nft::LiveTable table;
    table.contents = plan.rules;
    for (const auto& [name, contents] : plan.rules.chains) {
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

 private:
  std::vector<nft::LiveTable> tables_;
};

}  // namespace keelson::cni::policy
