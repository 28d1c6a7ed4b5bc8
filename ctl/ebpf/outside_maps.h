// What kube-proxy's mode ebpf serves who comes from outside with, at devices: maps, decoded, and the filters
// that read them (proxy/ebpf/bpf/outside.h). Of one address family.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ctl/ebpf/map_keys.h"
#include "lib/base/error.h"

namespace keelson::ctl {

struct OutsideService {
  uint32_t endpoints = 0, first = 0;  // slots first to first + endpoints - 1
  uint32_t rows = 0;                  // of the Maglev table; 0: one endpoint, which needs none
  std::chrono::seconds affinity{0};
  bool masquerade = false;
  bool limited = false;  // to source ranges
};

// What the packets of one way of a connection say, and what becomes of them.
struct Ends {
  uint8_t protocol = 0;
  Target source, destination;
  auto operator<=>(const Ends&) const = default;
};
struct Translated {
  Target source, destination;
  bool back = false;  // what comes from the endpoint
  bool masqueraded = false, direct = false;
  bool straight = false;  // answers go past this node: there is no way back
  bool finished = false, reset = false;
  std::chrono::nanoseconds used{0};  // CLOCK_MONOTONIC; 0: not yet
};

// A client that stays with an endpoint by affinity.
struct OutsideStay {
  Vip vip;
  IpAddress client;
  Target target;
  std::chrono::nanoseconds used{0};
};

// One that is served, or has an address that somebody could come to.
struct OutsideDevice {
  std::string link;
  bool served = false;               // is in the map that the filters look into
  bool in = false, out = false;      // has the filters
  std::optional<IpAddress> sent_on;  // may take packets past the rules, from this address,
  uint32_t mtu = 0;                  // of that size
  bool fast = false;                 // its driver does so, before there is a packet of the kernel's
};

struct OutsideMaps {
  using Entries = std::vector<std::pair<std::string, std::string>>;

  std::map<Vip, OutsideService> services;
  std::map<std::pair<Vip, uint32_t>, std::vector<uint16_t>> maglev;  // by row: slots, counted from `first`
  std::vector<std::pair<Vip, IpPrefix>> source_ranges;
  std::vector<IpPrefix> pods;  // who is not of the outside
  std::map<Ends, Translated> connections;
  std::vector<OutsideStay> affinity;
  std::map<int, OutsideDevice> devices;  // by index
  bool draining = false;                 // nobody new is served
  std::vector<std::string> missing;      // maps that are not pinned

  // As SocketMaps::Decode().
  Result<> Decode(const std::string& map, const Entries& entries);
  const OutsideDevice* Device(const std::string& link) const;
};

// Links and their filters, of the calling thread's network namespace, into `maps.devices`, which have been
// decoded.
Result<> ReadFilters(bool v4, OutsideMaps& maps);

}  // namespace keelson::ctl
