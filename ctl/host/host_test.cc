#include "ctl/host/host.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <sstream>

#include "ctl/host/testing/memory_host.h"
#include "ctl/host/units.h"
#include "lib/base/file.h"

namespace keelson::ctl {
namespace {

class LocalHost : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-host-XXXXXX";
    root_ = ::mkdtemp(name);
    host_ = NewHost(root_ + "/");
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(root_)); }

  std::string root_;
  std::unique_ptr<Host> host_;
};

// What every host does; `host` is empty.
void KeepsFiles(Host& host) {
  EXPECT_FALSE(host.Exists("/etc/a/b"));
  EXPECT_TRUE(host.Read("/etc/a/b").error().Is(Code::kNotFound));
  ASSERT_TRUE(host.Write("/etc/a/b", "one", 0600));
  ASSERT_TRUE(host.Write("/etc/a/b", "two", 0600));
  ASSERT_TRUE(host.Write("/etc/a/c", "", 0644));
  EXPECT_EQ(*host.Read("/etc/a/b"), "two");
  EXPECT_TRUE(host.Exists("/etc/a"));
  EXPECT_EQ(*host.List("/etc/a"), (std::vector<std::string>{"b", "c"}));
  ASSERT_TRUE(host.LetGroupRead("/etc/a/b", "no-such-group-exists"));
  ASSERT_TRUE(host.Remove("/etc/a/b"));
  ASSERT_TRUE(host.Remove("/etc/a/b")) << "absent is fine";
  EXPECT_FALSE(host.Exists("/etc/a/b"));
  EXPECT_EQ(*host.List("/etc/a"), (std::vector<std::string>{"c"}));
}

TEST_F(LocalHost, KeepsFiles) { KeepsFiles(*host_); }
TEST(MemoryHost, KeepsFiles) {
  MemoryHost host;
  KeepsFiles(host);
}

TEST_F(LocalHost, StaysBelowItsRootWithTheModeThatWasAskedFor) {
  ASSERT_TRUE(host_->Write("/var/lib/x/key", "secret", 0600));
  struct stat found {};
  ASSERT_EQ(::stat((root_ + "/var/lib/x/key").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  EXPECT_EQ(host_->RealPath("/a"), root_ + "/a");
}

TEST_F(LocalHost, GivesFilesToTheGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_TRUE(host_->Write("/key", "secret", 0600));
  ASSERT_TRUE(host_->LetGroupRead("/key", "daemon"));
  struct stat found {};
  ASSERT_EQ(::stat((root_ + "/key").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0640u);
  EXPECT_NE(found.st_gid, 0u);
}

TEST_F(LocalHost, RunsPrograms) {
  EXPECT_TRUE(host_->HasProgram("sh"));
  EXPECT_FALSE(host_->HasProgram("no-such-program-exists"));
  EXPECT_EQ(*host_->Run({"sh", "-c", "echo out; echo err >&2"}), "out\nerr\n");
  const auto failed = host_->Run({"sh", "-c", "echo why; exit 3"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "sh -c echo why; exit 3: exit code 3: why");
  EXPECT_TRUE(host_->Ask({"no-such-program-exists"}).error().Is(Code::kNotFound));
}

TEST(DryRun, ChangesNothingAndRemembersWhatItWouldHaveWritten) {
  MemoryHost real;
  real.files["/etc/old"] = {"old", 0644, ""};
  std::ostringstream out;
  const auto dry = NewDryRunHost(real, out);
  ASSERT_TRUE(dry->Write("/etc/key", "secret", 0600));
  EXPECT_EQ(*dry->Read("/etc/key"), "secret");
  EXPECT_EQ(*dry->Read("/etc/old"), "old");
  ASSERT_TRUE(dry->Remove("/etc/old"));
  ASSERT_TRUE(RestartUnit(*dry, "kubelet"));
  EXPECT_EQ(real.files.size(), 1u);
  EXPECT_TRUE(real.commands.empty());
  EXPECT_EQ(out.str(),
            "[dryrun] Would write file \"/etc/key\" with mode 0600\n"
            "[dryrun] Would remove \"/etc/old\"\n"
            "[dryrun] Would run \"systemctl --no-block restart kubelet.service\"\n");
}

TEST(Units, SayWhenThereIsNoInitSystem) {
  MemoryHost host;
  host.programs.erase("systemctl");
  const auto started = RestartUnit(host, "kubelet");
  ASSERT_FALSE(started);
  EXPECT_TRUE(started.error().Is(Code::kUnimplemented));
  EXPECT_TRUE(started.error().message().starts_with("no supported init system detected"));
}

TEST(Units, StopsWhatExists) {
  MemoryHost host;
  host.units = {"kubelet"};
  ASSERT_TRUE(StopUnit(host, "kubelet"));
  ASSERT_TRUE(StopUnit(host, "kube-proxy"));
  EXPECT_EQ(host.commands, std::vector<std::string>{"systemctl stop kubelet.service"});
}

}  // namespace
}  // namespace keelson::ctl
