// Addresses that keys and values of kube-proxy's sets and maps stand for.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "lib/base/ip.h"

namespace keelson::dataplane {

// Where clients connect to.
struct ServiceAddress {
  std::optional<IpAddress> ip;  // nullopt: a NodePort
  uint8_t protocol = 0;         // IPPROTO_*; 0, and port 0: all other ports of a cluster IP
  uint16_t port = 0;
  auto operator<=>(const ServiceAddress&) const = default;
};

// Where they are sent to.
struct EndpointAddress {
  IpAddress ip;
  uint16_t port = 0;
  auto operator<=>(const EndpointAddress&) const = default;
};

}  // namespace keelson::dataplane
