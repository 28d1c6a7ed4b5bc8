#include "cni/policy/steps.h"

#include <gtest/gtest.h>

#include "lib/dataplane/policy_sets.h"
#include "lib/nft/text.h"

namespace keelson::cni::policy {
namespace {

const nft::Set kPeers{.name = "peers", .key = {nft::Type::kMark}};
const nft::Set kVerdicts{.name = "ingress4", .key = {nft::Type::kMark}, .verdicts = true};

nft::Element Element(uint32_t key) { return {.key = nft::Key().Mark(key).bytes()}; }
nft::Element Leads(uint32_t key, const std::string& chain) {
  nft::Element out = Element(key);
  out.verdict = nft::Jump(chain);
  return out;
}
nft::Rule Drops(const std::string& chain) {
  nft::Rule out(chain);
  out.Load(0, nft::Field::kMark).InSet(0, "peers").Finish({nft::Verdict::Kind::kDrop});
  return out;
}

TEST(Steps, ChainsAreThereBeforeAnythingLeadsToThem) {
  nft::Transaction t(dataplane::PolicyTable());
  t.FlushChain("old");
  t.DeleteElements(kVerdicts, {Leads(1, "old")});
  t.DeleteChain("old");
  t.AddChain({"new"});
  t.AddSet(kPeers);
  t.AddRule(Drops("new"));
  t.AddElements(kPeers, {Element(7)});
  t.AddElements(kVerdicts, {Leads(1, "new")});
  const Steps steps = InSteps(t);
  nft::Transaction unseen(t.table()), decisive(t.table());
  unseen.AddChain({"new"});
  unseen.AddSet(kPeers);
  unseen.AddRule(Drops("new"));
  unseen.AddElements(kPeers, {Element(7)});
  decisive.FlushChain("old");
  decisive.DeleteElements(kVerdicts, {Leads(1, "old")});
  decisive.DeleteChain("old");
  decisive.AddElements(kVerdicts, {Leads(1, "new")});
  EXPECT_EQ(nft::ToText(steps.unseen), nft::ToText(unseen));
  EXPECT_EQ(nft::ToText(steps.decisive), nft::ToText(decisive));
}

TEST(Steps, WhatHasToBeDoneAtOnceIs) {
  nft::Transaction table(dataplane::PolicyTable());
  table.AddTable();
  table.AddChain({"new"});
  nft::Transaction replaced(dataplane::PolicyTable());
  replaced.DeleteSet("peers");
  replaced.AddSet(kPeers);
  replaced.AddChain({"new"});
  nft::Transaction refilled(dataplane::PolicyTable());
  refilled.FlushChain("old");
  refilled.AddChain({"old"});
  refilled.AddRule(Drops("old"));
  nft::Transaction hooked(dataplane::PolicyTable());
  hooked.AddChain({"forward", nft::Hook{}});
  for (const nft::Transaction& t : {table, replaced, refilled, hooked}) {
    const Steps steps = InSteps(t);
    EXPECT_TRUE(steps.unseen.empty()) << nft::ToText(t);
    EXPECT_EQ(nft::ToText(steps.decisive), nft::ToText(t));
  }
}

}  // namespace
}  // namespace keelson::cni::policy
