#include "cni/host-local/config.h"

#include <sstream>

#include "cni/lib/json.h"
#include "lib/base/file.h"

namespace keelson::cni {
namespace {

using boost::json::object;

CniError Bad(std::string message) { return {kInvalidConfig, std::move(message), ""}; }

Outcome<> Default(const object& json, std::string_view field, const Range& range, IpAddress fallback,
                  IpAddress& out) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, GetString(json, field));
  if (text.empty()) {
    out = fallback;
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(out, IpAddress::Parse(text));
  if (!range.subnet.Contains(out)) {
    return Bad(std::string(field) + " " + text + " not in network " + range.subnet.ToString());
  }
  return {};
}

Outcome<Range> ParseRange(const object& json) {
  Range range;
  KEELSON_ASSIGN_OR_RETURN(std::string subnet, GetString(json, "subnet"));
  KEELSON_ASSIGN_OR_RETURN(range.subnet, IpPrefix::Parse(subnet));
  IpAddress network = range.subnet.Network();
  if (range.subnet.address() != network) {
    return Bad("network has host bits set: " + subnet + ", the network address is " + network.ToString());
  }
  if (range.subnet.length() > network.bits() - 2) {
    return Bad("network " + subnet + " too small to allocate from");
  }
  // An IPv4 subnet's last address is for broadcast.
  IpAddress last = range.subnet.is_v4() ? range.subnet.Last().Plus(-1) : range.subnet.Last();
  KEELSON_RETURN_IF_ERROR(Default(json, "gateway", range, network.Plus(1), range.gateway));
  KEELSON_RETURN_IF_ERROR(Default(json, "rangeStart", range, network.Plus(1), range.start));
  KEELSON_RETURN_IF_ERROR(Default(json, "rangeEnd", range, last, range.end));
  if (range.end < range.start) return Bad("rangeEnd is before rangeStart in " + subnet);
  return range;
}

Outcome<> AddSet(const boost::json::value& json, std::vector<RangeSet>& sets) {
  if (!json.is_array() || json.get_array().empty()) return Bad("ranges must hold non-empty lists");
  RangeSet set;
  for (const auto& item : json.get_array()) {
    if (!item.is_object()) return Bad("a range must be an object");
    KEELSON_ASSIGN_OR_RETURN(Range range, ParseRange(item.get_object()));
    if (!set.empty() && set[0].subnet.is_v4() != range.subnet.is_v4()) {
      return Bad("mixed address families in one range set");
    }
    set.push_back(range);
  }
  sets.push_back(std::move(set));
  return {};
}

Outcome<> CheckOverlap(const std::vector<RangeSet>& sets) {
  std::vector<Range> seen;
  for (const RangeSet& set : sets) {
    for (const Range& range : set) {
      for (const Range& other : seen) {
        if (range.subnet.is_v4() == other.subnet.is_v4() && range.start <= other.end &&
            other.start <= range.end) {
          return Bad("range " + range.start.ToString() + "-" + range.end.ToString() + " overlaps with " +
                     other.start.ToString() + "-" + other.end.ToString());
        }
      }
      seen.push_back(range);
    }
  }
  return {};
}

// Addresses that the caller requests: CNI_ARGS' IP, args.cni.ips, runtimeConfig.ips; with or without a
// prefix length.
Outcome<> ReadRequested(const Request& request, HostLocalConfig& out) {
  std::vector<std::string> texts;
  if (auto found = request.args.find("IP"); found != request.args.end()) texts.push_back(found->second);
  auto collect = [&](const object* json) -> Outcome<> {
    if (!json) return {};
    KEELSON_ASSIGN_OR_RETURN(auto items, GetStrings(*json, "ips"));
    texts.insert(texts.end(), items.begin(), items.end());
    return {};
  };
  KEELSON_ASSIGN_OR_RETURN(const object* args, CniArgs(request.config));
  KEELSON_RETURN_IF_ERROR(collect(args));
  KEELSON_ASSIGN_OR_RETURN(const object* runtime, RuntimeConfig(request.config));
  KEELSON_RETURN_IF_ERROR(collect(runtime));
  for (const std::string& text : texts) {
    KEELSON_ASSIGN_OR_RETURN(IpAddress address, IpAddress::Parse(text.substr(0, text.find('/'))));
    out.requested.push_back(address);
  }
  return {};
}

// The runtime's ranges (capability ipRanges) override the configuration's.
Outcome<> ReadRanges(const Request& request, const object& ipam, std::vector<RangeSet>& out) {
  auto add_all = [&](const object* json, const char* field) -> Outcome<> {
    if (!json) return {};
    KEELSON_ASSIGN_OR_RETURN(const auto* sets, GetArray(*json, field));
    if (!sets) return {};
    for (const auto& set : *sets) KEELSON_RETURN_IF_ERROR(AddSet(set, out));
    return {};
  };
  KEELSON_ASSIGN_OR_RETURN(const object* runtime, RuntimeConfig(request.config));
  KEELSON_RETURN_IF_ERROR(add_all(runtime, "ipRanges"));
  KEELSON_ASSIGN_OR_RETURN(std::string subnet, GetString(ipam, "subnet"));
  if (!subnet.empty()) {
    KEELSON_ASSIGN_OR_RETURN(Range range, ParseRange(ipam));
    out.push_back({range});
  }
  return add_all(&ipam, "ranges");
}

}  // namespace

Outcome<HostLocalConfig> ReadHostLocalConfig(const Request& request) {
  HostLocalConfig out;
  KEELSON_ASSIGN_OR_RETURN(const object* ipam, GetObject(request.config, "ipam"));
  if (!ipam) return Bad("IPAM config missing 'ipam' key");
  KEELSON_RETURN_IF_ERROR(ReadRanges(request, *ipam, out.ranges));
  if (out.ranges.empty()) return Bad("no IP ranges specified");
  KEELSON_RETURN_IF_ERROR(CheckOverlap(out.ranges));
  KEELSON_ASSIGN_OR_RETURN(auto routes, GetObjects(*ipam, "routes"));
  for (const object* item : routes) {
    KEELSON_ASSIGN_OR_RETURN(RouteConfig route, ParseRoute(*item));
    out.routes.push_back(std::move(route));
  }
  KEELSON_RETURN_IF_ERROR(ReadRequested(request, out));
  KEELSON_ASSIGN_OR_RETURN(std::string data_dir, GetString(*ipam, "dataDir"));
  out.data_dir = (data_dir.empty() ? "/var/lib/cni/networks" : data_dir) + "/" + request.network;
  KEELSON_ASSIGN_OR_RETURN(out.resolv_conf, GetString(*ipam, "resolvConf"));
  return out;
}

Outcome<Dns> ReadResolvConf(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  Dns dns;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find_first_of("#;")));
    std::string keyword, word;
    words >> keyword;
    if (keyword == "search") dns.search.clear();
    while (words >> word) {
      if (keyword == "nameserver") dns.nameservers.push_back(word);
      if (keyword == "search") dns.search.push_back(word);
      if (keyword == "options") dns.options.push_back(word);
      if (keyword == "domain") dns.domain = word;
    }
  }
  return dns;
}

}  // namespace keelson::cni
