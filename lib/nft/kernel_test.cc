// One test for the kernel and the fake: both must behave the same.
#include "lib/nft/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/nft/diff.h"
#include "lib/nft/monitor.h"
#include "lib/nft/quiet.h"
#include "lib/nft/testing/fake.h"
#include "lib/nft/text.h"

namespace keelson::nft {
namespace {

using ::testing::HasSubstr;

const Table kTable{Family::kIpv4, "keelson-test"};
const Set kEndpoints{.name = "endpoints",
                     .key = {Type::kIpv4Addr, Type::kInetProto, Type::kInetService, Type::kMark},
                     .data = {Type::kIpv4Addr, Type::kInetService}};
const Set kPicks{.name = "picks", .key = {Type::kMark}, .verdicts = true};

Element Endpoint(const std::string& vip, uint16_t port, uint32_t slot, const std::string& to) {
  return {.key = Key().Ip(*IpAddress::Parse(vip)).Proto(6).Port(port).Mark(slot).bytes(),
          .data = Key().Ip(*IpAddress::Parse(to)).Port(8080).bytes()};
}

Rule PickRule(uint32_t n) {
  Rule rule("pick-" + std::to_string(n));
  rule.Load(0, Field::kIpDaddr).Load(1, Field::kL4Proto).Load(2, Field::kDestinationPort).Random(3, n);
  return rule.Map(0, "endpoints", 0).Dnat(Family::kIpv4, 0, 1);
}

Ruleset SmallRuleset() {
  Ruleset out{.table = kTable};
  out.sets["endpoints"].set = kEndpoints;
  out.sets["picks"].set = kPicks;
  out.chains["pick-2"] = {{.name = "pick-2"}, {PickRule(2)}};
  Rule enter("prerouting");
  enter.Load(0, Field::kMark).VerdictMap(0, "picks");
  out.chains["prerouting"] = {
      {.name = "prerouting", .hook = Hook{HookType::kNat, HookPoint::kPrerouting, -100}}, {enter}};
  for (const Element& e :
       {Endpoint("10.0.0.1", 80, 0, "10.1.0.1"), Endpoint("10.0.0.1", 80, 1, "10.1.0.2")}) {
    out.sets["endpoints"].elements[e.key] = e;
  }
  Element pick{.key = Key().Mark(2).bytes(), .verdict = Goto("pick-2")};
  out.sets["picks"].elements[pick.key] = pick;
  return out;
}

class KernelTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) {
      kernel_ = std::make_unique<FakeKernel>();
      return;
    }
    auto netns = linux::NetNs::Make();
    if (!netns) GTEST_SKIP() << netns.error().message();
    auto kernel = OpenKernel(*netns);
    ASSERT_TRUE(kernel) << kernel.error().message();
    kernel_ = std::move(*kernel);
  }
  void Install(const Ruleset& ruleset) {
    auto applied = kernel_->Apply(Diff(std::nullopt, ruleset));
    ASSERT_TRUE(applied) << applied.error().message();
  }
  Ruleset Found() {
    auto found = kernel_->Read(kTable);
    if (!found || !*found) {
      ADD_FAILURE() << (found ? "no table" : found.error().message());
      return {.table = kTable};
    }
    return std::move(**found);
  }
  // Prints expressions and fingerprints alike, so that found and wanted rules compare equal.
  static std::string Canonical(Ruleset ruleset) {
    for (auto& [name, contents] : ruleset.chains) {
      for (Rule& rule : contents.rules) {
        Rule bare(rule.chain());
        bare.set_found_comment(rule.Comment());
        rule = bare;
      }
    }
    return ToText(ruleset);
  }
  Error Refused(const Transaction& transaction) {
    auto applied = kernel_->Apply(transaction);
    if (applied) ADD_FAILURE() << "accepted: " << ToText(transaction);
    return applied ? Error(Code::kInternal, "") : applied.error();
  }
  std::unique_ptr<Kernel> kernel_;
};

