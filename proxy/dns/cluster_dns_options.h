// Settings of the cluster's DNS, and their syntax in flags.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/ip.h"

namespace keelson::proxy::dns {

struct Listen {
  IpAddress ip;
  uint16_t port = 53;  // 0: any, where one is bound
};

using StubDomain = std::pair<std::string, std::vector<Listen>>;  // a suffix and its servers

struct ClusterDnsOptions {
  std::vector<IpAddress> addresses;  // empty: no DNS
  uint16_t port = 53;
  std::string domain = "cluster.local";
  std::string resolv_conf = "/etc/resolv.conf";  // the node's own servers
  std::vector<StubDomain> stub_domains;
  std::chrono::milliseconds patience =
      std::chrono::seconds(5);  // with the API, before other names are answered
};

// "10.96.0.10" or "10.96.0.10,fd00:10:96::a": at most one of each family. kInvalid otherwise.
Result<std::vector<IpAddress>> ParseDnsAddresses(std::string_view text);
// "corp.example=10.0.0.53,[fd00::53]:5353". kInvalid otherwise.
Result<StubDomain> ParseStubDomain(std::string_view text);

}  // namespace keelson::proxy::dns
