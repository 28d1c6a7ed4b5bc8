// The fields of API objects that the zone needs, and their packed form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/dns/zone/zone.h"

namespace keelson::proxy::dns {

struct ServiceFacts {
  std::vector<IpAddress> cluster_ips;
  std::vector<PortName> ports;
  bool headless = false;
  Name external;
};
struct SliceEndpoint {
  std::string hostname;  // may be empty
  IpAddress ip;
};
struct SliceFacts {
  std::vector<PortName> ports;
  std::vector<SliceEndpoint> endpoints;  // ready ones
};
ServiceFacts FactsOf(const api::core::v1::Service& service);
SliceFacts FactsOf(const api::discovery::v1::EndpointSlice& slice);

// A short form: equal facts have equal bytes. Unpack only takes the result of Pack.
std::string Pack(const ServiceFacts& facts);
std::string Pack(const SliceFacts& facts);
ServiceFacts UnpackService(std::string_view packed);
SliceFacts UnpackSlice(std::string_view packed);

// namespace/name of the Service that a slice of addresses belongs to; empty: none.
std::string ServiceOfSlice(const api::discovery::v1::EndpointSlice& slice);
// The label of an endpoint without a hostname: "10-1-2-3", "fd00--7".
std::string DashedAddress(const IpAddress& ip);

}  // namespace keelson::proxy::dns
