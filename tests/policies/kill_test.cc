// An agent that is killed at each system call that can change the kernel. The kernel's rules are then those of before
// or those of after, nothing in between, and the next agent finishes the work.
//
// Only messages to the kernel's netlink change anything: killed at any other call, the agent leaves what it leaves
// when it is killed at the next one of these.
#include <sys/syscall.h>

#include "cni/lib/testing/run_until.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/nft/diff.h"
#include "tests/policies/shut_test.h"

namespace keelson::policies {
namespace {

class AgentKill : public ShutTest {
 protected:
  // An agent that is killed at its step `steps`, before it. True when it came to its end.
  bool SyncUntil(int steps) {
    std::optional<cni::Reply> reply;
    Result<> ran = world_->Place("node1").Run([&]() -> Result<> {
      reply =
          cni::RunUntil(steps, KEELSON_SYNC_ONCE, {}, node().Save(),
                        {.is_step = [](uint64_t call) { return call == SYS_sendmsg || call == SYS_sendto; },
                         .before = true});
      return {};
    });
    EXPECT_TRUE(ran);
    if (reply) {
      EXPECT_EQ(reply->exit_code, 0) << reply->output;
    }
    return reply.has_value();
  }

  // Whether all that the transaction does is to remove whole chains and sets.
  static bool OnlyRemoves(const nft::Transaction& transaction) {
    return std::all_of(transaction.ops().begin(), transaction.ops().end(), [](const nft::Op& op) {
      return std::holds_alternative<nft::op::DeleteChain>(op) ||
             std::holds_alternative<nft::op::FlushChain>(op) ||
             std::holds_alternative<nft::op::DeleteSet>(op);
    });
  }

  // `change` from the state that `before` makes, with the agent killed everywhere.
  void KillEverywhere(const std::function<void()>& before, const std::function<void()>& change) {
    int kept = 0, made = 0;
    for (int steps = 1;; ++steps) {
      world_->Reset();
      Put("x/deny", kDenyA);
      before();
      Sync();
      ASSERT_EQ(node().Difference(), "");
      change();
      auto old = node().Found();
      ASSERT_TRUE(old && *old);
      const bool ended = SyncUntil(steps);
      auto found = node().Found();
      auto wanted = node().Wanted();
      ASSERT_TRUE(found && *found && wanted);
      // Or with chains and sets more that nothing leads to yet: the kernel removes none that is in use.
      const bool is_old = OnlyRemoves(nft::Diff(*found, **old));
      const bool is_new = nft::Diff(*found, *wanted).empty();
      EXPECT_TRUE(is_old || is_new) << "killed at step " << steps;
      kept += is_old ? 1 : 0;
      made += is_new ? 1 : 0;
      auto synced = node().Sync(true);
      ASSERT_TRUE(synced) << synced.error().message();
      EXPECT_EQ(node().Difference(), "") << "killed at step " << steps;
      if (ended) {
        EXPECT_TRUE(is_new);
        break;
      }
      if (HasFailure()) return;
      ASSERT_LT(steps, 200);
    }
    EXPECT_GT(kept, 1);
    EXPECT_GT(made, 1);
    if (!shut_.empty()) NothingArrived();
  }
};

TEST_F(AgentKill, WhileAPolicyComes) {
  Shut();
  KillEverywhere([] {}, [&] { Put("y/deny", kDenyA); });
}

TEST_F(AgentKill, WhileAPolicyTakesAnothersPlace) {
  Shut();
  KillEverywhere([] {},
                 [&] {
                   Put("x/other", kAllowZ);
                   world_->DeletePolicy("x/deny");
                 });
}

TEST_F(AgentKill, WhilePeersAndPortsChange) {
  Shut();
  KillEverywhere([&] { Put("x/allow", kAllowZ); },
                 [&] {
                   world_->LabelPod("z/b", {{"more", "yes"}});
                   Put("x/allow", R"({"podSelector":{},"ingress":[{"ports":[{"port":80,"endPort":81}],"from":[
                       {"namespaceSelector":{},"podSelector":{"matchLabels":{"more":"yes"}}}]}]})");
                 });
}

// Its address is shut until the rules are in place.
TEST_F(AgentKill, WhileAPodIsAttached) {
  Shut();
  KillEverywhere([] {},
                 [&] {
                   auto attached = node().Attach(
                       "pod1", "uid-x/a", {world_->Address("x/a", true), world_->Address("x/a", false)});
                   ASSERT_TRUE(attached) << attached.error().message();
                 });
}

// What another program has added and removed is repaired in one go as well.
TEST_F(AgentKill, WhileTablesAreRepaired) {
  Shut();
  KillEverywhere([] {},
                 [&] {
                   const nft::Set self{.name = "self4", .key = {nft::Type::kIpv4Addr, nft::Type::kIpv4Addr}};
                   nft::Transaction t(dataplane::PolicyTable());
                   const IpAddress a = world_->Address("x/a", true);
                   t.DeleteElements(self, {{.key = nft::Key().Ip(a).Ip(a).bytes()}});
                   t.AddElements(dataplane::ReadyPods(true),
                                 {{.key = nft::Key().Ip(*IpAddress::Parse("10.1.0.77")).bytes()}});
                   t.AddChain({"strange"});
                   auto tampered = node().Tamper(t);
                   ASSERT_TRUE(tampered) << tampered.error().message();
                 });
}

// Pods run, and there are no tables: the first agent's first sync.
TEST_F(AgentKill, WhileItIsTheFirst) {
  Put("x/deny", kDenyA);
  for (int steps = 1;; ++steps) {
    for (const nft::Table& table : {dataplane::PolicyTable(), dataplane::PolicyPortsTable()}) {
      nft::Transaction t(table);
      t.DeleteTable();
      (void)node().Tamper(t);  // an agent that was killed early has not made both
    }
    const bool ended = SyncUntil(steps);
    auto found = node().Found();
    ASSERT_TRUE(found) << found.error().message();
    if (*found) {
      EXPECT_EQ(node().Difference(), "") << "killed at step " << steps;
    }
    if (ended || HasFailure()) break;
    ASSERT_LT(steps, 200);
  }
  auto found = node().Found();
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->sets.at("ready4").elements.size(), 4u) << "the pods that run";
}

}  // namespace
}  // namespace keelson::policies
