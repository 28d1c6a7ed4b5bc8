#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kubelet/volume/atomic_writer.h"
#include "kubelet/volume/volume_manager.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

class FakeMounter : public Mounter {
 public:
  Result<> MountTmpfs(const std::string& target, const std::string& options) override {
    mounts_[target] = "tmpfs " + options;
    return {};
  }
  Result<> Bind(const std::string& source, const std::string& target, bool read_only) override {
    char path[4096];
    ssize_t size = ::readlink(source.c_str(), path, sizeof(path));
    mounts_[target] = std::string(path, size > 0 ? static_cast<size_t>(size) : 0) + (read_only ? " ro" : "");
    return {};
  }
  Result<bool> IsMountPoint(const std::string& path) override { return mounts_.count(path) > 0; }
  Result<> Unmount(const std::string& target, bool) override {
    mounts_.erase(target);
    return {};
  }
  Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) override {
    std::vector<std::string> out;
    for (const auto& [point, what] : mounts_)
      if (point.compare(0, prefix.size(), prefix) == 0) out.insert(out.begin(), point);
    return out;
  }
  std::map<std::string, std::string> mounts_;
};

class Objects : public ObjectSource {
 public:
  Result<std::shared_ptr<const corev1::ConfigMap>> GetConfigMap(const std::string&,
                                                                const std::string& name) override {
    if (name != "config") return Error(Code::kNotFound, "no");
    auto map = std::make_shared<corev1::ConfigMap>();
    (*map->mutable_data())["a"] = value_;
    (*map->mutable_binary_data())["b"] = std::string("\0x", 2);
    return std::shared_ptr<const corev1::ConfigMap>(map);
  }
  Result<std::shared_ptr<const corev1::Secret>> GetSecret(const std::string&, const std::string&) override {
    return Error(Code::kNotFound, "no");
  }
  std::vector<std::shared_ptr<const corev1::Service>> Services(const std::string&) override { return {}; }
  Result<Token> RequestToken(const corev1::Pod&, const std::string& audience, int64_t seconds) override {
    ++requests_;
    return Token{"token-" + audience + "-" + std::to_string(requests_),
                 api::ToTime(clock_->Now() + std::chrono::seconds(seconds))};
  }
  std::string value_ = "one";
  int requests_ = 0;
  Clock* clock_ = nullptr;
};

class VolumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/volume_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    node_.paths.root = dir_;
    objects_.clock_ = &clock_;
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(NewEmptyDirPlugin(mounter_));
    plugins.push_back(NewHostPathPlugin());
    plugins.push_back(NewPayloadPlugin(mounter_, objects_, clock_));
    manager_ = std::make_unique<VolumeManager>(mounter_, std::move(plugins));
  }
  void TearDown() override { (void)RemoveTree(dir_); }

  corev1::Pod PodWith(const std::string& volumes) {
    corev1::Pod pod;
    auto decoded = api::DecodeJson(R"({"metadata":{"name":"p","namespace":"n","uid":"u","labels":{"k":"v"}},
        "spec":{"containers":[{"name":"c"}],"volumes":[)" +
                                       volumes + "]}}",
                                   pod);
    EXPECT_TRUE(decoded) << decoded.error().message();
    return pod;
  }

  std::string dir_;
  FakeClock clock_;
  FakeMounter mounter_;
  Objects objects_;
  NodeContext node_;
  std::unique_ptr<VolumeManager> manager_;
};

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
  for (const char* path : {"../x", "/x", "a/../../x", "..x", ""})
    EXPECT_EQ(WritePayload(dir_, {{path, {"1", 0644, {}}}}, {}, clock_).error().code(), Code::kInvalid)
        << path;
}

