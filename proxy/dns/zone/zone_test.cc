#include "proxy/dns/zone/zone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/types.h"
#include "proxy/dns/testing/messages.h"
#include "proxy/dns/zone/answer.h"

namespace keelson::proxy::dns {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

corev1::Service MakeService(const std::string& name, const std::string& type, std::vector<std::string> ips) {
  corev1::Service out;
  out.mutable_metadata()->set_namespace_("default");
  out.mutable_metadata()->set_name(name);
  out.mutable_spec()->set_type(type);
  if (!ips.empty()) out.mutable_spec()->set_cluster_ip(ips[0]);
  for (const std::string& ip : ips) out.mutable_spec()->add_cluster_ips(ip);
  return out;
}

void AddPort(corev1::Service& service, const std::string& name, int number,
             const std::string& protocol = "TCP") {
  auto& port = *service.mutable_spec()->add_ports();
  port.set_name(name);
  port.set_port(number);
  port.set_protocol(protocol);
}

struct EndpointSpec {
  std::string ip, hostname;
  bool ready = true;
};

discoveryv1::EndpointSlice MakeSlice(const std::string& service, const std::vector<EndpointSpec>& endpoints,
                                     const std::string& type = "IPv4") {
  discoveryv1::EndpointSlice out;
  out.mutable_metadata()->set_namespace_("default");
  (*out.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = service;
  out.set_address_type(type);
  auto& port = *out.add_ports();
  port.set_name("http");
  port.set_port(8080);
  port.set_protocol("TCP");
  for (const EndpointSpec& e : endpoints) {
    auto& added = *out.add_endpoints();
    added.add_addresses(e.ip);
    if (!e.hostname.empty()) added.set_hostname(e.hostname);
    added.mutable_conditions()->set_ready(e.ready);
  }
  return out;
}

class ZoneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto web = MakeService("web", "ClusterIP", {"10.96.0.10", "fd96::10"});
    AddPort(web, "http", 80);
    AddPort(web, "dns", 53, "UDP");
    Set(web);
    Set(MakeService("db", "ClusterIP", {"None"}));
    SetSlice("db-1", MakeSlice("db", {{"10.1.0.1", "db-0"}, {"10.1.0.2", ""}, {"10.1.0.3", "db-2", false}}));
    SetSlice("db-2", MakeSlice("db", {{"fd01::1", "db-0"}}, "IPv6"));
    Set(MakeService("empty", "ClusterIP", {"None"}));
    SetExternal("out", "www.Example.com.");
    SetExternal("alias", "web.default.svc.cluster.local");
    SetExternal("dangling", "nothing.default.svc.cluster.local");
    SetExternal("address", "192.0.2.1");
    SetExternal("self", "self.default.svc.cluster.local");
    snapshot_ = zone_.Commit();
  }

  void Set(const corev1::Service& service) {
    zone_.UpdateService("default/" + service.metadata().name(), &service);
  }
  void SetSlice(const std::string& name, const discoveryv1::EndpointSlice& slice) {
    zone_.UpdateSlice("default/" + name, &slice);
  }
  void SetExternal(const std::string& name, const std::string& target) {
    auto service = MakeService(name, "ExternalName", {});
    service.mutable_spec()->set_external_name(target);
    Set(service);
  }

  Decoded Ask(const std::string& name, uint16_t type, uint32_t turn = 0) {
    std::string packet = QueryPacket(name, type, {.edns = true});
    Query query;
    Rcode rcode;
    EXPECT_EQ(ParseQuery(packet, query, rcode), Parsed::kQuery);
    char buffer[1232];
    AnswerWriter writer(query, buffer, sizeof buffer);
    last_ = AnswerFromZone(*snapshot_, query, turn, writer);
    Decoded out = Decode({buffer, writer.Finish(last_.rcode, true)});
    EXPECT_TRUE(out.valid) << name;
    return out;
  }

  Zone zone_ = *Zone::Create({.own_ips = {*IpAddress::Parse("10.96.0.2")}});
  std::shared_ptr<const Snapshot> snapshot_;
  ZoneAnswer last_;
};

