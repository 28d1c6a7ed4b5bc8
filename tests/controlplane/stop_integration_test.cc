// A control plane that is told to stop while its etcd answers nothing, or nothing that needs a quorum.
#include <gmock/gmock.h>
#include <signal.h>

#include "lib/base/clock.h"
#include "tests/apiserver/cluster.h"

namespace keelson::controlplane {
namespace {

using apiserver::TestCluster;
using std::chrono::seconds;

// Far above the few seconds that it takes on a machine with nothing else to do, and far below the minute that waiting for etcd in each of
// the parts takes together.
constexpr seconds kLimit{30};

class StopTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  static seconds Stop(TestCluster& cluster, int& code) {
    const SteadyTime begin = SteadyTime::clock::now();
    code = cluster.Stop();
    return std::chrono::duration_cast<seconds>(SteadyTime::clock::now() - begin);
  }
};

TEST_F(StopTest, WithAnEtcdThatHangs) {
  TestCluster cluster({"--leader-elect=true"});
  const pid_t etcd = cluster.etcd_pid();
  ASSERT_GT(etcd, 0);
  ASSERT_EQ(::kill(etcd, SIGSTOP), 0);
  int code = -1;
  EXPECT_LT(Stop(cluster, code), kLimit) << cluster.Log();
  EXPECT_EQ(code, 0) << "it ends in order";
  EXPECT_EQ(::kill(etcd, 0), -1) << "its etcd ends with it";
  EXPECT_THAT(cluster.Log(), testing::HasSubstr("what waits for etcd is given up"));
  // What was written is there.
  cluster.Start();
  EXPECT_EQ(cluster.Kubectl({"get", "namespace", "default"}).code, 0);
  EXPECT_LT(Stop(cluster, code), kLimit);
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace keelson::controlplane