TEST_P(KernelTest, ReadsBackWhatWasApplied) {
  ASSERT_FALSE(*kernel_->Read(kTable));
  Ruleset wanted = SmallRuleset();
  uint32_t before = *kernel_->Generation();
  Install(wanted);
  EXPECT_EQ(*kernel_->Generation(), before + 1);
  EXPECT_TRUE(*kernel_->HasChain(kTable, "pick-2"));
  EXPECT_FALSE(*kernel_->HasChain(kTable, "pick-3"));
  EXPECT_FALSE(*kernel_->HasChain({Family::kIpv4, "nowhere"}, "pick-2"));
  EXPECT_EQ(Canonical(Found()), Canonical(wanted));
  EXPECT_TRUE(Diff(Found(), wanted).empty()) << ToText(Diff(Found(), wanted));
}

TEST_P(KernelTest, AFailedTransactionChangesNothingAndSaysWhatFailed) {
  Install(SmallRuleset());
  std::string before = Canonical(Found());
  Transaction t(kTable);
  std::vector<Element> gone;
  for (uint32_t i = 0; i < 300; ++i) gone.push_back(Endpoint("10.0.0.9", 80, i, "10.1.0.1"));
  t.AddElements(kEndpoints, gone);
  gone[200] = Endpoint("10.0.0.8", 80, 200, "10.1.0.1");
  t.DeleteElements(kEndpoints, gone);
  Error error = Refused(t);
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.errnum(), ENOENT);
  EXPECT_THAT(error.message(), HasSubstr("table ip keelson-test: delete element endpoints"));
  EXPECT_THAT(error.message(), HasSubstr("10.0.0.8 . tcp . 80 . 200"));
  EXPECT_EQ(Canonical(Found()), before);
}

TEST_P(KernelTest, RefusesDanglingReferences) {
  Install(SmallRuleset());
  Transaction chain_in_use(kTable);
  chain_in_use.DeleteChain("pick-2");
  EXPECT_EQ(Refused(chain_in_use).errnum(), EBUSY);
  Transaction set_in_use(kTable);
  set_in_use.DeleteSet("endpoints");
  EXPECT_EQ(Refused(set_in_use).errnum(), EBUSY);
  Transaction missing_chain(kTable);
  missing_chain.AddElements(kPicks, {{.key = Key().Mark(3).bytes(), .verdict = Goto("pick-3")}});
  EXPECT_EQ(Refused(missing_chain).errnum(), ENOENT);
  Transaction missing_set(kTable);
  Rule rule("pick-2");
  rule.Load(0, Field::kIpDaddr).InSet(0, "nowhere");
  missing_set.AddRule(rule);
  EXPECT_EQ(Refused(missing_set).errnum(), ENOENT);
}

TEST_P(KernelTest, ElementsAreAddedOnceAndChangedByTakingThemOut) {
  Install(SmallRuleset());
  Transaction same(kTable);
  same.AddElements(kEndpoints, {Endpoint("10.0.0.1", 80, 0, "10.1.0.1")});
  EXPECT_TRUE(kernel_->Apply(same));
  Transaction exclusive(kTable);
  exclusive.CreateElements(kEndpoints, {Endpoint("10.0.0.1", 80, 0, "10.1.0.1")});
  EXPECT_EQ(Refused(exclusive).code(), Code::kAlreadyExists);
  Transaction other(kTable);
  other.AddElements(kEndpoints, {Endpoint("10.0.0.1", 80, 0, "10.1.0.7")});
  EXPECT_EQ(Refused(other).code(), Code::kAlreadyExists);
  Transaction swap(kTable);
  swap.DeleteElements(kEndpoints, {Endpoint("10.0.0.1", 80, 0, "10.1.0.1")});
  swap.AddElements(kEndpoints, {Endpoint("10.0.0.1", 80, 0, "10.1.0.7")});
  auto swapped = kernel_->Apply(swap);
  EXPECT_TRUE(swapped) << swapped.error().message();
  Element now = Endpoint("10.0.0.1", 80, 0, "10.1.0.7");
  EXPECT_EQ(Found().sets["endpoints"].elements.at(now.key), now);
  Transaction narrow(kTable);
  narrow.AddElements(kPicks, {{.key = "x", .verdict = Goto("pick-2")}});
  EXPECT_EQ(Refused(narrow).code(), Code::kInvalid);
}