TEST_F(ZoneTest, EndpointsWithoutPortsHaveAddresses) {
  auto slice = MakeSlice("db", {{"10.1.0.9", "db-9"}});
  slice.clear_ports();
  SetSlice("db-3", slice);
  snapshot_ = zone_.Commit();
  EXPECT_EQ(Ask("db.default.svc.cluster.local", kTypeA).answer.size(), 3U);
  EXPECT_EQ(Ask("db-9.db.default.svc.cluster.local", kTypeA).answer.size(), 1U);
}

constexpr char kSoa[] =
    "cluster.local. 5 SOA ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 5";

TEST_F(ZoneTest, Answers) {
  struct Case {
    const char* name;
    uint16_t type;
    std::vector<std::string> answer;
  };
  const std::string svc = ".default.svc.cluster.local. 5 ";
  for (const Case& c : std::vector<Case>{
           {"WEB.default.svc.Cluster.Local", kTypeA, {"WEB.default.svc.Cluster.Local. 5 A 10.96.0.10"}},
           {"web.default.svc.cluster.local", kTypeAaaa, {"web" + svc + "AAAA fd96::10"}},
           {"db.default.svc.cluster.local", kTypeA, {"db" + svc + "A 10.1.0.1", "db" + svc + "A 10.1.0.2"}},
           {"db.default.svc.cluster.local", kTypeAaaa, {"db" + svc + "AAAA fd01::1"}},
           {"db-0.db.default.svc.cluster.local", kTypeA, {"db-0.db" + svc + "A 10.1.0.1"}},
           {"db-0.db.default.svc.cluster.local", kTypeAaaa, {"db-0.db" + svc + "AAAA fd01::1"}},
           {"10-1-0-2.db.default.svc.cluster.local", kTypeA, {"10-1-0-2.db" + svc + "A 10.1.0.2"}},
           {"_http._tcp.web.default.svc.cluster.local",
            kTypeSrv,
            {"_http._tcp.web" + svc + "SRV 0 100 80 web.default.svc.cluster.local."}},
           {"_http._tcp.web.default.svc.cluster.local", kTypeA, {"_http._tcp.web" + svc + "A 10.96.0.10"}},
           {"web.default.svc.cluster.local",
            kTypeSrv,
            {"web" + svc + "SRV 0 50 80 web.default.svc.cluster.local.",
             "web" + svc + "SRV 0 50 53 web.default.svc.cluster.local."}},
           {"_http._tcp.db.default.svc.cluster.local",
            kTypeSrv,
            {"_http._tcp.db" + svc + "SRV 0 50 8080 db-0.db.default.svc.cluster.local.",
             "_http._tcp.db" + svc + "SRV 0 50 8080 10-1-0-2.db.default.svc.cluster.local."}},
           {"10-2-3-4.default.pod.cluster.local",
            kTypeA,
            {"10-2-3-4.default.pod.cluster.local. 5 A 10.2.3.4"}},
           {"fd00--7.any.pod.cluster.local", kTypeAaaa, {"fd00--7.any.pod.cluster.local. 5 AAAA fd00::7"}},
           {"10.0.96.10.IN-ADDR.arpa",
            kTypePtr,
            {"10.0.96.10.IN-ADDR.arpa. 5 PTR web.default.svc.cluster.local."}},
           {"dns-version.cluster.local", kTypeTxt, {"dns-version.cluster.local. 28800 TXT \"1.1.0\""}},
           {"cluster.local", kTypeSoa, {kSoa}},
           {"cluster.local", kTypeNs, {"cluster.local. 5 NS ns.dns.cluster.local."}},
           {"ns.dns.cluster.local", kTypeA, {"ns.dns.cluster.local. 5 A 10.96.0.2"}},
           {"out.default.svc.cluster.local", kTypeA, {"out" + svc + "CNAME www.example.com."}},
           {"out.default.svc.cluster.local", kTypeCname, {"out" + svc + "CNAME www.example.com."}},
           {"alias.default.svc.cluster.local",
            kTypeA,
            {"alias" + svc + "CNAME web.default.svc.cluster.local.", "web" + svc + "A 10.96.0.10"}},
           {"web.default.svc.cluster.local",
            kTypeAny,
            {"web.default.svc.cluster.local. 8482 HINFO \"RFC8482\" \"\""}},
       }) {
    EXPECT_THAT(Ask(c.name, c.type).answer, testing::UnorderedElementsAreArray(c.answer)) << c.name;
  }
}

