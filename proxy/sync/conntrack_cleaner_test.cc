#include "proxy/sync/conntrack_cleaner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::proxy {
namespace {

using ::testing::ElementsAre;

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }

ResolvedPort Dns(std::initializer_list<const char*> backends) {
  ResolvedPort port;
  port.service = {.name = "kube-system/dns:dns",
                  .protocol = kUdp,
                  .cluster_ip = Ip("10.96.0.10"),
                  .port = 53,
                  .node_port = 30053};
  for (const char* ip : backends) port.serving.push_back({Ip(ip), 5353});
  return port;
}

netlink::Flow Flow(const char* to, uint16_t port, const char* replier, uint16_t replier_port) {
  return {.protocol = kUdp,
          .source = Ip("10.1.0.9"),
          .destination = Ip(to),
          .replier = Ip(replier),
          .source_port = 4000,
          .destination_port = port,
          .replier_port = replier_port,
          .tuple = std::string(to) + "->" + replier};
}

std::vector<std::string> Names(const std::vector<netlink::Flow>& flows) {
  std::vector<std::string> out;
  for (const auto& flow : flows) out.push_back(flow.tuple);
  return out;
}

TEST(ConntrackCleaner, FlowsMustLeadToEndpointsOfTheService) {
  ConntrackCleaner cleaner;
  cleaner.SetNodeIps({Ip("172.30.0.1")});
  std::vector<netlink::Flow> flows = {
      Flow("10.96.0.10", 53, "10.1.0.1", 5353),  // a living endpoint
      Flow("10.96.0.10", 53, "10.1.0.2", 5353),  // one that has gone
      Flow("10.96.0.10", 53, "10.96.0.10", 53),  // never translated
      Flow("10.96.0.11", 53, "10.1.0.2", 5353),  // another Service
      Flow("172.30.0.1", 30053, "10.1.0.2", 5353),
      Flow("172.30.0.9", 30053, "172.30.0.9", 30053)};  // somebody else's port of that number
  EXPECT_FALSE(cleaner.NeedsLook());
  cleaner.SetService("kube-system/dns", {Dns({"10.1.0.1"})});
  EXPECT_TRUE(cleaner.NeedsLook());
  EXPECT_THAT(Names(cleaner.TakeStale(flows)),
              ElementsAre("10.96.0.10->10.1.0.2", "10.96.0.10->10.96.0.10", "172.30.0.1->10.1.0.2"));
  EXPECT_FALSE(cleaner.NeedsLook());
  cleaner.SetService("kube-system/dns", {Dns({"10.1.0.1"})});
  EXPECT_FALSE(cleaner.NeedsLook());
  // Nobody answers any more, or nobody asks: what is left of flows does no harm.
  cleaner.SetService("kube-system/dns", {Dns({})});
  EXPECT_FALSE(cleaner.NeedsLook());
  cleaner.SetService("kube-system/dns", {Dns({"10.1.0.2"})});
  EXPECT_THAT(Names(cleaner.TakeStale(flows)), ElementsAre("10.96.0.10->10.1.0.1", "10.96.0.10->10.96.0.10"));
}

TEST(ConntrackCleaner, TcpLooksAfterItself) {
  ConntrackCleaner cleaner;
  ResolvedPort port = Dns({"10.1.0.1"});
  port.service.protocol = kTcp;
  cleaner.SetService("a/b", {port});
  EXPECT_FALSE(cleaner.NeedsLook());
}

}  // namespace
}  // namespace keelson::proxy