TEST_P(KernelTest, ChainsExclusivelyAndTablesAsAWhole) {
  Install(SmallRuleset());
  Transaction again(kTable);
  again.CreateChain({.name = "pick-2"});
  EXPECT_EQ(Refused(again).code(), Code::kAlreadyExists);
  Transaction drop(kTable);
  drop.DeleteTable();
  EXPECT_TRUE(kernel_->Apply(drop));
  EXPECT_FALSE(*kernel_->Read(kTable));
  EXPECT_EQ(Refused(drop).code(), Code::kNotFound);
}

TEST_P(KernelTest, DiffGoesFromAnyStateToAnyOther) {
  Ruleset first = SmallRuleset();
  Ruleset second = SmallRuleset();
  second.chains.erase("pick-2");
  second.chains["pick-3"] = {{.name = "pick-3"}, {PickRule(3)}};
  second.sets["picks"].elements.clear();
  Element pick{.key = Key().Mark(2).bytes(), .verdict = Goto("pick-3")};
  second.sets["picks"].elements[pick.key] = pick;
  Element moved = Endpoint("10.0.0.1", 80, 1, "10.1.0.9");
  second.sets["endpoints"].elements[moved.key] = moved;
  Ruleset third = second;
  third.sets["endpoints"].set.data = {Type::kIpv4Addr};
  third.sets["endpoints"].elements.clear();
  third.chains["pick-3"].rules.clear();
  third.chains["prerouting"].chain.hook->priority = -90;
  Install(first);
  for (const Ruleset& wanted : {second, third, first, third, second}) {
    Transaction diff = Diff(Found(), wanted);
    auto applied = kernel_->Apply(diff);
    ASSERT_TRUE(applied) << applied.error().message() << "\n" << ToText(diff);
    EXPECT_EQ(Canonical(Found()), Canonical(wanted));
  }
}

TEST_P(KernelTest, TenThousandElementsInOneTransaction) {
  Install(SmallRuleset());
  std::vector<Element> many;
  for (uint32_t i = 0; i < 10000; ++i) many.push_back(Endpoint("10.0.1.1", 80, i, "10.1.0.1"));
  Transaction t(kTable);
  t.AddElements(kEndpoints, many);
  auto applied = kernel_->Apply(t);
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(Found().sets["endpoints"].elements.size(), 10002u);
}

TEST_P(KernelTest, ElementsKeepTheirComments) {
  Table bridge{Family::kBridge, "keelson-test"};
  Set senders{.name = "senders", .key = {Type::kIfname, Type::kEtherAddr}};
  Element element{.key = Key().Ifname("veth0").EtherAddr(std::string("\2\0\0\0\0\7", 6)).bytes(),
                  .comment = "whose"};
  Transaction t(bridge);
  t.AddTable();
  t.AddSet(senders);
  t.AddElements(senders, {element});
  t.AddChain({.name = "prerouting", .hook = Hook{HookType::kFilter, HookPoint::kPrerouting, -300}});
  Rule drop("prerouting");
  t.AddRule(drop.Load(0, Field::kIifName)
                .Load(4, Field::kEtherSaddr)
                .NotInSet(0, "senders")
                .Finish({Verdict::Kind::kDrop}));
  auto applied = kernel_->Apply(t);
  ASSERT_TRUE(applied) << applied.error().message();
  auto found = *kernel_->ReadSets(bridge);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->sets.size(), 1u);
  EXPECT_EQ(found->sets["senders"].set, senders);
  EXPECT_EQ(found->sets["senders"].elements.at(element.key), element);
  EXPECT_EQ(ToText(senders, element), "veth0 . 02:00:00:00:00:07 comment \"whose\"");
  EXPECT_FALSE(*kernel_->ReadSets({Family::kBridge, "nowhere"}));
}

