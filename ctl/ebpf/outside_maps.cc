#include "ctl/ebpf/outside_maps.h"

#include <algorithm>

#include "lib/bpf/tc.h"
#include "lib/netlink/link.h"

namespace keelson::ctl {
namespace {

constexpr uint32_t kPriorityV4 = 19204, kPriorityV6 = 19206;  // of the filters
constexpr uint8_t kBack = 1, kMasquerade = 2, kDirect = 4, kStraight = 8, kFinished = 1, kReset = 2;

// Bytes of keys and of values.
std::pair<size_t, size_t> SizesOf(const std::string& map) {
  static const std::map<std::string, std::pair<size_t, size_t>> kSizes = {
      {"outside", {20, 20}}, {"maglev", {24, 1024}},      {"source_ranges", {40, 1}},
      {"pods", {20, 1}},     {"connections", {40, 48}},   {"outside_affinity", {36, 32}},
      {"devices", {4, 4}},   {"direct_devices", {4, 20}}, {"fast_devices", {4, 8}}};
  auto found = kSizes.find(map);
  return found == kSizes.end() ? std::pair<size_t, size_t>() : found->second;
}

// Of an address at the key's end, whose first `bits` count.
IpPrefix ReadRange(MapReader& key, uint32_t bits) {
  const IpAddress ip = key.Ip();
  return IpPrefix(ip, static_cast<int>(ip.is_v4() ? bits - 96 : bits));
}

// Addresses stand before the ports.
std::pair<Target, Target> ReadEnds(MapReader& from) {
  std::pair<Target, Target> out;
  out.first.ip = from.Ip();
  out.second.ip = from.Ip();
  out.first.port = from.Port();
  out.second.port = from.Port();
  return out;
}

Translated ReadTranslated(MapReader& value) {
  Translated out;
  std::tie(out.source, out.destination) = ReadEnds(value);
  const auto flags = value.Number<uint8_t>(), ends = value.Number<uint8_t>();
  out.back = flags & kBack;
  out.masqueraded = flags & kMasquerade;
  out.direct = flags & kDirect;
  out.straight = flags & kStraight;
  out.finished = ends & kFinished;
  out.reset = ends & kReset;
  value.Take(2);
  out.used = std::chrono::nanoseconds(value.Number<uint64_t>());
  return out;
}

}  // namespace

Result<> OutsideMaps::Decode(const std::string& map, const Entries& entries) {
  const auto [key_size, value_size] = SizesOf(map);
  if (key_size == 0) return {};
  for (const auto& [key_bytes, value_bytes] : entries) {
    if (key_bytes.size() != key_size || value_bytes.size() != value_size) {
      return Error(Code::kInvalid, "the map " + map + " is of another layout");
    }
    MapReader key(key_bytes), value(value_bytes);
    if (map == "outside") {
      OutsideService& service = services[key.ReadVip()];
      service.endpoints = value.Number<uint32_t>();
      service.first = value.Number<uint32_t>();
      service.rows = value.Number<uint32_t>();
      service.affinity = std::chrono::seconds(value.Number<uint32_t>());
      service.masquerade = value.Number<uint8_t>() != 0;
      service.limited = value.Number<uint8_t>() != 0;
    } else if (map == "maglev") {
      const Vip vip = key.ReadVip();
      std::vector<uint16_t>& slots = maglev[{vip, key.Number<uint32_t>()}];
      for (size_t i = 0; i < value_size; i += 2) slots.push_back(value.Number<uint16_t>());
    } else if (map == "source_ranges") {
      const auto bits = key.Number<uint32_t>();
      const Vip vip = key.ReadVip();
      source_ranges.emplace_back(vip, ReadRange(key, bits - 160));  // behind the Vip's 20 bytes
    } else if (map == "pods") {
      const auto bits = key.Number<uint32_t>();
      pods.push_back(ReadRange(key, bits));
    } else if (map == "connections") {
      Ends ends;
      std::tie(ends.source, ends.destination) = ReadEnds(key);
      ends.protocol = key.Number<uint8_t>();
      connections[ends] = ReadTranslated(value);
    } else if (map == "outside_affinity") {
      OutsideStay stay{.vip = key.ReadVip(), .client = key.Ip()};
      stay.used = std::chrono::nanoseconds(value.Number<uint64_t>());
      stay.target = value.ReadTarget();
      affinity.push_back(stay);
    } else if (map == "devices") {
      devices[key.Number<int>()].served = true;
    } else if (map == "direct_devices") {
      OutsideDevice& device = devices[key.Number<int>()];
      const IpAddress ip = value.Ip();
      if (ip != IpAddress::FromBytes(std::string(16, '\0'))) device.sent_on = ip;
      device.mtu = value.Number<uint32_t>();
    } else if (map == "fast_devices") {
      devices[key.Number<int>()].fast = true;
    }
  }
  return {};
}

const OutsideDevice* OutsideMaps::Device(const std::string& link) const {
  auto found =
      std::find_if(devices.begin(), devices.end(), [&](const auto& one) { return one.second.link == link; });
  return found == devices.end() ? nullptr : &found->second;
}

Result<> ReadFilters(bool v4, OutsideMaps& maps) {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  ASSIGN_OR_RETURN(std::vector<netlink::Link> links, netlink::ListLinks(socket));
  for (const netlink::Link& link : links) {
    bool there[2] = {};
    for (bool in : {true, false}) {
      ASSIGN_OR_RETURN(
          std::optional<std::string> name,
          bpf::TcProgramAt(
              {.link_index = link.index, .ingress = in, .priority = v4 ? kPriorityV4 : kPriorityV6}));
      there[in] = name == (in ? "from_outside" : "to_outside");
    }
    auto known = maps.devices.find(link.index);
    if (known == maps.devices.end() && !there[false] && !there[true]) continue;
    OutsideDevice& device = maps.devices[link.index];
    device.link = link.name;
    device.out = there[false];
    device.in = there[true];
  }
  // Of those that have gone nothing is to be said.
  std::erase_if(maps.devices, [](const auto& one) { return one.second.link.empty(); });
  return {};
}

}  // namespace keelson::ctl
