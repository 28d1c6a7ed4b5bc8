#include "lib/dataplane/nftables_elements.h"

#include <gtest/gtest.h>

#include "lib/dataplane/ebpf_maps.h"
#include "lib/dataplane/nftables_sets.h"

namespace keelson::dataplane {
namespace {

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }

TEST(NftablesElements, ReadAsWritten) {
  for (const ServiceAddress& service :
       {ServiceAddress{Ip("10.96.0.1"), 6, 443}, ServiceAddress{Ip("fd96::1"), 17, 53},
        ServiceAddress{std::nullopt, 132, 30080}}) {
    const bool v4 = !service.ip || service.ip->is_v4(), node_port = !service.ip;
    const std::string key = ServiceElement(service);
    EXPECT_EQ(key.size(), nft::WidthOf(SetOf(node_port ? kNodePorts : kServices, v4).key));
    EXPECT_EQ(DecodeElement(key, v4, node_port).service, service);
    const std::string endpoint = EndpointElement(key, 0x10003);
    EXPECT_EQ(endpoint.size(), nft::WidthOf(SetOf(node_port ? kNodePortEndpoints : kEndpoints, v4).key));
    const DecodedElement decoded = DecodeElement(endpoint, v4, node_port);
    EXPECT_EQ(decoded.service, service);
    EXPECT_EQ(decoded.slot, 0x10003u);
  }
  for (const char* ip : {"10.1.0.1", "fd01::1"}) {
    const EndpointAddress address{Ip(ip), 8443};
    const std::string data = EndpointData(address);
    EXPECT_EQ(data.size(), nft::WidthOf(SetOf(kEndpoints, address.ip.is_v4()).data));
    EXPECT_EQ(DecodeEndpointData(data, address.ip.is_v4()), address);
  }
}

TEST(NftablesElements, WhatIsCutShortIsZero) {
  EXPECT_EQ(DecodeElement("", true, false).service, (ServiceAddress{IpAddress(), 0, 0}));
  EXPECT_EQ(DecodeEndpointData("", false).port, 0);
}

TEST(NftablesSets, SlotsOfLocalEndpointsBeginWhereThoseOfEbpfDo) {
  EXPECT_EQ(kFirstLocalSlot, static_cast<uint32_t>(KP_FIRST_LOCAL_SLOT));
}

}  // namespace
}  // namespace keelson::dataplane
