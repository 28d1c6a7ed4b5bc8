#include "lib/nft/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "lib/nft/diff.h"

namespace keelson::nft {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }
uint32_t AllUnicast(const IpAddress&) { return 1; }

const Set kVips{.name = "vips", .key = {Type::kIpv4Addr, Type::kInetProto, Type::kInetService}};
const Set kEndpoints{.name = "endpoints",
                     .key = {Type::kIpv4Addr, Type::kInetProto, Type::kInetService, Type::kMark},
                     .data = {Type::kIpv4Addr, Type::kInetService}};
const Set kRanges{.name = "ranges", .key = {Type::kIpv4Addr, Type::kInetService}, .interval = true};
const Set kVerdicts{.name = "verdicts", .key = {Type::kInetService}, .verdicts = true};

// 10.0.0.1:80 leads to two endpoints; 10.0.0.1:81 is in the set, but has none. Marked packets are
// masqueraded; port 22 is rejected, as is 1000-2000 from 10.9.0.0/16, and a verdict map drops 23.
Ruleset Service() {
  Ruleset out{.table = {Family::kIpv4, "proxy"}};
  auto add = [&](const Rule& rule) { out.chains[rule.chain()].rules.push_back(rule); };
  auto base = [&](const char* name, HookType type, HookPoint point, int priority) {
    out.chains[name].chain = {.name = name, .hook = Hook{type, point, priority}};
  };
  base("filter", HookType::kFilter, HookPoint::kPrerouting, -110);
  base("nat", HookType::kNat, HookPoint::kPrerouting, -100);
  base("nat-later", HookType::kNat, HookPoint::kPrerouting, -50);
  base("post", HookType::kNat, HookPoint::kPostrouting, 100);
  for (const char* name : {"dispatch", "pick", "reject"}) out.chains[name].chain.name = name;
  add(Rule("filter").Load(0, Field::kDestinationPort).VerdictMap(0, "verdicts"));
  add(Rule("filter")
          .Load(0, Field::kIpSaddr)
          .Load(1, Field::kDestinationPort)
          .InSet(0, "ranges")
          .Finish(Goto("reject")));
  add(Rule("reject").Load(0, Field::kL4Proto).Equal(0, Key().Proto(6).bytes()).RejectTcpReset());
  add(Rule("reject").RejectUnreachable());
  add(Rule("nat").Finish(Jump("dispatch")));
  Rule enter("dispatch");
  enter.Load(0, Field::kIpDaddr).Load(1, Field::kL4Proto).Load(2, Field::kDestinationPort);
  add(enter.InSet(0, "vips").Finish(Goto("pick")));
  Rule foreign("pick");
  foreign.Load(0, Field::kIpSaddr).Mask(0, std::string("\xff\0\0\0", 4), std::string(4, '\0'));
  add(foreign.NotEqual(0, std::string("\x0a\0\0\0", 4)).MarkBits(0x4000));
  Rule pick("pick");
  pick.Load(0, Field::kIpDaddr).Load(1, Field::kL4Proto).Load(2, Field::kDestinationPort).Random(3, 2);
  add(pick.Map(0, "endpoints", 0).Dnat(Family::kIpv4, 0, 1));
  add(Rule("nat-later").Load(0, Field::kDestinationPort).Equal(0, Key().Port(8080).bytes()).MarkBits(0x8000));
  add(Rule("post").AnyBit(Field::kMark, 0x4000).UnmarkBits(0x4000).Masquerade());

  for (const Set& set : {kVips, kEndpoints, kRanges, kVerdicts}) out.sets[set.name].set = set;
  auto element = [&](const Set& set, Element e) { out.sets[set.name].elements[e.key] = e; };
  Key vip = Key().Ip(Ip("10.0.0.1")).Proto(6).Port(80);
  element(kVips, {.key = vip.bytes()});
  element(kVips, {.key = Key().Ip(Ip("10.0.0.1")).Proto(6).Port(81).bytes()});
  for (uint32_t slot : {0u, 1u}) {
    element(kEndpoints, {.key = Key(vip).Mark(slot).bytes(),
                         .data = Key().Ip(Ip("10.1.0.1").Plus(slot)).Port(8080).bytes()});
  }
  element(kRanges, {.key = Key().Ip(Ip("10.9.0.0")).Port(1000).bytes(),
                    .key_end = Key().Ip(Ip("10.9.255.255")).Port(2000).bytes()});
  element(kVerdicts, {.key = Key().Port(22).bytes(), .verdict = Goto("reject")});
  element(kVerdicts, {.key = Key().Port(23).bytes(), .verdict = Verdict{Verdict::Kind::kDrop}});
  return out;
}