TEST_P(KernelTest, FramesOfABridgeGetAnotherDestination) {
  Transaction t({Family::kBridge, "keelson-frames"});
  t.AddTable();
  t.AddChain({.name = "prerouting", .hook = Hook{HookType::kFilter, HookPoint::kPrerouting, -300}});
  Rule rule("prerouting");
  rule.Load(0, Field::kEtherType).Equal(0, std::string("\x86\xdd", 2));
  rule.Load(1, Field::kIcmpType).Equal(1, std::string(1, '\x80'));
  rule.Immediate(4, std::string("\2\0\0\0\0\7", 6)).SetEtherDaddr(4);
  t.AddRule(rule.Immediate(8, std::string(1, '\0')).SetPacketType(8));
  auto applied = kernel_->Apply(t);
  EXPECT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(
      ToText(rule),
      "r0 = ether type; r0 == 0x86dd; r1 = icmp type; r1 == 0x80; r4 = 0x020000000007; ether daddr = r4; "
      "r8 = 0x00; meta pkttype = r8");
}

TEST_P(KernelTest, EveryExpressionAndKindOfSetIsAccepted) {
  for (Family family : {Family::kIpv4, Family::kIpv6, Family::kInet}) {
    Table table{family, "keelson-all"};
    bool v6 = family == Family::kIpv6;
    Type address = v6 ? Type::kIpv6Addr : Type::kIpv4Addr;
    int next = v6 ? 4 : 1;
    Transaction t(table);
    t.AddTable();
    t.AddSet({.name = "sources", .key = {Type::kInetService, address}, .interval = true});
    t.AddSet({.name = "sticky",
              .key = {address, Type::kInetService, Type::kMark},
              .dynamic = true,
              .timeout = std::chrono::hours(3)});
    t.AddSet({.name = "backends",
              .key = {Type::kInetService, Type::kMark},
              .data = {address, Type::kInetService}});
    IpAddress low = *IpAddress::Parse(v6 ? "fd00::" : "10.0.0.0"),
              high = *IpAddress::Parse(v6 ? "fd00::f" : "10.0.0.9");
    t.AddElements({.name = "sources", .key = {Type::kInetService, address}, .interval = true},
                  {{.key = Key().Port(80).Ip(low).bytes(), .key_end = Key().Port(80).Ip(high).bytes()}});
    t.AddChain({.name = "nat", .hook = Hook{HookType::kNat, HookPoint::kPrerouting, -100}});
    t.AddChain({.name = "out", .hook = Hook{HookType::kNat, HookPoint::kPostrouting, 100}});
    t.AddChain({.name = "filter", .hook = Hook{HookType::kFilter, HookPoint::kForward, -110}});
    t.AddChain({.name = "sub"});
    Rule stick("nat");
    stick.Load(0, v6 ? Field::kIp6Saddr : Field::kIpSaddr).Load(next, Field::kDestinationPort);
    stick.Immediate(next + 1, Key().Mark(7).bytes()).InSet(0, "sticky").Map(next, "backends", next + 2);
    stick.Update(0, "sticky", std::chrono::hours(3));
    t.AddRule(stick.Dnat(v6 ? Family::kIpv6 : Family::kIpv4, next + 2, next + 2 + next));
    Rule mark("nat");
    t.AddRule(mark.MarkBits(0x4000).Counter().Finish(Jump("sub")));
    Rule masq("out");
    t.AddRule(masq.AnyBit(Field::kMark, 0x4000).UnmarkBits(0x4000).Masquerade());
    Rule low_ports("out");
    t.AddRule(low_ports.Immediate(0, Key().Port(1024).bytes())
                  .Immediate(1, Key().Port(60999).bytes())
                  .Masquerade(0, 1));
    Rule source("filter");
    source.AnyBit(Field::kCtState, 8).AnyBit(Field::kCtStatus, 0x20).Load(0, Field::kDestinationPort);
    t.AddRule(source.Load(1, v6 ? Field::kIp6Saddr : Field::kIpSaddr)
                  .NotInSet(0, "sources")
                  .Finish({Verdict::Kind::kDrop}));
    Rule reset("filter");
    t.AddRule(reset.Load(0, Field::kL4Proto).Equal(0, std::string(1, '\6')).RejectTcpReset());
    Rule unreachable("filter");
    t.AddRule(unreachable.Load(0, Field::kSourcePort).Load(1, Field::kNfProto).RejectUnreachable());
    Rule types("nat");
    t.AddRule(types.Load(0, Field::kDaddrType)
                  .Load(1, Field::kSaddrType)
                  .Random(2, 7, 65536)
                  .Finish({Verdict::Kind::kReturn}));
    Rule forget("nat");
    forget.Load(0, v6 ? Field::kIp6Saddr : Field::kIpSaddr).Load(next, Field::kDestinationPort);
    forget.Immediate(next + 1, Key().Mark(1).bytes()).Forget(0, "sticky");
    t.AddRule(forget.Immediate(next + 1, Key().Mark(2).bytes()).Forget(0, "sticky"));
    Rule from_pods("nat");
    t.AddRule(from_pods.Load(0, Field::kIifName).Equal(0, "veth").Finish({Verdict::Kind::kReturn}));
    Rule began("filter");
    began.Load(0, v6 ? Field::kCtOriginal6Daddr : Field::kCtOriginalDaddr);
    t.AddRule(began.NotEqual(0, std::string(v6 ? 16 : 4, '\1')).Finish({Verdict::Kind::kReturn}));
    auto applied = kernel_->Apply(t);
    EXPECT_TRUE(applied) << applied.error().message();
  }
}

