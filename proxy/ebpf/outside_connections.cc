#include "proxy/ebpf/outside_connections.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "proxy/ebpf/bpf/maps.h"
#include "proxy/ebpf/room.h"
#include "proxy/model/service_port.h"

namespace keelson::proxy::ebpf {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kUdp3Minutes = 180 * kSecond, kBeginning = 120 * kSecond, kTcpDay = 86400 * kSecond;

// By which packets of the other way are known.
std::string OtherWay(const Connection& connection, uint8_t protocol) {
  Tuple out{.source_port = connection.destination_port,
            .destination_port = connection.source_port,
            .protocol = protocol};
  std::memcpy(out.source, connection.destination, sizeof out.source);
  std::memcpy(out.destination, connection.source, sizeof out.destination);
  return std::string(bpf::Map::Bytes(out));
}

bool IsAlive(const Connection& there, const Connection& back, uint8_t protocol, uint64_t now) {
  const uint64_t last = std::max(there.used, back.used), idle = now > last ? now - last : 0;
  if (protocol == kUdp) return idle < kUdp3Minutes;
  if (((there.ends | back.ends) & kReset) || (there.ends & back.ends & kFinished)) return false;
  return idle < (back.used == 0 ? kBeginning : kTcpDay);
}

// What is answered past this node: the client's end of it is seen alone.
bool IsAliveStraight(const Connection& there, uint64_t now) {
  const uint64_t idle = now > there.used ? now - there.used : 0;
  return !(there.ends & kReset) && idle < (there.ends ? kBeginning : kTcpDay);
}

}  // namespace

uint32_t ConnectionEntries(uint32_t connections) {
  // An entry takes some 150 bytes: an eighth of a percent of the memory.
  return EntriesFor(2 * connections, 128 << 10, 1 << 14, 1 << 19);
}

bool AnyAlive(const std::vector<bpf::Map::Entry>& entries, uint64_t now_ns) {
  std::unordered_map<std::string_view, const std::string*> by_tuple;
  for (const auto& [key, value] : entries) by_tuple.emplace(key, &value);
  return std::any_of(entries.begin(), entries.end(), [&](const bpf::Map::Entry& entry) {
    Tuple tuple;
    Connection there, back;
    std::memcpy(&tuple, entry.first.data(), sizeof tuple);
    std::memcpy(&there, entry.second.data(), sizeof there);
    if (there.flags & kBack) return false;
    if (there.flags & kStraight) return IsAliveStraight(there, now_ns);
    auto other = by_tuple.find(OtherWay(there, tuple.protocol));
    if (other == by_tuple.end()) return false;
    std::memcpy(&back, other->second->data(), sizeof back);
    return IsAlive(there, back, tuple.protocol, now_ns);
  });
}

Result<bool> DrainOutside(const std::string& map_directory) {
  Result<bpf::Map> state = bpf::Map::OpenPinned(map_directory + "/outside_state");
  Result<bpf::Map> connections = bpf::Map::OpenPinned(map_directory + "/connections");
  for (const Result<bpf::Map>* map : {&state, &connections}) {
    if (*map) continue;
    if (map->error().Is(Code::kNotFound)) return false;
    return map->error();
  }
  RETURN_IF_ERROR(state->Put(uint32_t{0}, OutsideState{.draining = 1}));
  ASSIGN_OR_RETURN(std::vector<bpf::Map::Entry> entries, connections->Dump());
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return AnyAlive(entries, static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec));
}

}  // namespace keelson::proxy::ebpf