LiveTable Live(Ruleset ruleset) {
  LiveTable out;
  for (auto& [name, contents] : ruleset.chains) {
    for (const Rule& rule : contents.rules) out.programs[name].push_back({rule.exprs(), ""});
    contents.rules.clear();
  }
  out.contents = std::move(ruleset);
  return out;
}

Packet To(const char* ip, uint16_t port, const char* from = "10.2.0.1", uint8_t protocol = 6) {
  return {.source = Ip(from), .destination = Ip(ip), .protocol = protocol, .destination_port = port};
}

// "where: what" of each step.
std::vector<std::string> Steps(const TraceOutcome& outcome) {
  std::vector<std::string> out;
  for (const TraceStep& step : outcome.steps) out.push_back(step.chain + ": " + step.what);
  return out;
}

std::vector<std::string> Destinations(const std::vector<TraceOutcome>& outcomes) {
  std::vector<std::string> out;
  for (const TraceOutcome& outcome : outcomes) {
    out.push_back(outcome.packet.destination.ToString() + ":" +
                  std::to_string(outcome.packet.destination_port));
  }
  return out;
}

class TraceTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    tables_ = {Live(Service())};
    if (!GetParam()) return;
    // Again through the kernel: rules read back behave the same.
    auto netns = linux::NetNs::Make();
    if (!netns) GTEST_SKIP() << netns.error().message();
    auto kernel = OpenKernel(*netns);
    ASSERT_TRUE(kernel) << kernel.error().message();
    auto applied = (*kernel)->Apply(Diff(std::nullopt, Service()));
    ASSERT_TRUE(applied) << applied.error().message();
    tables_.clear();
    auto read = netns->Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(tables_, ReadLiveTables({Family::kInet, Family::kIpv4}));
      return {};
    });
    ASSERT_TRUE(read) << read.error().message();
    ASSERT_EQ(tables_.size(), 1u);
  }
  std::vector<TraceOutcome> At(HookPoint point, const Packet& packet) {
    return TraceHook(tables_, point, packet, AllUnicast);
  }
  std::vector<LiveTable> tables_;
};

TEST_P(TraceTest, EveryEndpointIsAWay) {
  auto out = At(HookPoint::kPrerouting, To("10.0.0.1", 80));
  EXPECT_THAT(Destinations(out), UnorderedElementsAre("10.1.0.1:8080", "10.1.0.2:8080"));
  for (const TraceOutcome& way : out) {
    EXPECT_EQ(way.end, TraceOutcome::kGoesOn);
    EXPECT_TRUE(way.packet.translated);
    EXPECT_EQ(way.packet.mark, 0u) << "the later NAT chain is not asked";
    EXPECT_THAT(way.not_understood, IsEmpty());
  }
  EXPECT_THAT(Steps(out[0]),
              ElementsAre("ip proxy nat: jump dispatch", "ip proxy dispatch: is in @vips",
                          "ip proxy dispatch: goto pick", HasSubstr("ip proxy pick: dnat to 10.1.0.")));
}

TEST_P(TraceTest, WhatNoRuleKnowsGoesOnAsItIs) {
  for (const Packet& packet : {To("10.0.0.2", 80), To("10.0.0.1", 80, "10.2.0.1", 17)}) {
    auto out = At(HookPoint::kPrerouting, packet);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_FALSE(out[0].packet.translated);
    EXPECT_THAT(Steps(out[0]), IsEmpty());
  }
}

TEST_P(TraceTest, AnEmptySlotEndsTheRuleOnly) {
  auto out = At(HookPoint::kPrerouting, To("10.0.0.1", 81));
  EXPECT_THAT(Destinations(out), ElementsAre("10.0.0.1:81"));  // one outcome, whichever number was drawn
}

