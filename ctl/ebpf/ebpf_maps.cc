#include "ctl/ebpf/ebpf_maps.h"

#include <linux/bpf.h>

#include <algorithm>

#include "lib/base/file.h"
#include "lib/bpf/link.h"
#include "lib/bpf/map.h"
#include "lib/dataplane/ebpf_codec.h"

namespace keelson::ctl {
namespace {

constexpr const char* kNeeded[] = {"services", "endpoints", "members", "nodeport_ips",
                                   "affinity", "flows",     "sent",    "settings"};
constexpr const char* kNeededOutside[] = {"outside", "maglev",         "source_ranges",
                                          "pods",    "connections",    "outside_affinity",
                                          "devices", "direct_devices", "outside_state"};
using dataplane::FromBytes;

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

Result<> ReadMaps(const std::string& directory, EbpfMaps& out) {
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
  look_for(kNeededOutside, out.external.missing);
  for (const std::string& name : names) {
    if (name.ends_with(dataplane::kNewPinSuffix)) continue;  // of a proxy that is at it
    KEELSON_ASSIGN_OR_RETURN(bpf::Map map, bpf::Map::OpenPinned(directory + "/" + name));
    if (!HasEntries(map)) continue;
    KEELSON_ASSIGN_OR_RETURN(EbpfMaps::Entries entries, map.Dump());
    KEELSON_RETURN_IF_ERROR(out.Decode(name, entries));
    out.fill.push_back({name, entries.size(), map.shape().max_entries});
  }
  KEELSON_ASSIGN_OR_RETURN(std::optional<std::string> settings, ReadOnly(directory + "/settings"));
  if (settings) {
    if (auto value = FromBytes<dataplane::NodeSettings>(*settings)) out.node_netns = value->node_netns;
  }
  KEELSON_ASSIGN_OR_RETURN(std::optional<std::string> state, ReadOnly(directory + "/outside_state"));
  if (state) {
    if (auto value = FromBytes<dataplane::ExternalState>(*state)) {
      out.external.draining = value->draining != 0;
    }
  }
  return ReadFilters(out.v4, out.external);
}

// The programs of IPv6 alone are not attached for IPv4; those of IPv6 sockets, which may connect to mapped
// addresses, are attached for both.
Result<> ReadPrograms(const std::string& directory, EbpfMaps& out) {
  for (const char* call : dataplane::kSocketCalls) {
    for (const char* family : {"4", "6"}) {
      if (!out.v4 && *family == '4') continue;
      const std::string name = std::string(call) + family;
      Result<bpf::Link> link = bpf::Link::OpenPinned(directory + "/" + name);
      if (!link && link.error().Is(Code::kNotFound)) {
        out.missing.push_back("program " + name);
        continue;
      }
      if (!link) return link.error();
      KEELSON_ASSIGN_OR_RETURN(uint64_t cgroup, link->CgroupId());
      out.programs.push_back({name, cgroup});
    }
  }
  return {};
}

}  // namespace

Result<> EbpfMaps::Decode(const std::string& map, const Entries& entries) {
  const dataplane::MapSpec* spec = dataplane::FindServiceMap(map);
  if (!spec) return {};
  for (const auto& [key, value] : entries) {
    if (key.size() != spec->key_size || value.size() != spec->value_size) {
      return Error(Code::kInvalid, "the map " + map + " is not one of layout " + std::to_string(KP_LAYOUT));
    }
    if (map == "services") {
      const auto entry = *FromBytes<dataplane::ServiceEntry>(value);
      services[dataplane::Decode(*FromBytes<dataplane::ServiceKey>(key))] = {
          .endpoints = entry.endpoints,
          .affinity = std::chrono::seconds(entry.affinity),
          .pods = static_cast<dataplane::SocketVerdict>(entry.pods),
          .node = static_cast<dataplane::SocketVerdict>(entry.node)};
    } else if (map == "endpoints") {
      const auto at = *FromBytes<dataplane::EndpointKey>(key);
      endpoints[{dataplane::Decode(at.service), at.slot}] =
          dataplane::Decode(*FromBytes<dataplane::Endpoint>(value));
    } else if (map == "nodeport_ips") {
      node_port_ips.insert(dataplane::DecodeIp(FromBytes<dataplane::AddressKey>(key)->ip));
    } else if (map == "affinity") {
      const auto client = *FromBytes<dataplane::LocalClientKey>(key);
      const auto entry = *FromBytes<dataplane::AffinityEntry>(value);
      affinity.push_back({.cookie = client.cookie,
                          .service = dataplane::Decode(client.service),
                          .endpoint = dataplane::Decode(entry.endpoint),
                          .last_used = std::chrono::nanoseconds(entry.last_used)});
    } else if (map == "flows") {
      const auto client = *FromBytes<dataplane::LocalClientKey>(key);
      flows.push_back({.cookie = client.cookie,
                       .service = dataplane::Decode(client.service),
                       .endpoint = dataplane::Decode(*FromBytes<dataplane::Endpoint>(value))});
    } else if (map == "sent") {
      const auto socket = *FromBytes<dataplane::SocketReverseNatKey>(key);
      sent.push_back({.cookie = socket.socket,
                      .service = dataplane::Decode(*FromBytes<dataplane::ServiceKey>(value)),
                      .endpoint = dataplane::Decode(socket.endpoint)});
    } else {
      external.Decode(map, key, value);
    }
  }
  return {};
}

bool EbpfMaps::IsAttached(std::string_view program) const {
  return std::any_of(programs.begin(), programs.end(),
                     [&](const SocketProgram& one) { return one.name == program && one.cgroup != 0; });
}

Result<std::vector<EbpfMaps>> ReadEbpfMaps(const std::string& pin_directory) {
  std::vector<EbpfMaps> out;
  for (bool v4 : {true, false}) {
    const std::string directory = dataplane::FamilyPins(pin_directory, v4);
    Result<std::vector<std::string>> names = ListDir(directory);
    if (!names && names.error().Is(Code::kNotFound)) continue;
    if (!names) return names.error();
    const std::string layout = dataplane::MapPins();
    const bool known = std::find(names->begin(), names->end(), layout) != names->end();
    for (const std::string& name : *names) {
      if (known || !name.starts_with(dataplane::kMapPinsPrefix)) continue;
      return Error(Code::kUnimplemented,
                   directory + "/" + name + " is of another version: this nodectl reads " + layout);
    }
    EbpfMaps& maps = out.emplace_back();
    maps.v4 = v4;
    maps.read_at = std::chrono::steady_clock::now().time_since_epoch();
    KEELSON_RETURN_IF_ERROR(ReadPrograms(directory, maps));
    if (maps.programs.empty()) {  // the mode is another one by now
      out.pop_back();
      continue;
    }
    KEELSON_RETURN_IF_ERROR(ReadMaps(directory + "/" + layout, maps));
  }
  return out;
}

}  // namespace keelson::ctl
