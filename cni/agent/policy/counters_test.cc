#include "cni/agent/policy/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::cni::agent {
namespace {

using ::testing::UnorderedElementsAre;

nft::Program Counted(uint64_t handle, const std::string& note, uint64_t packets, nft::Verdict::Kind verdict) {
  nft::Program out;
  out.exprs = {nft::expr::Counter{}, nft::expr::Finish{{verdict}}};
  out.handle = handle;
  out.note = note;
  out.packets = packets;
  return out;
}

std::vector<std::string> Texts(const std::vector<PolicyPackets>& counted) {
  std::vector<std::string> out;
  for (const PolicyPackets& one : counted) {
    out.push_back(one.policy + " " + one.direction + " " + one.verdict + " " + std::to_string(one.packets));
  }
  return out;
}

constexpr auto kReturn = nft::Verdict::Kind::kReturn, kDrop = nft::Verdict::Kind::kDrop;

TEST(PolicyCounters, RulesCountForThePoliciesThatTheyName) {
  PolicyCounters counters;
  auto chains = [](uint64_t allowed, uint64_t denied) {
    return std::map<std::string, std::vector<nft::Program>>{
        {"packets4", {Counted(1, "not ready", 100, kDrop)}},
        {"ingress4-1",
         {Counted(2, "x/a ingress[0], x/b ingress[1]", allowed, kReturn), Counted(3, "x/a", denied, kDrop)}},
        {"egress6-1", {Counted(4, "x/a, x/b, x/this-one-is-c...", 7, kDrop)}}};
  };
  EXPECT_THAT(Texts(counters.Count(chains(5, 2))),
              UnorderedElementsAre("x/a ingress allowed 5", "x/b ingress allowed 5", "x/a ingress denied 2",
                                   "x/a egress denied 7", "x/b egress denied 7"));
  EXPECT_THAT(Texts(counters.Count(chains(6, 2))),
              UnorderedElementsAre("x/a ingress allowed 1", "x/b ingress allowed 1", "x/a ingress denied 0",
                                   "x/a egress denied 0", "x/b egress denied 0"));
}

TEST(PolicyCounters, ARuleThatIsMadeAgainCountsFromZero) {
  PolicyCounters counters;
  std::map<std::string, std::vector<nft::Program>> chains = {{"ingress4-1", {Counted(2, "x/a", 9, kDrop)}}};
  counters.Count(chains);
  chains["ingress4-1"][0].handle = 8;
  chains["ingress4-1"][0].packets = 4;
  EXPECT_THAT(Texts(counters.Count(chains)), UnorderedElementsAre("x/a ingress denied 4"));
}

}  // namespace
}  // namespace keelson::cni::agent
