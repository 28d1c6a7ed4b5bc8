#include "lib/nft/trace.h"

#include <algorithm>

#include "lib/nft/trace_walk_internal.h"

namespace keelson::nft {
namespace {

struct Base {
  const LiveTable* table;
  const Chain* chain;
};

// The base chains for packets of this family at `point`, in the order they run.
std::vector<Base> BaseChains(const std::vector<LiveTable>& tables, HookPoint point, Family family) {
  std::vector<Base> out;
  for (const LiveTable& table : tables) {
    Family of = table.contents.table.family;
    if (of != family && of != Family::kInet) continue;
    for (const auto& [name, contents] : table.contents.chains) {
      if (contents.chain.hook && contents.chain.hook->point == point) {
        out.push_back({&table, &contents.chain});
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Base& a, const Base& b) {
    return a.chain->hook->priority < b.chain->hook->priority;
  });
  return out;
}

// A connection gets one translation of each kind: later NAT chains no longer run.
bool IsTranslatedAlready(const Hook& hook, const Packet& packet) {
  if (hook.type != HookType::kNat) return false;
  bool of_source = hook.point == HookPoint::kPostrouting || hook.point == HookPoint::kInput;
  return of_source ? packet.source_translated : packet.translated;
}

}  // namespace

std::vector<TraceOutcome> TraceHook(const std::vector<LiveTable>& tables, HookPoint point,
                                    const Packet& packet, const AddressTypeOf& address_type) {
  Family family = packet.source.is_v4() ? Family::kIpv4 : Family::kIpv6;
  std::vector<TraceOutcome> ways = {TraceOutcome{.packet = packet}};
  for (const Base& base : BaseChains(tables, point, family)) {
    std::vector<TraceOutcome> next;
    for (TraceOutcome& way : ways) {
      if (way.end != TraceOutcome::kGoesOn || IsTranslatedAlready(*base.chain->hook, way.packet)) {
        next.push_back(std::move(way));
        continue;
      }
      for (TraceOutcome& out : WalkChain(*base.table, base.chain->name, std::move(way), address_type)) {
        next.push_back(std::move(out));
      }
    }
    ways = std::move(next);
  }
  return ways;
}

}  // namespace keelson::nft