TEST_P(KernelTest, ElementsLiveAsLongAsTheySayUntilTheyAreRenewed) {
  const Set names{.name = "subdomains4-example.com",
                  .key = {Type::kIpv4Addr},
                  .dynamic = true,
                  .timeout = std::chrono::minutes(1)};
  Element element{.key = Key().Ip(*IpAddress::Parse("192.0.2.1")).bytes(), .lifetime = std::chrono::hours(1)};
  Transaction first(kTable);
  first.AddTable();
  first.AddSet(names);
  first.AddElements(names, {element});
  ASSERT_TRUE(kernel_->Apply(first));
  auto left = [&] { return Found().sets.at(names.name).elements.at(element.key).lifetime; };
  EXPECT_LE(left(), std::chrono::hours(1));
  EXPECT_GT(left(), std::chrono::minutes(30));
  Element longer = element;
  longer.lifetime = std::chrono::hours(3);
  Transaction renewal(kTable);
  renewal.DeleteElements(names, {element});
  renewal.AddElements(names, {longer});
  ASSERT_TRUE(kernel_->Apply(renewal));
  EXPECT_LE(left(), std::chrono::hours(3));
  EXPECT_GT(left(), std::chrono::hours(2));
  EXPECT_EQ(kernel_->SetNames(kTable).value_or(std::vector<std::string>()),
            std::vector<std::string>{names.name});
  EXPECT_EQ(kernel_->SetNames({Family::kInet, "absent"}).value_or(std::vector<std::string>{"?"}),
            std::vector<std::string>());
  // What is in the set stays when the rules are compared with the wanted ones.
  Ruleset wanted{.table = kTable};
  wanted.sets[names.name].set = names;
  EXPECT_TRUE(Diff(Found(), wanted).empty());
}

TEST(MonitorTest, TellsWhoChangedWhichTable) {
  auto netns = linux::NetNs::Make();
  if (!netns) GTEST_SKIP() << netns.error().message();
  std::optional<Monitor> monitor;
  ASSERT_TRUE(netns->Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(Monitor opened, Monitor::Open());
    monitor.emplace(std::move(opened));
    return {};
  }));
  auto kernel = OpenKernel(*netns);
  ASSERT_TRUE(kernel) << kernel.error().message();
  Transaction t({Family::kIpv4, "keelson-a"});
  t.AddTable();
  t.AddChain({.name = "c"});
  ASSERT_TRUE((*kernel)->Apply(t));
  auto seen = monitor->Wait({}, std::chrono::seconds(10));
  ASSERT_TRUE(seen) << seen.error().message();
  EXPECT_EQ(seen->tables, (std::vector<TableChange>{{Family::kIpv4, "keelson-a", (*kernel)->port()}}));
  EXPECT_FALSE(seen->lost);
  EXPECT_TRUE(monitor->Wait({}, std::chrono::milliseconds(1)).error().Is(Code::kTimeout));
}

