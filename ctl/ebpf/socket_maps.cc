#include "ctl/ebpf/socket_maps.h"

#include <linux/bpf.h>
#include <sys/socket.h>

#include <algorithm>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/bpf/link.h"
#include "lib/bpf/map.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace keelson::ctl {
namespace {

constexpr const char* kNeeded[] = {"services", "endpoints", "members", "nodeport_ips",
                                   "affinity", "flows",     "sent",    "settings"};
constexpr const char* kNeededOutside[] = {"outside", "maglev",         "source_ranges",
                                          "pods",    "connections",    "outside_affinity",
                                          "devices", "direct_devices", "outside_state"};
constexpr const char* kCalls[] = {"recvmsg", "getpeername", "connect", "sendmsg"};

// Bytes of keys and of values.
std::pair<size_t, size_t> SizesOf(const std::string& map) {
  static const std::map<std::string, std::pair<size_t, size_t>> kSizes = {
      {"services", {20, 12}}, {"endpoints", {24, 20}}, {"members", {40, 1}}, {"nodeport_ips", {16, 1}},
      {"affinity", {32, 32}}, {"flows", {32, 20}},     {"sent", {32, 20}}};
  auto found = kSizes.find(map);
  return found == kSizes.end() ? std::pair<size_t, size_t>() : found->second;
}

// Kinds of maps whose entries can be counted.
bool HasEntries(const bpf::Map& map) {
  const uint32_t type = map.shape().type;
  return type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_LRU_HASH || type == BPF_MAP_TYPE_LPM_TRIE;
}

// The one value of a map that has one; nullopt: there is no such map.
Result<std::optional<std::string>> ReadOnly(const std::string& path) {
  Result<bpf::Map> map = bpf::Map::OpenPinned(path);
  if (!map && map.error().Is(Code::kNotFound)) return std::optional<std::string>();
  if (!map) return map.error();
  return map->Lookup(bpf::Map::Bytes(uint32_t{0}));
}

Result<> ReadMaps(const std::string& directory, SocketMaps& out) {
  Result<std::vector<std::string>> listed = ListDir(directory);
  if (!listed && !listed.error().Is(Code::kNotFound)) return listed.error();
  const std::vector<std::string> names = listed.value_or(std::vector<std::string>());
  auto look_for = [&](const auto& needed, std::vector<std::string>& missing) {
    for (const char* name : needed) {
      const bool there = std::find(names.begin(), names.end(), name) != names.end();
      if (!there) missing.push_back(std::string("map ") + name);
    }
  };
  look_for(kNeeded, out.missing);
  look_for(kNeededOutside, out.outside.missing);
  for (const std::string& name : names) {
    if (name.ends_with("-new")) continue;  // of a proxy that is at it
    ASSIGN_OR_RETURN(bpf::Map map, bpf::Map::OpenPinned(directory + "/" + name));
    if (!HasEntries(map)) continue;
    ASSIGN_OR_RETURN(SocketMaps::Entries entries, map.Dump());
    RETURN_IF_ERROR(out.Decode(name, entries));
    out.fill.push_back({name, entries.size(), map.shape().max_entries});
  }
  ASSIGN_OR_RETURN(std::optional<std::string> settings, ReadOnly(directory + "/settings"));
  if (settings && settings->size() >= sizeof out.node_netns)
    out.node_netns = MapReader(*settings).Number<uint64_t>();
  ASSIGN_OR_RETURN(std::optional<std::string> state, ReadOnly(directory + "/outside_state"));
  if (state && state->size() >= sizeof(uint32_t))
    out.outside.draining = MapReader(*state).Number<uint32_t>() != 0;
  return ReadFilters(out.v4, out.outside);
}

// The programs of IPv6 alone are not attached for IPv4; those of IPv6 sockets, which may connect to mapped
// addresses, are attached for both.
Result<> ReadPrograms(const std::string& directory, SocketMaps& out) {
  for (const char* call : kCalls) {
    for (const char* family : {"4", "6"}) {
      if (!out.v4 && *family == '4') continue;
      const std::string name = std::string(call) + family;
      Result<bpf::Link> link = bpf::Link::OpenPinned(directory + "/" + name);
      if (!link && link.error().Is(Code::kNotFound)) {
        out.missing.push_back("program " + name);
        continue;
      }
      if (!link) return link.error();
      ASSIGN_OR_RETURN(uint64_t cgroup, link->CgroupId());
      out.programs.push_back({name, cgroup});
    }
  }
  return {};
}

}  // namespace