TEST_P(TraceTest, MarksAndMasquerades) {
  auto out = At(HookPoint::kPrerouting, To("10.0.0.1", 80, "192.0.2.1"));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].packet.mark, 0x4000u);
  EXPECT_THAT(Steps(out[0]), Contains("ip proxy pick: marks"));
  auto after = At(HookPoint::kPostrouting, out[0].packet);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_TRUE(after[0].packet.source_translated);
  EXPECT_EQ(after[0].packet.mark, 0u);
  EXPECT_THAT(Steps(after[0]), ElementsAre("ip proxy post: takes a mark off", "ip proxy post: masquerade"));
}

TEST_P(TraceTest, Refusals) {
  struct {
    Packet packet;
    TraceOutcome::End end;
    const char* last;
  } cases[] = {
      {To("10.0.0.1", 23), TraceOutcome::kDropped, "drop"},
      {To("10.0.0.1", 22), TraceOutcome::kRejected, "reject with a TCP reset"},
      {To("10.0.0.1", 22, "10.2.0.1", 17), TraceOutcome::kRejected, "reject with port unreachable"},
      {To("10.0.0.1", 1500, "10.9.3.4"), TraceOutcome::kRejected, "reject with a TCP reset"},
      {To("10.0.0.1", 2001, "10.9.3.4"), TraceOutcome::kGoesOn, nullptr},
      {To("10.0.0.1", 1500, "10.10.3.4"), TraceOutcome::kGoesOn, nullptr},
  };
  for (const auto& c : cases) {
    auto out = At(HookPoint::kPrerouting, c.packet);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].end, c.end) << c.packet.destination_port;
    if (c.last) {
      EXPECT_EQ(out[0].steps.back().what, c.last);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, TraceTest, ::testing::Bool(),
                         [](const auto& made) { return made.param ? "FromTheKernel" : "AsWritten"; });

TEST(Trace, SaysWhatItDoesNotUnderstand) {
  LiveTable table = Live(Service());
  auto& rules = table.programs["filter"];
  rules.insert(rules.begin(), Program{{}, "[limit rate 5/second]; drop"});
  // The contents of a set with another program's types are unknown, for both lookups.
  for (bool negate : {false, true}) {
    Rule lookup("filter");
    negate ? lookup.NotInSet(0, "odd") : lookup.InSet(0, "odd");
    rules.push_back({lookup.Finish({Verdict::Kind::kDrop}).exprs(), ""});
  }
  table.contents.sets["odd"].set.name = "odd";
  auto out = TraceHook({table}, HookPoint::kPrerouting, To("10.0.0.9", 80), AllUnicast);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].end, TraceOutcome::kGoesOn);
  EXPECT_THAT(out[0].not_understood, ElementsAre("ip proxy filter: [limit rate 5/second]; drop",
                                                 "ip proxy filter: @odd", "ip proxy filter: @odd"));
}

// One table with the chain `base` at prerouting.
struct OneTable {
  OneTable() {
    table.contents.table = {Family::kIpv4, "t"};
    table.contents.chains["base"].chain = {.name = "base",
                                           .hook = Hook{HookType::kFilter, HookPoint::kPrerouting, 0}};
  }
  void Add(const Rule& rule) { table.programs[rule.chain()].push_back({rule.exprs(), ""}); }
  std::vector<TraceOutcome> Run() const {
    return TraceHook({table}, HookPoint::kPrerouting, To("10.0.0.9", 80), AllUnicast);
  }
  LiveTable table;
};