TEST_F(ZoneTest, PointsBack) {
  for (const char* unknown :
       {"9.9.9.9.in-addr.arpa", "9.9.9.in-addr.arpa", "1.9.9.9.9.in-addr.arpa", "010.0.96.10.in-addr.arpa",
        "256.0.0.1.in-addr.arpa", "a.0.96.10.in-addr.arpa"}) {
    Ask(unknown, kTypePtr);
    EXPECT_EQ(last_.kind, ZoneAnswer::kNotMine) << unknown;
  }
  Decoded other_type = Ask("10.0.96.10.in-addr.arpa", kTypeA);
  EXPECT_THAT(other_type.answer, IsEmpty());
  EXPECT_EQ(other_type.authority.size(), 1u);
  EXPECT_THAT(Ask("1.0.1.10.in-addr.arpa", kTypePtr).answer,
              ElementsAre("1.0.1.10.in-addr.arpa. 5 PTR db-0.db.default.svc.cluster.local."));
  // Without a hostname there is no PTR.
  Ask("2.0.1.10.in-addr.arpa", kTypePtr);
  EXPECT_EQ(last_.kind, ZoneAnswer::kNotMine);
  std::string v6 = "0.1.0.0";
  for (int i = 0; i < 24; ++i) v6 += ".0";
  EXPECT_THAT(Ask(v6 + ".6.9.d.f.ip6.arpa", kTypePtr).answer,
              ElementsAre(v6 + ".6.9.d.f.ip6.arpa. 5 PTR web.default.svc.cluster.local."));
}

TEST_F(ZoneTest, TellsNoNameFromNoData) {
  struct Case {
    const char* name;
    uint16_t type;
    const char* rcode;
  };
  for (const Case& c : std::vector<Case>{
           {"web.default.svc.cluster.local", kTypeTxt, "NOERROR"},
           {"none.default.svc.cluster.local", kTypeA, "NXDOMAIN"},
           {"empty.default.svc.cluster.local", kTypeA, "NXDOMAIN"},
           {"address.default.svc.cluster.local", kTypeA, "NXDOMAIN"},
           {"db-2.db.default.svc.cluster.local", kTypeA, "NXDOMAIN"},  // not ready
           {"_tcp.web.default.svc.cluster.local", kTypeSrv, "NOERROR"},
           {"_sctp.web.default.svc.cluster.local", kTypeSrv, "NXDOMAIN"},
           {"_http._udp.web.default.svc.cluster.local", kTypeSrv, "NXDOMAIN"},
           {"a._http._tcp.web.default.svc.cluster.local", kTypeSrv, "NXDOMAIN"},
           {"a.b.c.d.e.f.g.svc.cluster.local", kTypeA, "NXDOMAIN"},
           {"default.svc.cluster.local", kTypeA, "NOERROR"},
           {"other.svc.cluster.local", kTypeA, "NXDOMAIN"},
           {"svc.cluster.local", kTypeA, "NOERROR"},
           {"pod.cluster.local", kTypeA, "NOERROR"},
           {"dns.cluster.local", kTypeA, "NOERROR"},
           {"cluster.local", kTypeA, "NOERROR"},
           {"x.cluster.local", kTypeA, "NXDOMAIN"},
           {"default.pod.cluster.local", kTypeA, "NOERROR"},
           {"10-1-1.default.pod.cluster.local", kTypeA, "NXDOMAIN"},
           {"10-1-1-1.default.pod.cluster.local", kTypeAaaa, "NOERROR"},
           {"a.10-1-1-1.default.pod.cluster.local", kTypeA, "NXDOMAIN"},
       }) {
    Decoded out = Ask(c.name, c.type);
    EXPECT_EQ(out.rcode, c.rcode) << c.name;
    EXPECT_THAT(out.answer, IsEmpty()) << c.name;
    EXPECT_THAT(out.authority, ElementsAre(kSoa)) << c.name;
  }
}

