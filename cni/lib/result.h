// The result of ADD, independent of the version that it is written in.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "cni/lib/error.h"
#include "lib/base/ip.h"

namespace keelson::cni {

// Supported configuration versions; the last is the newest.
const std::vector<std::string>& SupportedVersions();
bool IsSupported(std::string_view version);

struct Interface {
  std::string name, mac;
  std::string sandbox;  // path of the network namespace; empty: the host's
  int mtu = 0;          // written from 1.1.0 on, like the two below
  std::string socket_path, pci_id;
};

struct IpConfig {
  IpPrefix address;
  std::optional<IpAddress> gateway;
  std::optional<int> interface;  // index into interfaces
};

struct RouteConfig {
  IpPrefix destination;
  std::optional<IpAddress> gateway;
  int mtu = 0, advmss = 0, priority = 0, table = 0;  // written from 1.1.0 on
  std::optional<int> scope;
};

struct Dns {
  std::vector<std::string> nameservers, search, options;
  std::string domain;
  bool empty() const { return nameservers.empty() && search.empty() && options.empty() && domain.empty(); }
};

struct AddResult {
  std::vector<Interface> interfaces;
  std::vector<IpConfig> ips;
  std::vector<RouteConfig> routes;
  Dns dns;
};

boost::json::object ToJson(const AddResult& result, std::string_view version);
// Parses a result of any supported version.
Outcome<AddResult> ParseResult(const boost::json::object& json);
Outcome<RouteConfig> ParseRoute(const boost::json::object& json);
Outcome<Dns> ParseDns(const boost::json::object& json);

}  // namespace keelson::cni
