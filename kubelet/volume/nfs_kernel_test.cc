// NFS volumes on the kernel's own server and client. Needs modules that few test machines have: driven by
// tests/vm/run.sh, whose machine this test may change as it likes.
#include <fcntl.h>
#include <sys/mount.h>

#include <future>

#include "kubelet/stats/slow_volumes.h"
#include "kubelet/volume/testing/volume_test.h"
#include "lib/base/fd.h"

namespace keelson::kubelet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr char kServer[] = "10.9.0.2", kServer6[] = "fd09::2";
constexpr char kExport[] = "/tmp/exports";
// The server has a network of its own, which can be unplugged.
constexpr char kStart[] = R"(set -e
modprobe -a nfsd nfsv4
ip netns add files
ip link add files0 type veth peer name eth0 netns files
ip addr add 10.9.0.1/24 dev files0; ip addr add fd09::1/64 dev files0 nodad; ip link set files0 up
ip -n files addr add 10.9.0.2/24 dev eth0; ip -n files addr add fd09::2/64 dev eth0 nodad
ip -n files link set lo up; ip -n files link set eth0 up
mkdir -p /tmp/exports; mount -t tmpfs -o size=8m exports /tmp/exports; mkdir /tmp/exports/data
inside='nsenter --net=/run/netns/files'
$inside mount -t nfsd nfsd /proc/fs/nfsd
exportfs -o rw,fsid=0,no_root_squash,insecure,no_subtree_check '*:/tmp/exports'
$inside rpc.mountd --no-nfs-version 3
for time in lease grace; do $inside sh -c "echo 10 >/proc/fs/nfsd/nfsv4${time}time"; done  # files cannot be opened before
$inside rpc.nfsd --no-nfs-version 3 4
)";

class NfsKernelTest : public VolumeTest {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(::system(kStart), 0) << "no NFS server could be started"; }

  void SetUp() override {
    VolumeTest::SetUp();
    manager_ = std::make_unique<VolumeManager>(*real_mounter_, objects_,
                                               NewVolumePlugins(*real_mounter_, objects_, clock_));
  }
  // A claim "c" that is bound to a volume of the server.
  void Bind(const std::string& options) {
    objects_.Put<corev1::PersistentVolume>(
        R"({"metadata":{"name":"pv","uid":"pv1"},"spec":{"accessModes":["ReadWriteMany"],"capacity":{"storage":"1Mi"},
            "claimRef":{"namespace":"n","name":"c","uid":"c1"},"mountOptions":[)" +
        options + R"(],"nfs":{"server":")" + kServer + R"(","path":"/data"}}})");
    objects_.Put<corev1::PersistentVolumeClaim>(
        R"({"metadata":{"namespace":"n","name":"c","uid":"c1"},"spec":{"volumeName":"pv"},"status":{"phase":"Bound"}})");
  }
  static void Plug(bool in) {
    ASSERT_EQ(::system(in ? "ip link set files0 up" : "ip link set files0 down"), 0);
  }
  // As /proc/self/mounts has them.
  static std::string OptionsOf(const std::string& path) {
    auto mounts = ReadFile("/proc/self/mounts");
    if (!mounts) return "";
    const size_t point = mounts->find(" " + path + " ");
    return point == std::string::npos ? "" : mounts->substr(point, mounts->find('\n', point) - point);
  }

  const std::unique_ptr<Mounter> real_mounter_ = NewMounter();
};

