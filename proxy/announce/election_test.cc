#include "proxy/announce/election.h"

#include <gtest/gtest.h>

#include "proxy/announce/responder.h"

namespace keelson::proxy {
namespace {

using namespace std::chrono_literals;

const ElectionTimes kTimes;  // 6 s, renewed every 2 s, tried again after 1 s
const SteadyTime kStart = SteadyTime() + 1000s;

coordinationv1::LeaseSpec HeldBy(const std::string& holder) {
  coordinationv1::LeaseSpec record;
  record.set_holder_identity(holder);
  record.set_lease_duration_seconds(6);
  record.set_lease_transitions(4);
  return record;
}

std::string Next(const Candidacy& candidacy, std::chrono::milliseconds after) {
  const SteadyTime now = kStart + after;
  const Move move = NextMove(candidacy, kTimes, now);
  switch (move.step) {
    case Move::kTake:
      return "take";
    case Move::kRenew:
      return "renew";
    case Move::kRelease:
      return "release";
    default:
      return "wait " +
             std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(move.again - now).count());
  }
}

TEST(ElectionTest, Moves) {
  Candidacy base{.identity = "me", .eligible = true, .seen = kStart, .rank = 200ms};
  auto with = [&](auto change) {
    Candidacy out = base;
    change(out);
    return out;
  };
  const Candidacy ours = with([](Candidacy& c) { c.record = HeldBy("me"), c.renewed = kStart; });
  const Candidacy others = with([](Candidacy& c) { c.record = HeldBy("other"); });
  const Candidacy barred =
      with([](Candidacy& c) { c.record = HeldBy("me"), c.renewed = kStart, c.eligible = false; });
  struct Case {
    const char* what;
    Candidacy candidacy;
    std::chrono::milliseconds after;
    const char* want;
  };
  const Case cases[] = {
      {"no Lease: after those of a lower rank", base, 0ms, "wait 200"},
      {"no Lease, and it is our turn", base, 200ms, "take"},
      {"given up", with([](Candidacy& c) { c.record = HeldBy(""); }), 200ms, "take"},
      {"another's", others, 0ms, "wait 6200"},
      {"another's, silent", others, 6200ms, "take"},
      {"another's, silent, and our last write failed",
       with([](Candidacy& c) { c.record = HeldBy("other"), c.failed = kStart + 6200ms; }), 6300ms,
       "wait 900"},
      {"another's, and we may not",
       with([](Candidacy& c) { c.record = HeldBy("other"), c.eligible = false; }), 60s, "wait 600000"},
      {"ours", ours, 500ms, "wait 1500"},
      {"ours and due", ours, 2000ms, "renew"},
      {"ours, overdue: nobody else has it", ours, 60s, "renew"},
      {"ours from before a restart", with([](Candidacy& c) { c.record = HeldBy("me"); }), 0ms, "renew"},
      {"ours, and we may not any more", barred, 0ms, "release"},
  };
  for (const Case& one : cases) EXPECT_EQ(Next(one.candidacy, one.after), one.want) << one.what;
}

TEST(ElectionTest, Records) {
  Candidacy candidacy{.identity = "me", .record = HeldBy("other")};
  candidacy.record->set_strategy("kept");
  const WallTime now = WallTime() + 5s;
  coordinationv1::LeaseSpec taken = NextRecord(candidacy, kTimes, now);
  EXPECT_EQ(taken.holder_identity(), "me");
  EXPECT_EQ(taken.lease_transitions(), 5);
  EXPECT_EQ(taken.lease_duration_seconds(), 6);
  EXPECT_EQ(taken.acquire_time().seconds(), 5);
  EXPECT_EQ(taken.strategy(), "kept");
  candidacy.record = taken;
  coordinationv1::LeaseSpec renewed = NextRecord(candidacy, kTimes, now + 2s);
  EXPECT_EQ(renewed.lease_transitions(), 5);
  EXPECT_EQ(renewed.acquire_time().seconds(), 5);
  EXPECT_EQ(renewed.renew_time().seconds(), 7);
  coordinationv1::LeaseSpec released = ReleasedRecord(renewed, now);
  EXPECT_EQ(released.holder_identity(), "");
  EXPECT_EQ(released.lease_transitions(), 5);
}

TEST(ElectionTest, RanksSpreadGroupsOverNodes) {
  std::map<std::string, int> first;
  for (int group = 0; group < 300; ++group) {
    std::string best;
    for (const char* node : {"n1", "n2", "n3"}) {
      const auto rank = RankOf(node, std::to_string(group), kTimes);
      EXPECT_LT(rank, kTimes.spread);
      if (best.empty() || rank < RankOf(best, std::to_string(group), kTimes)) best = node;
    }
    ++first[best];
  }
  for (const auto& [node, count] : first) EXPECT_GT(count, 60) << node;
}

TEST(LinksForTest, WhereAnAddressBelongs) {
  auto own = [](int link, const char* prefix, bool link_scope = false) {
    return netlink::Address{.link_index = link, .prefix = *IpPrefix::Parse(prefix), .link_scope = link_scope};
  };
  const std::vector<netlink::Address> addresses = {own(1, "127.0.0.1/8", true), own(2, "10.0.0.1/24"),
                                                   own(3, "192.168.1.1/24"),    own(4, "10.0.0.9/24"),
                                                   own(2, "fd00::1/64"),        own(2, "fe80::1/64", true)};
  const std::vector<IpAddress> node = {*IpAddress::Parse("192.168.1.1"), *IpAddress::Parse("fd00::1")};
  const std::pair<const char*, std::set<int>> cases[] = {
      {"10.0.0.77", {2, 4}}, {"192.168.1.77", {3}}, {"203.0.113.1", {3}}, {"192.168.1.1", {}},
      {"fd00::77", {2}},     {"fd99::1", {2}},      {"fe80::77", {2}},    {"127.0.0.5", {3}},
  };
  for (const auto& [ip, want] : cases) {
    EXPECT_EQ(LinksFor(*IpAddress::Parse(ip), addresses, node), want) << ip;
  }
}

}  // namespace
}  // namespace keelson::proxy
