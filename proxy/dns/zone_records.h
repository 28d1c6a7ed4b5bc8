// What the zone takes from API objects' fields.
#pragma once

#include <string>

#include "lib/base/ip.h"

namespace keelson::api::discovery::v1 {
class EndpointSlice;
}

namespace keelson::proxy::dns {

// namespace/name of the Service that a slice of addresses belongs to; empty: none.
std::string ServiceOfSlice(const api::discovery::v1::EndpointSlice& slice);
// The label of an endpoint without a hostname: "10-1-2-3", "fd00--7".
std::string DashedAddress(const IpAddress& ip);

}  // namespace keelson::proxy::dns
