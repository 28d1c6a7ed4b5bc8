#include <sys/stat.h>

#include "kubelet/volume/atomic_writer.h"
#include "kubelet/volume/testing/volume_test.h"

namespace keelson::kubelet {
namespace {

TEST_F(VolumeTest, PayloadChangesAtOnce) {
  ASSERT_TRUE(*WritePayload(dir_, {{"a", {"1", 0644, {}}}, {"d/b", {"2", 0400, {}}}}, {}, clock_));
  EXPECT_EQ(*ReadFile(dir_ + "/a"), "1");
  EXPECT_EQ(*ReadFile(dir_ + "/d/b"), "2");
  struct stat info;
  ASSERT_EQ(::stat((dir_ + "/d/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0400u);
  EXPECT_FALSE(*WritePayload(dir_, {{"a", {"1", 0644, {}}}, {"d/b", {"2", 0400, {}}}}, {}, clock_)) << "same";
  ASSERT_TRUE(*WritePayload(dir_, {{"c", {"3", 0644, {}}}}, {}, clock_));
  EXPECT_FALSE(PathExists(dir_ + "/a"));
  EXPECT_EQ(*ReadFile(dir_ + "/c"), "3");
  EXPECT_EQ(ListDir(dir_)->size(), 3u) << "..data, one version, c";
}

TEST_F(VolumeTest, PayloadStaysInside) {
  for (const char* path : {"../x", "/x", "a/../../x", "..x", ""}) {
    EXPECT_EQ(WritePayload(dir_, {{path, {"1", 0644, {}}}}, {}, clock_).error().code(), Code::kInvalid)
        << path;
  }
}

TEST_F(VolumeTest, ConfigMapRefreshes) {
  corev1::Pod pod =
      PodWith(R"({"name":"v","configMap":{"name":"config","items":[{"key":"a","path":"x/y","mode":256}]}})");
  objects_.Put<corev1::ConfigMap>(R"({"metadata":{"name":"config","namespace":"n"},"data":{"a":"one"}})");
  auto paths = manager_->Mount(pod, node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  std::string path = paths->at("v").path;
  EXPECT_EQ(path, dir_ + "/pods/u/volumes/kubernetes.io~configmap/v");
  EXPECT_EQ(*ReadFile(path + "/x/y"), "one");
  objects_.Put<corev1::ConfigMap>(R"({"metadata":{"name":"config","namespace":"n"},"data":{"a":"two"}})");
  ASSERT_TRUE(manager_->Mount(pod, node_, {}));
  EXPECT_EQ(*ReadFile(path + "/x/y"), "two");
  objects_.failure = Error(Code::kUnavailable, "connection refused");
  EXPECT_TRUE(manager_->Mount(pod, node_, {})) << "what is there stays while the API server is away";
  EXPECT_FALSE(manager_->Mount(PodWith(R"({"name":"new","configMap":{"name":"config"}})"), node_, {}));
}

TEST_F(VolumeTest, MissingObjects) {
  EXPECT_EQ(
      manager_->Mount(PodWith(R"({"name":"v","secret":{"secretName":"s"}})"), node_, {}).error().message(),
      "MountVolume.SetUp failed for volume \"v\" : secret \"s\" not found");
  EXPECT_TRUE(
      manager_->Mount(PodWith(R"({"name":"v","secret":{"secretName":"s","optional":true}})"), node_, {}));
}

TEST_F(VolumeTest, RepositoriesAreNotCloned) {
  EXPECT_EQ(manager_->Mount(PodWith(R"({"name":"v","gitRepo":{"repository":"https://x"}})"), node_, {})
                .error()
                .message(),
            "MountVolume.SetUp failed for volume \"v\" : git-repo volume plugin has been disabled; if "
            "necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`");
}

TEST_F(VolumeTest, ProjectedTokenIsRenewedInTime) {
  objects_.Put<corev1::ConfigMap>(R"({"metadata":{"name":"config","namespace":"n"},"data":{"a":"one"}})");
  corev1::Pod pod = PodWith(R"({"name":"v","projected":{"sources":[
      {"serviceAccountToken":{"path":"token","expirationSeconds":1000,"audience":"me"}},
      {"configMap":{"name":"config"}},
      {"downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}}]}})");
  auto paths = manager_->Mount(pod, node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  std::string path = paths->at("v").path;
  EXPECT_EQ(*ReadFile(path + "/token"), "token-me-1");
  EXPECT_EQ(*ReadFile(path + "/labels"), "k=\"v\"");
  EXPECT_EQ(mounter_.mounts.count(path), 1u) << "on tmpfs";
  clock_.Advance(std::chrono::seconds(700));
  ASSERT_TRUE(manager_->Mount(pod, node_, {}));
  EXPECT_EQ(*ReadFile(path + "/token"), "token-me-1");
  clock_.Advance(std::chrono::seconds(200));
  ASSERT_TRUE(manager_->Mount(pod, node_, {}));
  EXPECT_EQ(*ReadFile(path + "/token"), "token-me-2");
}

TEST_F(VolumeTest, EmptyDirAndRemoval) {
  corev1::Pod pod =
      PodWith(R"({"name":"d","emptyDir":{}},{"name":"m","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}})");
  auto paths = manager_->Mount(pod, node_, {});
  ASSERT_TRUE(paths);
  EXPECT_EQ(mounter_.mounts.at(paths->at("m").path), "tmpfs size=1048576");
  ASSERT_TRUE(WriteFile(paths->at("d").path + "/keep", "x"));
  ASSERT_TRUE(manager_->Mount(pod, node_, {}));
  EXPECT_TRUE(PathExists(paths->at("d").path + "/keep"));
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  EXPECT_TRUE(mounter_.mounts.empty());
  EXPECT_FALSE(PathExists(dir_ + "/pods/u"));
}

TEST_F(VolumeTest, DirectoriesAreOpenAndPayloadsAreToRead) {
  objects_.Put<corev1::ConfigMap>(R"({"metadata":{"name":"c","namespace":"n"},"data":{"a":"one"}})");
  objects_.Put<corev1::Secret>(R"({"metadata":{"name":"s","namespace":"n"},"data":{"a":"b25l"}})");
  struct Case {
    const char* source;
    bool group;
    mode_t mode;
    bool read_only;
  };
  const char* labels = R"({"items":[{"path":"l","fieldRef":{"fieldPath":"metadata.labels"}}]})";
  const std::string downward = std::string(R"("downwardAPI":)") + labels;
  const std::string projected = R"("projected":{"sources":[{)" + downward + "}]}";
  int uid = 0;
  for (const Case& c : {Case{R"("emptyDir":{})", false, 0777, false},
                        {R"("emptyDir":{})", true, 02777, false},
                        {R"("emptyDir":{"medium":"Memory"})", false, 01777, false},
                        {R"("emptyDir":{"medium":"Memory"})", true, 03777, false},
                        {R"("configMap":{"name":"c"})", false, 0777, true},
                        {R"("configMap":{"name":"c"})", true, 02777, true},
                        {R"("secret":{"secretName":"s"})", false, 01777, true},
                        {R"("secret":{"secretName":"s"})", true, 03777, true},
                        {downward.c_str(), false, 01777, true},
                        {projected.c_str(), true, 03777, true}}) {
    corev1::Pod pod = PodWith(R"({"name":"v",)" + std::string(c.source) + "}", std::to_string(++uid));
    if (c.group) pod.mutable_spec()->mutable_security_context()->set_fs_group(::getgid());
    for (const char* when : {"first", "again"}) {
      auto paths = manager_->Mount(pod, node_, {});
      ASSERT_TRUE(paths) << c.source << ": " << paths.error().message();
      struct stat info = {};
      ASSERT_EQ(::stat(paths->at("v").path.c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 07777, c.mode) << c.source << " " << when;
      EXPECT_EQ(paths->at("v").read_only, c.read_only) << c.source;
    }
  }
}

TEST_F(VolumeTest, EmptyDirIsSetUpOnce) {
  corev1::Pod pod = PodWith(R"({"name":"d","emptyDir":{}})");
  std::string path = VolumeDir("kubernetes.io/empty-dir", "d");
  // A kubelet before this one got as far as the directory.
  ASSERT_TRUE(MakeDirs(path, 0700));
  ASSERT_TRUE(manager_->Mount(pod, node_, {}));
  struct stat info = {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0777u);
  ASSERT_EQ(::chmod(path.c_str(), 0711), 0) << "as a container may do";
  ASSERT_TRUE(manager_->Mount(pod, node_, {}));
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0711u);
}

TEST_F(VolumeTest, EmptyDirMedia) {
  node_.allocatable["memory"] = *api::Amount::Parse("1Gi");
  struct Case {
    const char *source, *limits, *mounted, *problem;
  };
  for (const Case& c : {
           Case{R"({"medium":"Memory"})", "{}", "tmpfs size=1073741824", ""},
           {R"({"medium":"Memory"})", R"({"memory":"64Mi"})", "tmpfs size=67108864", ""},
           {R"({"medium":"Memory","sizeLimit":"1Mi"})", R"({"memory":"64Mi"})", "tmpfs size=1048576", ""},
           {R"({"medium":"Memory","sizeLimit":"4Gi"})", "{}", "tmpfs size=1073741824", ""},
           {R"({"medium":"HugePages"})", R"({"hugepages-2Mi":"4Mi"})", "hugetlbfs nodev pagesize=2M", ""},
           {R"({"medium":"HugePages-1Gi"})", R"({"hugepages-1Gi":"1Gi","hugepages-2Mi":"4Mi"})",
            "hugetlbfs nodev pagesize=1G", ""},
           {R"({"medium":"HugePages"})", R"({"hugepages-1Gi":"1Gi","hugepages-2Mi":"4Mi"})", "",
            "medium: HugePages can't be used if container requests multiple huge page sizes"},
           {R"({"medium":"HugePages-1Gi"})", R"({"hugepages-2Mi":"4Mi"})", "",
            "medium HugePages-1Gi: hugePages storage requested, but there is no resource request for huge "
            "pages"},
           {R"({"medium":"Tape"})", "{}", "", "unknown storage medium \"Tape\""},
       }) {
    corev1::Pod pod = PodWith(std::string(R"({"name":"m","emptyDir":)") + c.source + "}");
    corev1::Container parsed;
    ASSERT_TRUE(api::DecodeJson(
        std::string(R"({"name":"c","resources":{"limits":)") + c.limits + ",\"requests\":" + c.limits + "}}",
        parsed));
    *pod.mutable_spec()->mutable_containers(0)->mutable_resources() = parsed.resources();
    std::string wanted =
        *c.problem ? std::string("MountVolume.SetUp failed for volume \"m\" : ") + c.problem : std::string();
    EXPECT_EQ(Problem(pod), wanted) << c.source;
    EXPECT_EQ(mounter_.mounts[VolumeDir("kubernetes.io/empty-dir", "m")], c.mounted) << c.source;
    mounter_.mounts.clear();
    ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  }
}

TEST_F(VolumeTest, HostPathTypes) {
  ASSERT_TRUE(WriteFile(dir_ + "/file", ""));
  struct Case {
    const char *path, *type, *problem;
  };
  for (const Case& c : {Case{"/file", "File", nullptr},
                        {"/file", "Directory", "a directory"},
                        {"/file", "DirectoryOrCreate", "a directory"},
                        {"/absent", "Directory", "a directory"},
                        {"/made/deep", "DirectoryOrCreate", nullptr},
                        {"/made/file", "FileOrCreate", nullptr},
                        {"/made", "FileOrCreate", "a file"},
                        {"/absent", "", nullptr},
                        {"/file", "Socket", "a socket file"},
                        {"/file", "CharDevice", "a character device"},
                        {"/file", "BlockDevice", "a block device"}}) {
    corev1::Pod pod =
        PodWith(R"({"name":"v","hostPath":{"path":")" + dir_ + c.path + R"(","type":")" + c.type + "\"}}");
    std::string wanted =
        c.problem ? "MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: " + dir_ +
                        c.path + " is not " + c.problem
                  : std::string();
    EXPECT_EQ(Problem(pod), wanted) << c.path << " " << c.type;
  }
  EXPECT_TRUE(PathExists(dir_ + "/made/deep"));
}

TEST_F(VolumeTest, NfsIsMountedByTheHelper) {
  struct Case {
    const char *source, *mounted;
  };
  for (const Case& c : {Case{R"({"server":"files","path":"/x"})", "nfs files:/x"},
                        {R"({"server":"fd00::1","path":"/x","readOnly":true})", "nfs [fd00::1]:/x ro"}}) {
    ASSERT_EQ(Problem(PodWith(std::string(R"({"name":"v","nfs":)") + c.source + "}")), "");
    EXPECT_EQ(mounter_.mounts[VolumeDir("kubernetes.io/nfs", "v")], c.mounted);
    EXPECT_EQ(Problem(PodWith(std::string(R"({"name":"v","nfs":)") + c.source + "}")), "") << "as it is";
    mounter_.fail_unmount = true;
    EXPECT_FALSE(manager_->Remove(node_.paths, "u"));
    EXPECT_TRUE(PathExists(VolumeDir("kubernetes.io/nfs", "v")));
    mounter_.fail_unmount = false;
    ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
    EXPECT_EQ(mounter_.unmounted_remote.back(), VolumeDir("kubernetes.io/nfs", "v"));
  }
  mounter_.fail_mount = true;
  EXPECT_EQ(Problem(PodWith(R"({"name":"v","nfs":{"server":"files","path":"/x"}})")),
            "MountVolume.SetUp failed for volume \"v\" : mount failed: exit code 32");
}

TEST_F(VolumeTest, OnlyWhatIsMountedIsSetUp) {
  corev1::Pod pod = PodWith(R"({"name":"v","secret":{"secretName":"absent"}})");
  pod.mutable_spec()->mutable_containers(0)->clear_volume_mounts();
  EXPECT_EQ(Problem(pod), "");
}

TEST_F(VolumeTest, NothingBelowAMountIsRemoved) {
  ASSERT_EQ(Problem(PodWith(R"({"name":"m","emptyDir":{"medium":"Memory"}})")), "");
  std::string path = VolumeDir("kubernetes.io/empty-dir", "m");
  mounter_.busy.insert(path);
  ASSERT_TRUE(WriteFile(path + "/keep", "x"));
  EXPECT_FALSE(manager_->Remove(node_.paths, "u"));
  EXPECT_TRUE(PathExists(path + "/keep"));
  mounter_.busy.clear();
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  EXPECT_FALSE(PathExists(path));
}

TEST_F(VolumeTest, SubPathStaysInTheVolume) {
  ASSERT_TRUE(MakeDirs(dir_ + "/vol/sub"));
  ASSERT_EQ(::chmod((dir_ + "/vol").c_str(), 0777), 0);
  ASSERT_EQ(::symlink("/etc", (dir_ + "/vol/out").c_str()), 0);
  ASSERT_EQ(::symlink("../..", (dir_ + "/vol/up").c_str()), 0);
  ASSERT_EQ(::symlink("sub", (dir_ + "/vol/in").c_str()), 0);
  ASSERT_TRUE(WriteFile(dir_ + "/vol/file", "x"));
  struct Case {
    const char* path;
    bool read_only;
    const char* bound;  // null: refused
  };
  int index = 0;
  for (const Case& c : {Case{"a/b", false, "/vol/a/b"},
                        {"file", true, "/vol/file ro"},
                        {"in", false, "/vol/sub"},
                        {"in/new", false, "/vol/sub/new"},
                        {"out/passwd", false, nullptr},
                        {"out/new", false, nullptr},
                        {"up", false, nullptr},
                        {"../x", false, nullptr},
                        {"file/x", false, nullptr}}) {
    auto made = manager_->SubPath(node_.paths, {"u", dir_ + "/vol", c.path, "v", "c", index++, c.read_only});
    ASSERT_EQ(made.has_value(), c.bound != nullptr) << c.path;
    if (c.bound) {
      EXPECT_EQ(mounter_.mounts.at(*made), dir_ + c.bound);
    }
  }
  struct stat info = {};
  ASSERT_EQ(::stat((dir_ + "/vol/a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0777u) << "as open as the volume";
  for (const char* path : {"out", "file/x"}) {
    auto refused = manager_->SubPath(node_.paths, {"u", dir_ + "/vol", path, "v", "c", 9, false});
    EXPECT_EQ(refused.error().message(), "failed to prepare subPath for volumeMount \"v\" of container \"c\"")
        << "no word of the host";
  }
}

}  // namespace
}  // namespace keelson::kubelet