TEST_F(NfsKernelTest, MountsReadsWritesAndLetsGo) {
  Bind(R"("nfsvers=4.2","noatime","hard")");
  const std::string inline6 =
      std::string(R"({"name":"six","nfs":{"server":")") + kServer6 + R"(","path":"/data","readOnly":true}})";
  const corev1::Pod pod = PodWith(R"({"name":"data","persistentVolumeClaim":{"claimName":"c"}},)" + inline6);
  auto paths = manager_->Mount(pod, node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  const std::string data = paths->at("data").path, six = paths->at("six").path;
  EXPECT_NE(OptionsOf(data).find("vers=4.2"), std::string::npos) << OptionsOf(data);
  EXPECT_NE(OptionsOf(data).find("noatime"), std::string::npos) << OptionsOf(data);
  EXPECT_NE(OptionsOf(six).find(" ro,"), std::string::npos) << OptionsOf(six);
  ASSERT_TRUE(WriteFile(data + "/word", "hello"));
  EXPECT_EQ(*ReadFile(std::string(kExport) + "/data/word"), "hello");
  EXPECT_EQ(*ReadFile(six + "/word"), "hello");
  EXPECT_EQ(WriteFile(six + "/word", "x").error().errnum(), EROFS);
  EXPECT_EQ(FileSystemOf(data).capacity, 8u << 20) << "of the server's file system";
  ASSERT_TRUE(manager_->Mount(pod, node_, {})) << "the next sync";
  // Parts of it are mounted on their own, and go first.
  ASSERT_TRUE(MakeDirs(data + "/sub"));
  auto part = manager_->SubPath(node_.paths, {"u", data, "sub", "data", "c", 0, false});
  ASSERT_TRUE(part) << part.error().message();
  ASSERT_TRUE(WriteFile(*part + "/file", "part"));
  EXPECT_EQ(*ReadFile(std::string(kExport) + "/data/sub/file"), "part");
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  EXPECT_EQ(OptionsOf(data) + OptionsOf(six), "");
  EXPECT_FALSE(PathExists(node_.paths.Pod("u")));
  EXPECT_TRUE(PathExists(std::string(kExport) + "/data/word")) << "what the server has is its own";
}

TEST_F(NfsKernelTest, SaysWhyItCannotMount) {
  const std::string problem =
      Problem(PodWith(std::string(R"({"name":"v","nfs":{"server":")") + kServer + R"(","path":"/absent"}})"));
  EXPECT_EQ(problem.rfind("MountVolume.SetUp failed for volume \"v\" : mount failed: exit code 32\n"
                          "Mounting command: mount\nMounting arguments: -t nfs 10.9.0.2:/absent ",
                          0),
            0u)
      << problem;
  EXPECT_NE(problem.find("No such file or directory"), std::string::npos) << problem;
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
}

TEST_F(NfsKernelTest, AServerThatIsAwayHoldsNobodyUp) {
  Bind(R"("nfsvers=4.2","hard")");
  const corev1::Pod pod = PodWith(R"({"name":"data","persistentVolumeClaim":{"claimName":"c"}})");
  auto paths = manager_->Mount(pod, node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  const std::string path = paths->at("data").path;
  FakeClock clock;
  SlowVolumes volumes(FileSystemOf, seconds(60), clock, seconds(20));
  const auto known = volumes.Latest(path);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->capacity, 8u << 20);

  Plug(false);
  // Who looks at it himself waits: or this test would prove nothing.
  auto hung = std::async(std::launch::async, [&] { return FileSystemOf(path).capacity; });
  EXPECT_EQ(hung.wait_for(seconds(10)), std::future_status::timeout);
  SlowVolumes impatient(FileSystemOf, seconds(60), clock, milliseconds(500));
  const auto begin = steady_clock::now();
  EXPECT_FALSE(impatient.Latest(path)) << "nothing was ever found";
  clock.Advance(seconds(61));
  const auto again = std::async(std::launch::async, [&] { return volumes.Latest(path); }).get();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->capacity, known->capacity) << "what was found last";
  EXPECT_TRUE(manager_->Mount(pod, node_, {})) << "a sync of the pod";
  EXPECT_LT(steady_clock::now() - begin, seconds(45));
  // A new mount waits, and no longer than it is wanted.
  std::stop_source stop;
  auto mounting = std::async(std::launch::async, [&] {
    return manager_->Mount(
        PodWith(std::string(R"({"name":"v","nfs":{"server":")") + kServer + R"(","path":"/data"}})", "other"),
        node_, stop.get_token());
  });
  EXPECT_EQ(mounting.wait_for(seconds(2)), std::future_status::timeout);
  stop.request_stop();
  EXPECT_EQ(mounting.get().error().code(), Code::kCancelled);

  // The pod goes all the same: by force, after a minute.
  Result<> gone = manager_->Remove(node_.paths, "u");
  for (int tries = 0; !gone && tries < 3; ++tries) gone = manager_->Remove(node_.paths, "u");
  EXPECT_TRUE(gone) << gone.error().message();
  EXPECT_EQ(OptionsOf(path), "");
  hung.get();  // the waiting call fails
  Plug(true);
  ASSERT_TRUE(manager_->Mount(pod, node_, {})) << "the server is back";
  EXPECT_EQ(FileSystemOf(path).capacity, 8u << 20);
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  ASSERT_TRUE(manager_->Remove(node_.paths, "other"));
}

}  // namespace
}  // namespace keelson::kubelet
