// Tests with a real etcd; each has its own data directory, ports and certificates.
#include <signal.h>
#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/etcd/client.h"
#include "controlplane/etcd/compactor.h"
#include "controlplane/etcd/end_of_process.h"
#include "controlplane/etcd/lease_pool.h"
#include "controlplane/etcd/testing/test_etcd.h"
#include "lib/base/file.h"

namespace keelson::etcd {
namespace {

Limits Soon(std::chrono::seconds after = std::chrono::seconds(20)) {
  return {std::chrono::steady_clock::now() + after, {}};
}

class EtcdTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    etcd_ = std::make_unique<TestEtcd>();
    client_ = std::make_unique<Client>(etcd_->supervisor().client_options());
  }
  std::unique_ptr<TestEtcd> etcd_;
  std::unique_ptr<Client> client_;
};

TEST_F(EtcdTest, WritesCompareAndSwap) {
  Result<TxnResult> created = client_->PutIf("/a", "1", 0, 0, Soon());
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_TRUE(created->succeeded);

  Result<TxnResult> again = client_->PutIf("/a", "2", 0, 0, Soon());
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->succeeded);
  ASSERT_TRUE(again->current);
  EXPECT_EQ(again->current->value, "1");
  EXPECT_EQ(again->current->mod_revision, created->revision);

  Result<TxnResult> updated = client_->PutIf("/a", "2", created->revision, 0, Soon());
  ASSERT_TRUE(updated);
  EXPECT_TRUE(updated->succeeded);
  EXPECT_GT(updated->revision, created->revision);

  Result<TxnResult> stale = client_->DeleteIf("/a", created->revision, Soon());
  ASSERT_TRUE(stale);
  EXPECT_FALSE(stale->succeeded);
  Result<TxnResult> deleted = client_->DeleteIf("/a", updated->revision, Soon());
  ASSERT_TRUE(deleted);
  EXPECT_TRUE(deleted->succeeded);
  EXPECT_EQ(*client_->Revision(Soon()), deleted->revision);
}

TEST_F(EtcdTest, RangesWithLimitRevisionAndKeysOnly) {
  for (const char* key : {"/r/a", "/r/b", "/r/c"}) ASSERT_TRUE(client_->PutIf(key, "x", 0, 0, Soon()));
  int64_t before = *client_->Revision(Soon());
  ASSERT_TRUE(client_->PutIf("/r/d", "x", 0, 0, Soon()));

  RangeOptions options;
  options.end = PrefixEnd("/r/");
  options.limit = 2;
  options.revision = before;
  Result<RangeResult> page = client_->Range("/r/", options, Soon());
  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->kvs.size(), 2U);
  EXPECT_EQ(page->kvs[1].key, "/r/b");
  EXPECT_TRUE(page->more);
  EXPECT_EQ(page->count, 3);

  options = {};
  options.end = PrefixEnd("/r/");
  options.keys_only = true;
  page = client_->Range("/r/", options, Soon());
  ASSERT_TRUE(page);
  EXPECT_EQ(page->kvs.size(), 4U);
  EXPECT_EQ(page->kvs[0].value, "");
}

TEST_F(EtcdTest, WatchesFromARevisionAndStops) {
  Result<TxnResult> first = client_->PutIf("/w/a", "1", 0, 0, Soon());
  ASSERT_TRUE(first);
  ASSERT_TRUE(client_->PutIf("/w/b", "2", 0, 0, Soon()));
  std::stop_source stop;
  std::vector<std::string> seen;
  Error ended(Code::kInternal, "");
  std::thread watcher([&] {
    ended = client_->Watch(
        std::string(1, '\0'), std::string(1, '\0'), first->revision, [] {},
        [&](WatchBatch batch) {
          for (const auto& event : batch.events) seen.push_back((event.deleted ? "-" : "+") + event.kv.key);
          if (seen.size() == 3) stop.request_stop();
        },
        stop.get_token());
  });
  ASSERT_TRUE(client_->DeleteIf("/w/a", first->revision, Soon()));
  watcher.join();
  EXPECT_EQ(seen, (std::vector<std::string>{"+/w/a", "+/w/b", "-/w/a"}));
  EXPECT_EQ(ended.code(), Code::kCancelled);
}