// However strange the rules are, no packet gets lost.
TEST(Trace, NoWayIsLost) {
  struct Case {
    const char* what;
    std::vector<Rule> rules;
    size_t ways;
    const char* not_understood;
  };
  const Case cases[] = {
      {"no rules", {}, 1, ""},
      {"a chain that is not there", {Rule("base").Finish(Jump("none"))}, 1, ""},
      {"to a chain that is not there", {Rule("base").Finish(Goto("none"))}, 1, ""},
      {"back from a base chain", {Rule("base").Finish({Verdict::Kind::kReturn})}, 1, ""},
      {"none of no numbers",
       {Rule("base").Random(0, 0).Finish({Verdict::Kind::kDrop})},
       1,
       "a number below 0"},
      {"one number", {Rule("base").Random(0, 1).Finish({Verdict::Kind::kDrop})}, 1, ""},
      {"more numbers than can be followed",
       {Rule("base").Random(0, 4000000000u).Finish({Verdict::Kind::kDrop})},
       1,
       "a number below 4000000000"},
      {"numbers on which nothing depends", {Rule("base").Random(0, 3), Rule("base").Random(0, 3)}, 1, ""},
      {"one of three numbers drops",
       {Rule("base").Random(0, 3).Equal(0, Key().Mark(1).bytes()).Finish({Verdict::Kind::kDrop})},
       2,
       ""},
      {"the last of three numbers drops",
       {Rule("base").Random(0, 3).Equal(0, Key().Mark(2).bytes()).Finish({Verdict::Kind::kDrop})},
       2,
       ""},
      {"two numbers in one rule",
       {Rule("base").Random(0, 2).Random(1, 2).Equal(1, Key().Mark(0).bytes()).Finish(Goto("x")),
        Rule("x").Finish({Verdict::Kind::kAccept})},
       3,
       ""},
      {"numbers in a chain that is jumped to",
       {Rule("base").Finish(Jump("x")), Rule("x").Random(0, 5).Finish(Jump("y"))},
       5,
       ""},
      {"in circles", {Rule("base").Finish(Goto("x")), Rule("x").Finish(Goto("x"))}, 1, "more jumps"},
      {"ever deeper", {Rule("base").Finish(Jump("x")), Rule("x").Finish(Jump("x"))}, 1, "more jumps"},
      {"registers that are not there",
       {Rule("base").Load(15, Field::kIp6Saddr).Map(14, "m", 15).Dnat(Family::kIpv4, 15, 16)},
       1,
       "@m"},
  };
  for (const Case& c : cases) {
    OneTable table;
    for (const Rule& rule : c.rules) table.Add(rule);
    std::vector<TraceOutcome> out = table.Run();
    EXPECT_EQ(out.size(), c.ways) << c.what;
    std::string said;
    for (const TraceOutcome& way : out) {
      for (const std::string& what : way.not_understood) said += what + "\n";
    }
    EXPECT_EQ(said.empty(), std::string_view(c.not_understood).empty()) << c.what << ": " << said;
    EXPECT_THAT(said, HasSubstr(c.not_understood)) << c.what;
  }
}

// As many chains as a large cluster has in iptables: the walk must not recurse.
TEST(Trace, ManyJumpsOneBehindTheOther) {
  OneTable table;
  for (int i = 0; i < 50000; ++i) table.Add(Rule("base").Finish(Jump("x")));
  table.Add(Rule("base").Finish({Verdict::Kind::kDrop}));
  table.Add(Rule("x").Load(0, Field::kDestinationPort).Equal(0, Key().Port(22).bytes()));
  auto out = table.Run();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].end, TraceOutcome::kDropped);
  EXPECT_THAT(Steps(out[0]), ElementsAre("ip t base: drop"));
}

// Rules in the kernel's form: iptables' comments do not matter, other matches appear as libnftnl prints
// them.
TEST(Trace, RulesOfIptables) {
  if (std::system("command -v iptables-nft >/dev/null") != 0) GTEST_SKIP() << "iptables-nft is not installed";
  auto netns = linux::NetNs::Make();
  if (!netns) GTEST_SKIP() << netns.error().message();
  std::optional<LiveTable> table;
  auto read = netns->Run([&]() -> Result<> {
    for (const char* rule :
         {"-N X", "-A INPUT -m comment --comment hello -j X", "-A X -m limit --limit 5/s -j DROP",
          "-A X -p tcp --dport 80 -m statistic --mode random --probability 0.5 -j ACCEPT"}) {
      if (std::system(("iptables-nft " + std::string(rule)).c_str()) != 0) {
        return Error(Code::kInternal, std::string("iptables-nft ") + rule);
      }
    }
    KEELSON_ASSIGN_OR_RETURN(table, ReadLiveTable({Family::kIpv4, "filter"}));
    return {};
  });
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_TRUE(table);
  EXPECT_THAT(table->programs["INPUT"][0].leads_to, ElementsAre("X"));
  EXPECT_GT(table->programs["INPUT"][0].handle, 0u);
  auto out = TraceHook({*table}, HookPoint::kInput, To("10.0.0.9", 80), AllUnicast);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_THAT(
      out[0].not_understood,
      ElementsAre(
          AllOf(HasSubstr("ip filter X: "), HasSubstr("[limit rate 5/second"), HasSubstr("; drop")),
          AllOf(HasSubstr("ip filter X: "), HasSubstr("[match name statistic"), HasSubstr("; accept"))));
}

}  // namespace
}  // namespace keelson::nft
