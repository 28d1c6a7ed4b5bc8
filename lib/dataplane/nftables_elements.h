// Keys and data of elements in kube-proxy's nftables sets (nftables_sets.h), from addresses and back. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "lib/dataplane/addresses.h"
#include "lib/nft/model.h"

namespace keelson::dataplane {

// addr . proto . port, or for a NodePort proto . port.
std::string ServiceElement(const ServiceAddress& service);
// `service` as ServiceElement() gives it, with a slot: a key of endpoints or nodeport-endpoints.
std::string EndpointElement(const std::string& service, uint32_t slot);
// The datum of these: addr . port.
std::string EndpointData(const EndpointAddress& endpoint);

// What a key says. `node_port`: of a set without addresses.
struct DecodedElement {
  ServiceAddress service;
  uint32_t slot = 0;  // 0 where the set has none
};
// Parts that are missing are zero.
DecodedElement DecodeElement(const std::string& key, bool v4, bool node_port);
EndpointAddress DecodeEndpointData(const std::string& data, bool v4);

}  // namespace keelson::dataplane