TEST_F(EtcdTest, KeepsClustersApartByPrefix) {
  ClientOptions options = etcd_->supervisor().client_options();
  options.prefix = "/blue";
  Client blue(options);
  ASSERT_TRUE(client_->PutIf("/registry/pods/a/x", "green", 0, 0, Soon()));
  auto put = blue.PutIf("/registry/pods/a/x", "blue", 0, 0, Soon());
  ASSERT_TRUE(put && put->succeeded);
  EXPECT_EQ(client_->Range("/blue/pods/a/x", {}, Soon())->kvs.at(0).value, "blue");
  RangeOptions all;
  all.end = PrefixEnd("/registry/pods/");
  auto mine = blue.Range("/registry/pods/", all, Soon());
  ASSERT_TRUE(mine);
  ASSERT_EQ(mine->kvs.size(), 1u);
  EXPECT_EQ(mine->kvs[0].key, "/registry/pods/a/x");
  EXPECT_EQ(mine->kvs[0].value, "blue");
  std::stop_source stop;
  std::vector<std::string> keys;
  blue.Watch(
      std::string(1, '\0'), std::string(1, '\0'), 1, [] {},
      [&](const WatchBatch& batch) {
        for (const auto& event : batch.events) keys.push_back(event.kv.key);
        if (keys.size() >= 2) stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(keys, (std::vector<std::string>{"/elsewhere/registry/pods/a/x", "/registry/pods/a/x"}));
  auto lost = blue.PutIf("/registry/pods/a/x", "again", 0, 0, Soon());
  ASSERT_TRUE(lost && lost->current);
  EXPECT_EQ(lost->current->key, "/registry/pods/a/x");
  ASSERT_TRUE(blue.DeleteIf("/registry/pods/a/x", put->revision, Soon())->succeeded);
  EXPECT_EQ(client_->Range("/registry/pods/a/x", {}, Soon())->kvs.size(), 1u);
}

TEST_F(EtcdTest, CompactedHistoryIsGone) {
  int64_t first = client_->PutIf("/c", "1", 0, 0, Soon())->revision;
  int64_t second = client_->PutIf("/c", "2", first, 0, Soon())->revision;
  Compactor compactor(*client_);
  ASSERT_TRUE(compactor.RunOnce(Soon()));  // only records the revision
  ASSERT_TRUE(client_->PutIf("/c", "3", second, 0, Soon()));
  Result<> round = compactor.RunOnce(Soon());
  ASSERT_TRUE(round) << round.error().message();

  RangeOptions options;
  options.revision = first;
  Result<RangeResult> old = client_->Range("/c", options, Soon());
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code(), Code::kGone);
  Error watch = client_->Watch(
      "/c", "", first, [] {}, [](WatchBatch) {}, {});
  EXPECT_EQ(watch.code(), Code::kGone);
}

TEST_F(EtcdTest, TwoCompactorsTakeTurns) {
  Compactor one(*client_), two(*client_);
  ASSERT_TRUE(one.RunOnce(Soon()));
  ASSERT_TRUE(two.RunOnce(Soon()));  // learns that another server did the round
  int64_t first = client_->PutIf("/t", "1", 0, 0, Soon())->revision;
  ASSERT_TRUE(client_->PutIf("/t", "2", first, 0, Soon()));
  ASSERT_TRUE(two.RunOnce(Soon()));
  ASSERT_TRUE(one.RunOnce(Soon()));
  RangeOptions options;
  options.revision = first;
  EXPECT_TRUE(client_->Range("/t", options, Soon())) << "compacted further than anybody had seen";
}

TEST_F(EtcdTest, LeasesAreShared) {
  LeasePool pool(*client_, Clock::Real());
  Result<int64_t> one = pool.LeaseFor(std::chrono::hours(1), Soon());
  Result<int64_t> two = pool.LeaseFor(std::chrono::hours(1), Soon());
  ASSERT_TRUE(one && two);
  EXPECT_EQ(*one, *two);
  ASSERT_TRUE(client_->PutIf("/l", "1", 0, *one, Soon())->succeeded);
  EXPECT_EQ(client_->Range("/l", {}, Soon())->kvs[0].lease, *one);
}

TEST_F(EtcdTest, RefusesClientsWithoutCertificate) {
  ClientOptions options = etcd_->supervisor().tls_client_options();
  EXPECT_TRUE(Client(options).Revision(Soon()));
  options.certificate_pem.clear();
  options.key_pem.clear();
  options.timeout = std::chrono::milliseconds(1500);
  Client stranger(options);
  EXPECT_FALSE(stranger.Revision(Soon()));
}

TEST_F(EtcdTest, SurvivesKill) {
  Result<TxnResult> written = client_->PutIf("/k", "1", 0, 0, Soon());
  ASSERT_TRUE(written);
  int before = etcd_->supervisor().pid();
  ASSERT_EQ(kill(before, SIGKILL), 0);
  // The read waits until etcd is back.
  Result<RangeResult> read = client_->Range("/k", {}, Soon());
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->kvs.size(), 1U);
  EXPECT_EQ(read->kvs[0].value, "1");
  EXPECT_NE(etcd_->supervisor().pid(), before);
}

