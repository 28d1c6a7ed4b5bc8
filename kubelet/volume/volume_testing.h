// Mounts in memory and a volume manager on a temporary directory, for tests.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "kubelet/testing/fake_objects.h"
#include "kubelet/volume/volume_manager.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

// Devices are names that stand for directories or files of a test.
class FakeDisks : public Disks {
 public:
  Result<FileKind> KindOf(const std::string& path) override {
    return devices.count(path) ? FileKind::kBlockDevice : real_->KindOf(path);
  }
  Result<linux::DiskContents> Probe(const std::string& device) override { return devices.at(device); }
  Result<ProgramEnd> Run(const std::vector<std::string>& argv) override {
    runs.push_back(Join(argv, ' '));
    auto it = ends.find(argv.front());
    if (it != ends.end()) return it->second;
    if (argv.front().compare(0, 5, "mkfs.") == 0)
      devices[argv.back()] = linux::DiskContents{argv.front().substr(5), ""};
    return ProgramEnd{event::ExitStatus{}, ""};
  }

  std::map<std::string, Result<linux::DiskContents>> devices;
  std::map<std::string, Result<ProgramEnd>> ends;  // by program; the others succeed
  std::vector<std::string> runs;

 private:
  const std::unique_ptr<Disks> real_ = NewDisks();
};

class FakeMounter : public Mounter {
 public:
  Result<> MountTmpfs(const std::string& target, const std::string& options) override {
    mounts[target] = "tmpfs " + options;
    return {};
  }
  Result<> Bind(const std::string& source, const std::string& target, bool read_only) override {
    char path[4096];
    ssize_t size = ::readlink(source.c_str(), path, sizeof(path));
    std::string from = size > 0 ? std::string(path, static_cast<size_t>(size)) : source;
    mounts[target] = from + (read_only ? " ro" : "");
    return {};
  }
  Result<> Mount(const std::string& source, const std::string& target, const std::string& type,
                 const std::vector<std::string>& options, std::stop_token) override {
    if (fail_mount) return Error(Code::kUnavailable, "mount failed: exit code 32");
    mounts[target] = type + " " + source;
    for (const std::string& option : options) mounts[target] += " " + option;
    return {};
  }
  Result<bool> IsMountPoint(const std::string& path) override { return mounts.count(path) > 0; }
  Result<> Unmount(const std::string& target, bool) override {
    unmounted.push_back(target);
    if (!busy.count(target)) mounts.erase(target);
    return {};
  }
  Result<> UnmountRemote(const std::string& target, std::stop_token) override {
    if (fail_unmount) return Error(Code::kTimeout, "unmount failed: timed out");
    unmounted_remote.push_back(target);
    return Unmount(target, false);
  }
  Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) override {
    std::vector<std::string> out;
    for (const auto& [point, what] : mounts)
      if (point == prefix || point.compare(0, prefix.size() + 1, prefix + "/") == 0)
        out.insert(out.begin(), point);
    return out;
  }
  Result<> MakeShared(const std::string&) override { return {}; }
  FakeDisks& disks() override { return fake_disks; }

  FakeDisks fake_disks;

  std::map<std::string, std::string> mounts;
  std::vector<std::string> unmounted, unmounted_remote;
  std::set<std::string> busy;                     // stay mounted
  bool fail_mount = false, fail_unmount = false;  // the latter: of servers elsewhere
};

class VolumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/volume_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    node_.paths.root = dir_;
    Use(NewVolumePlugins(mounter_, objects_, clock_));
  }
  void TearDown() override { (void)RemoveTree(dir_); }

  void Use(std::vector<std::unique_ptr<VolumePlugin>> plugins) {
    manager_ = std::make_unique<VolumeManager>(mounter_, objects_, std::move(plugins),
                                               [this] { return node_object_; });
  }
  // Its container mounts all the volumes.
  corev1::Pod PodWith(const std::string& volumes, const std::string& uid = "u") {
    corev1::Pod pod;
    auto decoded = api::DecodeJson(R"({"metadata":{"name":"p","namespace":"n","labels":{"k":"v"}},
        "spec":{"containers":[{"name":"c"}],"volumes":[)" +
                                       volumes + "]}}",
                                   pod);
    EXPECT_TRUE(decoded) << decoded.error().message();
    pod.mutable_metadata()->set_uid(uid);
    for (const auto& volume : pod.spec().volumes())
      pod.mutable_spec()->mutable_containers(0)->add_volume_mounts()->set_name(volume.name());
    return pod;
  }
  std::string Problem(const corev1::Pod& pod) {
    auto mounted = manager_->Mount(pod, node_, {});
    return mounted ? "" : mounted.error().message();
  }
  std::string VolumeDir(const std::string& plugin, const std::string& name, const std::string& uid = "u") {
    return node_.paths.Volume(uid, plugin, name);
  }

  std::string dir_;
  FakeClock clock_;
  FakeMounter mounter_;
  FakeObjects objects_{clock_};
  NodeContext node_;
  std::shared_ptr<const corev1::Node> node_object_;
  std::unique_ptr<VolumeManager> manager_;
};

}  // namespace keelson::kubelet