// Another program writes just before each transaction, if enabled.
class DisturbedKernel : public Kernel {
 public:
  DisturbedKernel(std::unique_ptr<Kernel> kernel, Kernel& stranger)
      : kernel_(std::move(kernel)), stranger_(stranger) {}
  Result<> Apply(const Transaction& transaction) override {
    Transaction other({Family::kIpv4, "stranger-" + std::to_string(tables_++)});
    other.AddTable();
    if (disturbed) {
      EXPECT_TRUE(stranger_.Apply(other));
    }
    return kernel_->Apply(transaction);
  }
  Result<std::optional<Ruleset>> Read(const Table& table) override { return kernel_->Read(table); }
  Result<bool> HasChain(const Table& table, const std::string& chain) override {
    return kernel_->HasChain(table, chain);
  }
  Result<uint32_t> Generation() override { return kernel_->Generation(); }

  bool disturbed = false;

 private:
  std::unique_ptr<Kernel> kernel_;
  Kernel& stranger_;
  int tables_ = 0;
};

TEST(QuietKernelTest, NobodyIsToldOfMuchAndNothingOfOthersIsMissed) {
  auto netns = linux::NetNs::Make();
  if (!netns) GTEST_SKIP() << netns.error().message();
  std::shared_ptr<Monitor> monitor;
  ASSERT_TRUE(netns->Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(Monitor opened, Monitor::Open());
    monitor = std::make_shared<Monitor>(std::move(opened));
    return {};
  }));
  auto real = OpenKernel(*netns), stranger = OpenKernel(*netns);
  ASSERT_TRUE(real && stranger);
  auto owned = std::make_unique<DisturbedKernel>(std::move(*real), **stranger);
  DisturbedKernel& inner = *owned;
  int missed = 0;
  auto kernel = Quietly(std::move(owned), {.monitor = [&] { return monitor; },
                                           .missed = [&] { ++missed; },
                                           .deaf = [](const Error& e) { FAIL() << e.message(); }});
  const Set numbers{.name = "numbers", .key = {Type::kMark}};
  uint32_t next = 0;
  struct Case {
    const char* name;
    size_t elements;
    bool bad, disturbed, told, missed;
  };
  for (const Case& c : std::initializer_list<Case>{{"a few", 3, false, false, true, false},
                                                   {"many", 500, false, false, false, false},
                                                   {"many, refused", 500, true, false, false, false},
                                                   {"many, disturbed", 500, false, true, false, true},
                                                   {"many, refused, disturbed", 500, true, true, false, true},
                                                   {"a few at last", 3, false, false, true, false}}) {
    SCOPED_TRACE(c.name);
    Transaction t({Family::kIpv4, "quiet"});
    t.AddTable();
    t.AddSet(numbers);
    std::vector<Element> elements;
    for (size_t i = 0; i < c.elements; ++i) elements.push_back({.key = Key().Mark(next++).bytes()});
    t.AddElements(numbers, std::move(elements));
    if (c.bad) t.AddRule(Rule("no such chain").Finish({Verdict::Kind::kDrop}));
    inner.disturbed = c.disturbed;
    missed = 0;
    EXPECT_EQ(kernel->Apply(t).has_value(), !c.bad);
    EXPECT_EQ(missed, c.missed ? 1 : 0);
    auto seen = monitor->Wait({}, std::chrono::milliseconds(c.told ? 10000 : 1));
    EXPECT_EQ(seen.has_value(), c.told);
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, KernelTest, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Real, KernelTest, ::testing::Values(true));

}  // namespace
}  // namespace keelson::nft