TEST_F(VolumeTest, ConfigMapRefreshes) {
  corev1::Pod pod =
      PodWith(R"({"name":"v","configMap":{"name":"config","items":[{"key":"a","path":"x/y","mode":256}]}})");
  auto paths = manager_->Mount(pod, node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  std::string path = paths->at("v");
  EXPECT_EQ(path, dir_ + "/pods/u/volumes/kubernetes.io~configmap/v");
  EXPECT_EQ(*ReadFile(path + "/x/y"), "one");
  objects_.value_ = "two";
  ASSERT_TRUE(manager_->Mount(pod, node_, {}));
  EXPECT_EQ(*ReadFile(path + "/x/y"), "two");
}

TEST_F(VolumeTest, MissingObjects) {
  EXPECT_EQ(
      manager_->Mount(PodWith(R"({"name":"v","secret":{"secretName":"s"}})"), node_, {}).error().message(),
      "MountVolume.SetUp failed for volume \"v\" : secret \"s\" not found");
  EXPECT_TRUE(
      manager_->Mount(PodWith(R"({"name":"v","secret":{"secretName":"s","optional":true}})"), node_, {}));
}

TEST_F(VolumeTest, ProjectedTokenIsRenewedInTime) {
  corev1::Pod pod = PodWith(R"({"name":"v","projected":{"sources":[
      {"serviceAccountToken":{"path":"token","expirationSeconds":1000,"audience":"me"}},
      {"configMap":{"name":"config"}},
      {"downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}}]}})");
  auto paths = manager_->Mount(pod, node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  std::string path = paths->at("v");
  EXPECT_EQ(*ReadFile(path + "/token"), "token-me-1");
  EXPECT_EQ(*ReadFile(path + "/labels"), "k=\"v\"");
  EXPECT_EQ(mounter_.mounts_.count(path), 1u) << "on tmpfs";
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
  EXPECT_EQ(mounter_.mounts_.at(paths->at("m")), "tmpfs size=1048576");
  ASSERT_TRUE(WriteFile(paths->at("d") + "/keep", "x"));
  ASSERT_TRUE(manager_->Mount(pod, node_, {}));
  EXPECT_TRUE(PathExists(paths->at("d") + "/keep"));
  ASSERT_TRUE(manager_->Remove(node_.paths, "u"));
  EXPECT_TRUE(mounter_.mounts_.empty());
  EXPECT_FALSE(PathExists(dir_ + "/pods/u"));
}

TEST_F(VolumeTest, HostPathTypes) {
  ASSERT_TRUE(WriteFile(dir_ + "/file", ""));
  struct Case {
    const char *path, *type;
    bool good;
  };
  for (const Case& c : {Case{"/file", "File", true},
                        {"/file", "Directory", false},
                        {"/absent", "Directory", false},
                        {"/made/deep", "DirectoryOrCreate", true},
                        {"/absent", "", true},
                        {"/file", "Socket", false}}) {
    corev1::Pod pod =
        PodWith(R"({"name":"v","hostPath":{"path":")" + dir_ + c.path + R"(","type":")" + c.type + "\"}}");
    EXPECT_EQ(manager_->Mount(pod, node_, {}).has_value(), c.good) << c.path << " " << c.type;
  }
  EXPECT_TRUE(PathExists(dir_ + "/made/deep"));
}

TEST_F(VolumeTest, SubPathStaysInTheVolume) {
  ASSERT_TRUE(MakeDirs(dir_ + "/vol"));
  ASSERT_EQ(::symlink("/etc", (dir_ + "/vol/out").c_str()), 0);
  ASSERT_TRUE(WriteFile(dir_ + "/vol/file", "x"));
  auto made = manager_->SubPath(node_.paths, "u", dir_ + "/vol", "a/b", "v", "c", 0, false);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(mounter_.mounts_.at(*made), dir_ + "/vol/a/b");
  auto file = manager_->SubPath(node_.paths, "u", dir_ + "/vol", "file", "v", "c", 1, true);
  ASSERT_TRUE(file);
  EXPECT_EQ(mounter_.mounts_.at(*file), dir_ + "/vol/file ro");
  EXPECT_FALSE(manager_->SubPath(node_.paths, "u", dir_ + "/vol", "out/passwd", "v", "c", 2, false));
}

}  // namespace
}  // namespace keelson::kubelet
