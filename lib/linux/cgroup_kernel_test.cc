// What limits do to processes, on this machine's hierarchy: v1, v1-hybrid or v2.
#include <fcntl.h>
#include <glob.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "lib/base/file.h"
#include "lib/linux/cgroup.h"
#include "lib/linux/memory_alarm.h"

namespace keelson::linux {
namespace {

std::vector<std::string> Glob(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> out;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  return out;
}

class CgroupKernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    Result<Cgroups> found = Cgroups::Detect();
    if (!found) GTEST_SKIP() << found.error().message();
    cgroups_.emplace(std::move(*found));
    root_ = "/keelson-test-" + std::to_string(::getpid());
    path_ = root_ + "/pod";
  }
  void TearDown() override {
    if (!cgroups_) return;
    EXPECT_TRUE(cgroups_->Remove(root_));
    EXPECT_FALSE(cgroups_->Exists(root_));
  }

  // Runs `body` in a process inside the cgroup, in every hierarchy. The process exits with its value.
  pid_t Start(const std::function<int()>& body) {
    std::vector<std::string> joins = Glob("/sys/fs/cgroup" + path_ + "/cgroup.procs");
    for (const std::string& v1 : Glob("/sys/fs/cgroup/*" + path_ + "/cgroup.procs")) joins.push_back(v1);
    EXPECT_FALSE(joins.empty());
    pid_t pid = ::fork();
    if (pid != 0) return pid;
    for (const std::string& join : joins) {
      int fd = ::open(join.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd < 0 || ::write(fd, "0", 1) != 1) ::_exit(99);
      ::close(fd);
    }
    ::_exit(body());
  }
  int StatusOf(pid_t pid) {
    int status = -1;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return status;
  }

  std::optional<Cgroups> cgroups_;
  std::string root_, path_;
};

// Whether the process can use that many bytes.
int Touch(size_t bytes) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return memory == MAP_FAILED ? 1 : 0;
}

TEST_F(CgroupKernelTest, WhoTakesMoreMemoryIsKilled) {
  ASSERT_TRUE(cgroups_->Create(path_, {.memory_limit_bytes = 32 << 20}));
  int within = StatusOf(Start([] { return Touch(8 << 20); }));
  EXPECT_TRUE(WIFEXITED(within) && WEXITSTATUS(within) == 0) << within;
  int beyond = StatusOf(Start([] { return Touch(128 << 20); }));
  EXPECT_TRUE(WIFSIGNALED(beyond) && WTERMSIG(beyond) == SIGKILL) << beyond;
  // A raised limit applies at once.
  ASSERT_TRUE(cgroups_->Update(path_, {.memory_limit_bytes = 256 << 20}));
  int raised = StatusOf(Start([] { return Touch(128 << 20); }));
  EXPECT_TRUE(WIFEXITED(raised) && WEXITSTATUS(raised) == 0) << raised;
}

TEST_F(CgroupKernelTest, NoMoreProcessesThanAllowed) {
  ASSERT_TRUE(cgroups_->Create(path_, {.pids_max = 3}));
  // The number of children that could be started.
  int status = StatusOf(Start([] {
    ::setpgid(0, 0);
    int started = 0;
    for (; started < 10; ++started) {
      pid_t child = ::fork();
      if (child < 0) break;
      if (child == 0) {
        ::pause();
        ::_exit(0);
      }
    }
    ::signal(SIGTERM, SIG_IGN);
    ::kill(0, SIGTERM);
    while (::wait(nullptr) > 0) {
    }
    return started;
  }));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

TEST_F(CgroupKernelTest, KnowsWhoIsInsideAndStaysWhileSomebodyIs) {
  ASSERT_TRUE(cgroups_->Create(path_, {.cpu_shares = 512, .cpu_quota_us = 20000}));
  int hold[2], joined[2];
  ASSERT_EQ(::pipe(hold), 0);
  ASSERT_EQ(::pipe(joined), 0);
  pid_t pid = Start([&] {
    char c = 0;
    ::close(hold[1]);
    (void)!::write(joined[1], "j", 1);
    return static_cast<int>(::read(hold[0], &c, 1));
  });
  char c = 0;
  ASSERT_EQ(::read(joined[0], &c, 1), 1);
  EXPECT_EQ(cgroups_->Processes(root_), std::vector<pid_t>{pid});
  Result<> removed = cgroups_->Remove(root_);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().errnum(), EBUSY) << removed.error().message();
  EXPECT_TRUE(cgroups_->Usage(path_).memory_bytes.has_value());
  EXPECT_EQ(cgroups_->Children(root_), std::vector<std::string>{"pod"});
  ::close(hold[1]);
  EXPECT_EQ(StatusOf(pid), 0);
  for (int fd : {hold[0], joined[0], joined[1]}) ::close(fd);
}

TEST_F(CgroupKernelTest, LimitsReadBackAsWritten) {
  ASSERT_TRUE(cgroups_->Create(path_, {.cpu_shares = 1024, .cpu_quota_us = 50000}));
  auto read = [&](const std::string& v1, const std::string& v2) {
    for (const std::string& file : Glob((cgroups_->unified() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu*") +
                                        path_ + "/" + (cgroups_->unified() ? v2 : v1))) {
      std::string text = ReadFile(file).value_or("");
      return text.substr(0, text.find('\n'));
    }
    return std::string("no file");
  };
  EXPECT_EQ(read("cpu.shares", "cpu.weight"), cgroups_->unified() ? "39" : "1024");
  EXPECT_EQ(read("cpu.cfs_quota_us", "cpu.max"), cgroups_->unified() ? "50000 100000" : "50000");
  ASSERT_TRUE(cgroups_->Update(path_, {.cpu_quota_us = -1}));
  EXPECT_EQ(read("cpu.cfs_quota_us", "cpu.max"), cgroups_->unified() ? "max 100000" : "-1");
}

TEST_F(CgroupKernelTest, TellsOfMemoryThatRunsShort) {
  ASSERT_TRUE(cgroups_->Create(path_, {.memory_limit_bytes = 32 << 20}));
  MemoryAlarm alarm(*cgroups_, {root_, path_});
  ASSERT_TRUE(alarm.Arm(1, 16 << 20));
  EXPECT_FALSE(alarm.Wait(std::chrono::milliseconds(1), {}));
  const pid_t pid = Start([] { return Touch(128 << 20); });  // more than the limit
  EXPECT_TRUE(alarm.Wait(std::chrono::seconds(60), {}));
  StatusOf(pid);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(alarm.Wait(std::chrono::hours(1), stop.get_token()));
}

}  // namespace
}  // namespace keelson::linux
