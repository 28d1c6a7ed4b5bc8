#include "proxy/ebpf/external_connections.h"

#include <algorithm>
#include <unordered_map>

#include "lib/dataplane/ebpf_codec.h"
#include "lib/dataplane/ebpf_connections.h"
#include "proxy/ebpf/map_sizes.h"

namespace keelson::proxy::ebpf {
uint32_t ConnectionMapSize(uint32_t connections) {
  // An entry takes some 150 bytes: an eighth of a percent of the memory.
  return MapSizeFor(2 * connections, 128 << 10, 1 << 14, 1 << 19);
}

bool AnyOpen(const std::vector<bpf::Map::Entry>& entries, std::chrono::nanoseconds now) {
  std::unordered_map<std::string_view, const std::string*> by_tuple;
  for (const auto& [key, value] : entries) by_tuple.emplace(key, &value);
  return std::any_of(entries.begin(), entries.end(), [&](const bpf::Map::Entry& entry) {
    const auto tuple = dataplane::FromBytes<dataplane::ConnectionTuple>(entry.first);
    const auto forward = dataplane::FromBytes<dataplane::NatEntry>(entry.second);
    if (!tuple || !forward || (forward->flags & dataplane::kNatReply)) return false;
    if (forward->flags & dataplane::kNatDsr) return dataplane::IsOpenDsr(dataplane::Decode(*forward), now);
    const dataplane::ConnectionTuple reply_tuple = dataplane::ReplyTuple(*forward, tuple->protocol);
    auto found = by_tuple.find(bpf::Map::Bytes(reply_tuple));
    if (found == by_tuple.end()) return false;
    const auto reply = dataplane::FromBytes<dataplane::NatEntry>(*found->second);
    return reply &&
           dataplane::IsOpen(dataplane::Decode(*forward), dataplane::Decode(*reply), tuple->protocol, now);
  });
}

Result<bool> DrainExternal(const std::string& map_directory) {
  Result<bpf::Map> state = bpf::Map::OpenPinned(map_directory + "/outside_state");
  Result<bpf::Map> connections = bpf::Map::OpenPinned(map_directory + "/connections");
  for (const Result<bpf::Map>* map : {&state, &connections}) {
    if (*map) continue;
    if (map->error().Is(Code::kNotFound)) return false;
    return map->error();
  }
  KEELSON_RETURN_IF_ERROR(state->Put(uint32_t{0}, dataplane::ExternalState{.draining = 1}));
  KEELSON_ASSIGN_OR_RETURN(std::vector<bpf::Map::Entry> entries, connections->Dump());
  return AnyOpen(entries, std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace keelson::proxy::ebpf