TEST_F(ZoneTest, FollowsAliases) {
  Decoded dangling = Ask("dangling.default.svc.cluster.local", kTypeA);
  EXPECT_EQ(dangling.rcode, "NXDOMAIN");
  EXPECT_EQ(dangling.answer.size(), 1u);
  EXPECT_THAT(dangling.authority, ElementsAre(kSoa));
  EXPECT_EQ(Ask("self.default.svc.cluster.local", kTypeA).rcode, "SERVFAIL");
  Ask("out.default.svc.cluster.local", kTypeAaaa);
  EXPECT_EQ(last_.kind, ZoneAnswer::kChase);
  EXPECT_EQ(NameText(last_.target), "www.example.com.");
  Ask("www.example.com", kTypeA);
  EXPECT_EQ(last_.kind, ZoneAnswer::kNotMine);
}

TEST_F(ZoneTest, GivesAddressesWithServers) {
  EXPECT_THAT(Ask("_http._tcp.web.default.svc.cluster.local", kTypeSrv).additional,
              ElementsAre("web.default.svc.cluster.local. 5 A 10.96.0.10",
                          "web.default.svc.cluster.local. 5 AAAA fd96::10"));
  EXPECT_EQ(Ask("db.default.svc.cluster.local", kTypeSrv).additional.size(), 3u);
}

TEST_F(ZoneTest, TakesTurns) {
  auto first = Ask("db.default.svc.cluster.local", kTypeA, 0).answer;
  auto second = Ask("db.default.svc.cluster.local", kTypeA, 1).answer;
  ASSERT_EQ(first.size(), 2u);
  EXPECT_THAT(second, ElementsAre(first[1], first[0]));
}

TEST_F(ZoneTest, FollowsChanges) {
  auto before = snapshot_;
  EXPECT_EQ(zone_.Commit(), nullptr);
  SetSlice("db-1", MakeSlice("db", {{"10.1.0.1", "db-0"}, {"10.1.0.2", ""}, {"10.1.0.3", "db-2"}}));
  zone_.UpdateService("default/web", nullptr);
  snapshot_ = zone_.Commit();
  ASSERT_NE(snapshot_, nullptr);
  EXPECT_EQ(Ask("db-2.db.default.svc.cluster.local", kTypeA).rcode, "NOERROR");
  EXPECT_EQ(Ask("web.default.svc.cluster.local", kTypeA).rcode, "NXDOMAIN");
  Ask("10.0.96.10.in-addr.arpa", kTypePtr);
  EXPECT_EQ(last_.kind, ZoneAnswer::kNotMine);
  EXPECT_EQ(Ask("3.0.1.10.in-addr.arpa", kTypePtr).answer.size(), 1u);
  // Slices and Services that are equal change nothing; what readers hold stays.
  SetSlice("db-2", MakeSlice("db", {{"fd01::1", "db-0"}}, "IPv6"));
  EXPECT_EQ(zone_.Commit(), nullptr);
  snapshot_ = before;
  EXPECT_EQ(Ask("web.default.svc.cluster.local", kTypeA).rcode, "NOERROR");
  EXPECT_EQ(Ask("db-2.db.default.svc.cluster.local", kTypeA).rcode, "NXDOMAIN");
}

TEST_F(ZoneTest, ForgetsNamespaces) {
  for (const char* name : {"web", "db", "empty", "out", "alias", "dangling", "address", "self"}) {
    zone_.UpdateService(std::string("default/") + name, nullptr);
  }
  snapshot_ = zone_.Commit();
  EXPECT_EQ(Ask("default.svc.cluster.local", kTypeA).rcode, "NXDOMAIN");
}

TEST_F(ZoneTest, KeepsSlicesOfServicesToCome) {
  SetSlice("late-1", MakeSlice("late", {{"10.1.9.9", ""}}));
  snapshot_ = zone_.Commit();
  Set(MakeService("late", "ClusterIP", {"None"}));
  snapshot_ = zone_.Commit();
  EXPECT_THAT(Ask("late.default.svc.cluster.local", kTypeA).answer,
              ElementsAre("late.default.svc.cluster.local. 5 A 10.1.9.9"));
}

TEST(ZoneCreateTest, RefusesDomains) {
  for (const std::string& bad :
       {std::string(""), std::string("."), std::string("a..b"), std::string(70, 'x')}) {
    EXPECT_FALSE(Zone::Create({.domain = bad})) << bad;
  }
}

}  // namespace
}  // namespace keelson::proxy::dns
