#include "lib/nft/diff.h"

#include <gtest/gtest.h>

#include "lib/nft/text.h"

namespace keelson::nft {
namespace {

TEST(Text, ReadsLikeWhatItDoes) {
  Rule rule("pick-3");
  rule.Load(0, Field::kIpDaddr).Load(1, Field::kL4Proto).Load(2, Field::kDestinationPort).Random(3, 3);
  rule.Map(0, "endpoints", 0).Dnat(Family::kIpv4, 0, 1);
  EXPECT_EQ(ToText(rule),
            "r0 = ip daddr; r1 = meta l4proto; r2 = th dport; r3 = numgen random mod 3; r0 = @endpoints[r0]; "
            "dnat r0 port r1");
  Set set{.name = "services",
          .key = {Type::kIpv6Addr, Type::kInetProto, Type::kInetService},
          .data = {Type::kMark}};
  EXPECT_EQ(ToText(set), "map services { type ipv6_addr . inet_proto . inet_service : mark }");
  Element element{.key = Key().Ip(*IpAddress::Parse("fd00::1")).Proto(17).Port(53).bytes(),
                  .data = Key().Mark(7).bytes()};
  EXPECT_EQ(ToText(set, element), "fd00::1 . udp . 53 : 7");
}

TEST(Rule, FingerprintFollowsTheText) {
  Rule a("x"), b("x"), c("x");
  a.Load(0, Field::kMark).VerdictMap(0, "m");
  b.Load(0, Field::kMark).VerdictMap(0, "m");
  c.Load(1, Field::kMark).VerdictMap(1, "m");
  EXPECT_EQ(a.Fingerprint(), b.Fingerprint());
  EXPECT_NE(a.Fingerprint(), c.Fingerprint());
}

TEST(Diff, TouchesOnlyWhatDiffers) {
  Set set{.name = "s", .key = {Type::kMark}, .data = {Type::kMark}};
  auto element = [](uint32_t key, uint32_t data) {
    return Element{.key = Key().Mark(key).bytes(), .data = Key().Mark(data).bytes()};
  };
  Ruleset found{.table = {Family::kIpv4, "t"}};
  found.sets["s"].set = set;
  for (const Element& e : {element(1, 1), element(2, 2), element(3, 3)}) found.sets["s"].elements[e.key] = e;
  Ruleset wanted = found;
  wanted.sets["s"].elements.erase(element(1, 1).key);
  wanted.sets["s"].elements[element(2, 9).key] = element(2, 9);
  wanted.sets["s"].elements[element(4, 4).key] = element(4, 4);
  Transaction diff = Diff(found, wanted);
  ASSERT_EQ(diff.ops().size(), 2u);
  EXPECT_EQ(std::get<op::DeleteElements>(diff.ops()[0]).elements.size(), 2u);
  EXPECT_EQ(std::get<op::AddElements>(diff.ops()[1]).elements.size(), 2u);
  EXPECT_TRUE(Diff(wanted, wanted).empty());
}

}  // namespace
}  // namespace keelson::nft
