#include "cni/host-local/allocator.h"

#include <algorithm>

namespace keelson::cni {
namespace {

// Steps through a range set in a circle: the range after `index`, and the address after `address`.
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

std::string ToText(const RangeSet& set) {
  std::string out;
  for (const Range& range : set) {
    out += (out.empty() ? "" : ",") + range.start.ToString() + "-" + range.end.ToString();
  }
  return out;
}

CniError Unavailable(std::string message) { return {kInternalFailure, std::move(message), ""}; }

// Searches in a circle, so that a freed address stays unused as long as possible.
Outcome<Choice> Search(Store& store, const RangeSet& set, size_t set_index) {
  Cursor cursor{set, 0, set[0].start};
  std::optional<IpAddress> last = store.LastReserved(set_index);
  for (size_t i = 0; last && i < set.size(); ++i) {
    if (set[i].subnet.is_v4() != last->is_v4() || !set[i].Contains(*last)) continue;
    cursor.index = i;
    cursor.address = *last;
    cursor.Advance();
    break;
  }
  const size_t first_index = cursor.index;
  const IpAddress first = cursor.address;
  do {
    const Range& range = set[cursor.index];
    if (cursor.address != range.gateway && store.IsFree(cursor.address)) {
      return Choice{cursor.address, &range, false, true};
    }
    cursor.Advance();
  } while (cursor.index != first_index || cursor.address != first);
  return Unavailable("no IP addresses available in range set: " + ToText(set));
}

Outcome<Choice> ChooseOne(Store& store, const RangeSet& set, size_t set_index,
                          std::vector<IpAddress>& requested, const std::vector<IpAddress>& held) {
  auto is_held = [&](const IpAddress& address) {
    return std::find(held.begin(), held.end(), address) != held.end();
  };
  for (auto wanted = requested.begin(); wanted != requested.end(); ++wanted) {
    const Range* range = RangeOf(set, *wanted);
    if (!range) continue;
    IpAddress address = *wanted;
    requested.erase(wanted);
    if (address == range->gateway) {
      return CniError{kInvalidConfig, "requested ip " + address.ToString() + " is subnet's gateway", ""};
    }
    if (is_held(address)) return Choice{address, range, true, false};
    if (!store.IsFree(address)) {
      return Unavailable("requested IP address " + address.ToString() + " is not available in range set " +
                         ToText(set));
    }
    return Choice{address, range, false, true};
  }
  // The same container again, after a crash of the runtime, gets its present address.
  for (const IpAddress& mine : held) {
    if (const Range* range = RangeOf(set, mine)) return Choice{mine, range, true, false};
  }
  return Search(store, set, set_index);
}

}  // namespace

Outcome<std::vector<Choice>> Choose(Store& store, const HostLocalConfig& config,
                                    const std::vector<IpAddress>& held) {
  std::vector<Choice> out;
  std::vector<IpAddress> requested = config.requested;
  for (size_t i = 0; i < config.ranges.size(); ++i) {
    Outcome<Choice> choice = ChooseOne(store, config.ranges[i], i, requested, held);
    if (!choice) return choice.error().Wrap("failed to allocate for range " + std::to_string(i));
    out.push_back(*choice);
  }
  if (requested.empty()) return out;
  std::string message = "failed to allocate all requested IPs:";
  for (const IpAddress& address : requested) message += " " + address.ToString();
  return CniError{kInvalidConfig, message, ""};
}

}  // namespace keelson::cni
