// Mounts and disks in memory, for tests. Not thread safe.
#pragma once

#include <unistd.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "kubelet/volume/disks.h"
#include "kubelet/volume/mounter.h"
#include "kubelet/volume/programs.h"
#include "lib/base/text.h"

namespace keelson::kubelet {

// Devices are names that stand for directories or files of a test.
class FakeDisks : public Disks {
 public:
  Result<FileKind> KindOf(const std::string& path) override {
    return devices.count(path) ? FileKind::kBlockDevice : real_->KindOf(path);
  }
  Result<linux::DiskContents> Probe(const std::string& device) override { return devices.at(device); }
  Result<ProgramEnd> Run(const std::vector<std::string>& argv) override {
    runs.push_back(Join(argv, " "));
    auto it = ends.find(argv.front());
    if (it != ends.end()) return it->second;
    if (argv.front().compare(0, 5, "mkfs.") == 0) {
      devices[argv.back()] = linux::DiskContents{argv.front().substr(5), ""};
    }
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
    for (const auto& [point, what] : mounts) {
      if (point == prefix || point.compare(0, prefix.size() + 1, prefix + "/") == 0) {
        out.insert(out.begin(), point);
      }
    }
    return out;
  }
  Result<> MakeShared(const std::string&) override { return {}; }
  FakeDisks& disks() override { return fake_disks; }

  FakeDisks fake_disks;

  std::map<std::string, std::string> mounts;
  std::vector<std::string> unmounted, unmounted_remote;
  std::set<std::string> busy;                     // stay mounted
  bool fail_mount = false, fail_unmount = false;  // the latter: of remote file systems
};

}  // namespace keelson::kubelet
