#include "lib/etcd/snapshot.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <future>
#include <thread>

#include "controlplane/etcd/testing/test_etcd.h"
#include "lib/base/file.h"

namespace keelson::etcd {
namespace {

Limits Soon() { return {SteadyTime::clock::now() + std::chrono::seconds(20), {}}; }

Result<> Check(const std::string& path) {
  KEELSON_RETURN_IF_ERROR(CheckSnapshot(path));
  return {};
}

Result<SnapshotInfo> Save(const ClientOptions& options, const std::string& path) {
  return SaveSnapshot(path, [&](const auto& each) { return Client(options).Snapshot(each, {}); });
}

class Snapshots : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    char made[] = "/tmp/keelson-snapshot-XXXXXX";
    dir_ = mkdtemp(made);
  }
  void TearDown() override {
    if (dir_.empty()) return;
    ASSERT_TRUE(RemoveTree(dir_));
  }
  std::string dir_;
};

TEST_F(Snapshots, NothingAcknowledgedIsLost) {
  TestEtcd live;
  Client client(live.supervisor().client_options());
  // Writers continue meanwhile: the snapshot must contain everything acknowledged before it was requested.
  std::atomic<int> acknowledged{0};
  std::jthread writer([&](std::stop_token stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      auto put = client.PutIf("/registry/k" + std::to_string(i), std::string(1000, 'v'), 0, 0, Soon());
      if (put && put->succeeded) acknowledged = i + 1;
    }
  });
  while (acknowledged < 50) std::this_thread::yield();
  const int before = acknowledged;
  const std::string path = dir_ + "/backup.db";
  auto saved = Save(live.supervisor().client_options(), path);
  ASSERT_TRUE(saved) << saved.error().message();
  writer.request_stop();
  writer.join();
  ASSERT_TRUE(client.Defragment(Soon()));
  EXPECT_FALSE(PathExists(path + ".part"));

  auto described = DescribeSnapshot(path);
  if (!described && described.error().Is(Code::kNotFound)) GTEST_SKIP() << described.error().message();
  ASSERT_TRUE(described) << described.error().message();
  EXPECT_NE(described->find("\"revision\""), std::string::npos);
  auto restored = RestoreSnapshot(path, dir_ + "/etcd/data");
  ASSERT_TRUE(restored) << restored.error().message();
  EXPECT_EQ(RestoreSnapshot(path, dir_ + "/etcd/data").error().code(), Code::kAlreadyExists);

  SupervisorOptions options;
  options.data_dir = dir_ + "/etcd";
  auto supervisor = Supervisor::Make(options);
  ASSERT_TRUE(supervisor) << supervisor.error().message();
  std::promise<void> ready;
  std::jthread runner(
      [&](std::stop_token stop) { EXPECT_TRUE((*supervisor)->Run(stop, [&] { ready.set_value(); })); });
  ready.get_future().wait();
  Client again((*supervisor)->client_options());
  for (int i = 0; i < before; ++i) {
    auto range = again.Range("/registry/k" + std::to_string(i), {}, Soon());
    ASSERT_TRUE(range && range->kvs.size() == 1) << i;
  }
}

TEST_F(Snapshots, DamageIsFound) {
  std::string path = dir_ + "/backup.db", bytes;
  {
    TestEtcd live;
    ASSERT_TRUE(Save(live.supervisor().client_options(), path));
    bytes = *ReadFile(path);
  }
  struct Case {
    std::string bytes, error;
  };
  std::string altered = bytes;
  altered[altered.size() / 2] = static_cast<char>(altered[altered.size() / 2] ^ 1);
  const Case cases[] = {
      {"", "this is no snapshot of etcd"},
      {std::string(4096, 'x'), "this is no snapshot of etcd"},
      {bytes.substr(0, bytes.size() - 100), "the snapshot is cut off, or has no hash"},
      {bytes.substr(0, bytes.size() - 512), "the snapshot is damaged: its hash does not fit"},
      {altered, "the snapshot is damaged: its hash does not fit"}};
  for (const Case& one : cases) {
    ASSERT_TRUE(WriteFile(path, one.bytes));
    for (const Result<>& result : {Check(path), RestoreSnapshot(path, dir_ + "/etcd/data")}) {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().message(), path + ": " + one.error);
    }
  }
  EXPECT_FALSE(PathExists(dir_ + "/etcd"));
  ClientOptions nowhere;
  nowhere.endpoints = {"unix://" + dir_ + "/none"};
  nowhere.timeout = std::chrono::milliseconds(100);
  EXPECT_EQ(Save(nowhere, dir_ + "/other.db").error().code(), Code::kUnavailable);
  EXPECT_FALSE(PathExists(dir_ + "/other.db"));
}

}  // namespace
}  // namespace keelson::etcd
