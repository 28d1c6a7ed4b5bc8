// For tests: ports of Services by their addresses.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "proxy/model/service_port.h"

namespace keelson::proxy::nftables {

inline IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

inline std::vector<Backend> Backends(std::initializer_list<const char*> ips) {
  std::vector<Backend> out;
  for (std::string ip : ips) {
    bool local = ip.back() == '*';
    if (local) ip.pop_back();
    out.push_back({Ip(ip), 8080, local});
  }
  std::sort(out.begin(), out.end());
  return out;
}

inline ResolvedPort Port(const char* cluster_ip, std::initializer_list<const char*> backends) {
  ResolvedPort out;
  out.service = {.name = "default/web:http", .cluster_ip = Ip(cluster_ip), .port = 80};
  out.cluster = Backends(backends);
  out.has_endpoints = !out.cluster.empty();
  return out;
}

}  // namespace keelson::proxy::nftables
