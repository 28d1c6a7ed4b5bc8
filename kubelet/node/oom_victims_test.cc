#include "kubelet/node/oom_victims.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace keelson::kubelet {
namespace {

constexpr char kOne[] =
    "6,2,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/pods/"
    "pod1,"
    "task_memcg=/pods/pod1/0123456789ab,task=dd,pid=5,uid=0\n SUBSYSTEM=memory\n";
constexpr char kAll[] =
    "6,5,1,-;Tasks in /pods.slice/pod2.slice/cri-containerd-ba9876543210.scope are going to be killed due to "
    "memory.oom.group set\n";

TEST(OomVictimGroup, IsInTheKernelsRecords) {
  struct Case {
    std::string record;
    std::optional<std::string> group;
  };
  for (const Case& c :
       {Case{kOne, "/pods/pod1/0123456789ab"},
        {kAll, "/pods.slice/pod2.slice/cri-containerd-ba9876543210.scope"},
        {"6,2,1,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
         "task_memcg=/pods/pod1/a,task=stress,pid=77,uid=0",
         "/pods/pod1/a"},
        {"3,3,1,-;Memory cgroup out of memory: Killed process 5 (dd) total-vm:1kB", std::nullopt},
        {"6,2,1,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null)", std::nullopt},
        {"6,2,1,-;eth0: link up\n task_memcg=/pods/pod1/a", std::nullopt},
        {"6,2,1,-;Tasks in /pods/pod1 are well", std::nullopt},
        {"", std::nullopt}}) {
    EXPECT_EQ(OomVictimGroup(c.record), c.group) << c.record;
  }
}

TEST(OomVictims, AreKnownAsSoonAsTheKernelHasWrittenOfThem) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd kernel(ends[0]);
  OomVictims victims{UniqueFd(ends[1])};
  auto write = [&](std::string_view record) {
    ASSERT_EQ(::write(kernel.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));
  };
  EXPECT_FALSE(victims.Has("0123456789ab"));
  write("6,1,1,-;eth0: link up");
  write(kOne);
  EXPECT_TRUE(victims.Has("0123456789ab"));
  EXPECT_FALSE(victims.Has("ba9876543210"));
  write(kAll);
  EXPECT_TRUE(victims.Has("ba9876543210"));
  EXPECT_TRUE(victims.Has("0123456789ab")) << "a kubelet may ask again";
}

TEST(OomVictims, NobodyIsWhereThereIsNoLog) {
  OomVictims victims = OomVictims::OfKernelLog("/nonexistent/kmsg");
  EXPECT_FALSE(victims.Has("0123456789ab"));
}

}  // namespace
}  // namespace keelson::kubelet