Result<> SocketMaps::Decode(const std::string& map, const Entries& entries) {
  const auto [key_size, value_size] = SizesOf(map);
  if (key_size == 0) return outside.Decode(map, entries);
  for (const auto& [key_bytes, value_bytes] : entries) {
    if (key_bytes.size() != key_size || value_bytes.size() != value_size) {
      return Error(Code::kInvalid, "the map " + map + " is not one of layout " + std::to_string(kMapLayout));
    }
    MapReader key(key_bytes), value(value_bytes);
    if (map == "services") {
      SocketService& service = services[key.ReadVip()];
      service.endpoints = value.Number<uint32_t>();
      service.affinity = std::chrono::seconds(value.Number<uint32_t>());
      service.pods = value.Number<Answer>();
      service.node = value.Number<Answer>();
    } else if (map == "endpoints") {
      const Vip vip = key.ReadVip();
      endpoints[{vip, key.Number<uint32_t>()}] = value.ReadTarget();
    } else if (map == "nodeport_ips") {
      node_port_ips.insert(key.Ip());
    } else if (map == "affinity") {
      Stay stay{.cookie = key.Number<uint64_t>(), .vip = key.ReadVip()};
      stay.used = std::chrono::nanoseconds(value.Number<uint64_t>());
      stay.target = value.ReadTarget();
      affinity.push_back(stay);
    } else if (map == "flows") {
      Stay stay{.cookie = key.Number<uint64_t>(), .vip = key.ReadVip()};
      stay.target = value.ReadTarget();
      flows.push_back(stay);
    } else if (map == "sent") {
      Stay stay{.cookie = key.Number<uint64_t>()};
      stay.target = key.ReadTarget();
      stay.vip = value.ReadVip();
      sent.push_back(stay);
    }
  }
  return {};
}

bool SocketMaps::IsAttached(std::string_view program) const {
  return std::any_of(programs.begin(), programs.end(),
                     [&](const SocketProgram& one) { return one.name == program && one.cgroup != 0; });
}

Result<std::vector<SocketMaps>> ReadSocketMaps(const std::string& pin_directory) {
  std::vector<SocketMaps> out;
  for (bool v4 : {true, false}) {
    const std::string directory = pin_directory + (v4 ? "/v4" : "/v6");
    Result<std::vector<std::string>> names = ListDir(directory);
    if (!names && names.error().Is(Code::kNotFound)) continue;
    if (!names) return names.error();
    const std::string layout = "maps-" + std::to_string(kMapLayout);
    const bool known = std::find(names->begin(), names->end(), layout) != names->end();
    for (const std::string& name : *names) {
      if (known || !name.starts_with("maps-")) continue;
      return Error(Code::kUnimplemented,
                   directory + "/" + name + " is of another version: this nodectl reads " + layout);
    }
    SocketMaps& maps = out.emplace_back();
    maps.v4 = v4;
    maps.read_at = std::chrono::steady_clock::now().time_since_epoch();
    RETURN_IF_ERROR(ReadPrograms(directory, maps));
    if (maps.programs.empty()) {  // the mode is another one by now
      out.pop_back();
      continue;
    }
    RETURN_IF_ERROR(ReadMaps(directory + "/" + layout, maps));
  }
  return out;
}

uint64_t NetnsCookie() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (!socket || ::getsockopt(socket.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) return 0;
  return cookie;
}

}  // namespace keelson::ctl
