#include "cni/host-local/host_local.h"

#include "cni/host-local/config.h"
#include "cni/host-local/store.h"

namespace keelson::cni {
namespace {

// The range after `index`, and the address after `address` in going round a range set.
struct Cursor {
  const RangeSet& set;
  size_t index;
  IpAddress address;
  void Advance() {
    if (address != set[index].end) {
      address = address.Plus(1);
      return;
    }
    index = (index + 1) % set.size();
    address = set[index].start;
  }
};

const Range* RangeOf(const RangeSet& set, const IpAddress& address) {
  for (const Range& range : set) {
    if (range.subnet.is_v4() == address.is_v4() && range.Contains(address)) return &range;
  }
  return nullptr;
}

// Addresses go round and round, so that a freed one rests as long as possible before it is used again.
Outcome<IpAddress> Search(Store& store, const RangeSet& set, size_t set_index, const Attachment& owner) {
  Cursor cursor{set, 0, set[0].start};
  std::optional<IpAddress> last = store.LastReserved(set_index);
  for (size_t i = 0; last && i < set.size(); ++i) {
    if (!set[i].subnet.Contains(*last) || !set[i].Contains(*last)) continue;
    cursor.index = i;
    cursor.address = *last;
    cursor.Advance();
    break;
  }
  const size_t first_index = cursor.index;
  const IpAddress first = cursor.address;
  do {
    if (cursor.address != set[cursor.index].gateway) {
      ASSIGN_OR_RETURN(bool reserved, store.Reserve(cursor.address, owner));
      if (reserved) {
        RETURN_IF_ERROR(store.SetLastReserved(set_index, cursor.address));
        return cursor.address;
      }
    }
    cursor.Advance();
  } while (cursor.index != first_index || cursor.address != first);
  return CniError{
      kTryAgainLater,
      "no IP addresses available in range set: " + set[0].start.ToString() + "-" + set.back().end.ToString(),
      ""};
}

Outcome<IpAddress> Take(Store& store, const RangeSet& set, size_t set_index, const Attachment& owner,
                        std::vector<IpAddress>& requested, const std::vector<IpAddress>& held) {
  for (auto wanted = requested.begin(); wanted != requested.end(); ++wanted) {
    const Range* range = RangeOf(set, *wanted);
    if (!range) continue;
    IpAddress address = *wanted;
    requested.erase(wanted);
    if (address == range->gateway) {
      return CniError{kInvalidConfig, "requested IP " + address.ToString() + " is the gateway's", ""};
    }
    for (const IpAddress& mine : held) {
      if (mine == address) return address;
    }
    ASSIGN_OR_RETURN(bool reserved, store.Reserve(address, owner));
    if (!reserved) {
      return CniError{kInvalidConfig, "requested IP address " + address.ToString() + " is not available", ""};
    }
    return address;
  }
  // The same container asking again, after a runtime's crash, gets what it has.
  for (const IpAddress& mine : held) {
    if (RangeOf(set, mine)) return mine;
  }
  return Search(store, set, set_index, owner);
}

Outcome<AddResult> Add(const Request& request) {
  ASSIGN_OR_RETURN(HostLocalConfig config, ReadHostLocalConfig(request));
  ASSIGN_OR_RETURN(Store store, Store::Open(config.data_dir));
  Attachment owner{request.container_id, request.ifname};
  ASSIGN_OR_RETURN(std::vector<IpAddress> held, store.HeldBy(owner));
  AddResult result;
  auto undo = [&] {
    for (const IpConfig& ip : result.ips) (void)store.ReleaseAddress(ip.address.address());
  };
  std::vector<IpAddress> requested = config.requested;
  for (size_t i = 0; i < config.ranges.size(); ++i) {
    Outcome<IpAddress> address = Take(store, config.ranges[i], i, owner, requested, held);
    if (!address) {
      undo();
      return address.error();
    }
    const Range* range = RangeOf(config.ranges[i], *address);
    result.ips.push_back({.address = IpPrefix(*address, range->subnet.length()), .gateway = range->gateway});
  }
  if (!requested.empty()) {
    undo();
    return CniError{kInvalidConfig, "requested IP " + requested[0].ToString() + " is in none of the ranges",
                    ""};
  }
  result.routes = config.routes;
  result.dns = config.dns;
  return result;
}

Outcome<> Del(const Request& request) {
  ASSIGN_OR_RETURN(HostLocalConfig config, ReadHostLocalConfig(request));
  ASSIGN_OR_RETURN(Store store, Store::Open(config.data_dir));
  RETURN_IF_ERROR(store.Release({request.container_id, request.ifname}));
  return {};
}

Outcome<> Check(const Request& request) {
  ASSIGN_OR_RETURN(HostLocalConfig config, ReadHostLocalConfig(request));
  ASSIGN_OR_RETURN(Store store, Store::Open(config.data_dir));
  ASSIGN_OR_RETURN(auto held, store.HeldBy({request.container_id, request.ifname}));
  if (held.empty()) {
    return CniError{kCheckFailed, "host-local: no IP is held by container " + request.container_id, ""};
  }
  return {};
}

Outcome<> Gc(const Request& request) {
  ASSIGN_OR_RETURN(HostLocalConfig config, ReadHostLocalConfig(request));
  ASSIGN_OR_RETURN(Store store, Store::Open(config.data_dir));
  RETURN_IF_ERROR(store.ReleaseAllBut(request.valid_attachments));
  return {};
}

Outcome<> Status(const Request& request) {
  Outcome<HostLocalConfig> config = ReadHostLocalConfig(request);
  if (!config) return config.error();
  return {};
}

}  // namespace

Plugin HostLocalPlugin() {
  return {.about = "CNI host-local IPAM plugin",
          .add = Add,
          .del = Del,
          .check = Check,
          .status = Status,
          .gc = Gc};
}

}  // namespace keelson::cni