TEST_F(EtcdTest, AnEtcdThatHangsHoldsNoProcessThatEnds) {
  std::stop_source ending, over;
  std::jthread closing([&] { CloseWhenSilent(*client_, ending.get_token(), over.get_token()); });
  ASSERT_TRUE(client_->Revision(Soon()));
  const int pid = etcd_->supervisor().pid();
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  // Calls that no deadline of their own ends within the test.
  ClientOptions patient = etcd_->supervisor().client_options();
  patient.timeout = std::chrono::hours(1);
  Client other(patient);
  const Limits hours{std::chrono::steady_clock::now() + std::chrono::hours(1), {}};
  std::jthread closing_other([&] { CloseWhenSilent(other, ending.get_token(), over.get_token()); });
  std::vector<std::jthread> callers;
  callers.emplace_back([&] { EXPECT_TRUE(other.Range("/k", {}, hours).error().Is(Code::kUnavailable)); });
  callers.emplace_back(
      [&] { EXPECT_TRUE(other.PutIf("/k", "", 0, 0, hours).error().Is(Code::kUnavailable)); });
  callers.emplace_back([&] {
    EXPECT_TRUE(other
                    .Watch(
                        "/k", "", 1, [] {}, [](WatchBatch) {}, {})
                    .Is(Code::kUnavailable));
  });
  ending.request_stop();
  callers.clear();
  closing_other.join();
  closing.join();
  EXPECT_THAT(other.Revision(hours).error().message(), ::testing::HasSubstr("the process ends"));
  EXPECT_TRUE(client_->Revision(hours).error().Is(Code::kUnavailable));
  ASSERT_EQ(kill(pid, SIGCONT), 0);
}

TEST_F(EtcdTest, AnEtcdThatAnswersIsAskedToTheEnd) {
  std::stop_source ending, over;
  ending.request_stop();
  std::jthread closing([&] { CloseWhenSilent(*client_, ending.get_token(), over.get_token()); });
  ASSERT_TRUE(client_->PutIf("/k", "1", 0, 0, Soon()));
  over.request_stop();
  closing.join();
  EXPECT_TRUE(client_->Revision(Soon()));
}

TEST_F(EtcdTest, SkipsDeadEndpoints) {
  ClientOptions options = etcd_->supervisor().tls_client_options();
  options.endpoints.push_back(etcd_->supervisor().client_options().endpoints[0]);
  options.endpoints.insert(options.endpoints.begin(), "https://127.0.0.1:1");
  Client client(options);
  EXPECT_TRUE(client.Revision(Soon()));
}

TEST(SupervisorTest, ReportsAnEtcdThatCannotStart) {
  std::string dir = testing::TempDir() + "keelson-etcd-bad-" + std::to_string(getpid());
  SupervisorOptions options;
  options.binary = "/bin/false";
  options.data_dir = dir;
  auto supervisor = Supervisor::Make(options);
  ASSERT_TRUE(supervisor);
  Result<> ran = (*supervisor)->Run({}, [] { FAIL(); });
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.error().message().find("exited with 1"), std::string::npos) << ran.error().message();
  EXPECT_TRUE(RemoveTree(dir));
}

TEST(PkiTest, IsKeptAndRepaired) {
  std::string dir = testing::TempDir() + "keelson-etcd-pki-" + std::to_string(getpid());
  ASSERT_TRUE(EnsurePki(dir));
  std::string ca = *ReadFile(dir + "/ca.crt"), client = *ReadFile(dir + "/client.crt");
  ASSERT_TRUE(EnsurePki(dir));
  EXPECT_EQ(*ReadFile(dir + "/ca.crt"), ca);
  EXPECT_EQ(*ReadFile(dir + "/client.crt"), client);
  ASSERT_TRUE(WriteFile(dir + "/client.key", "garbage"));
  ASSERT_TRUE(EnsurePki(dir));
  EXPECT_EQ(*ReadFile(dir + "/ca.crt"), ca);
  EXPECT_NE(*ReadFile(dir + "/client.crt"), client);
  EXPECT_TRUE(RemoveTree(dir));
}

}  // namespace
}  // namespace keelson::etcd
