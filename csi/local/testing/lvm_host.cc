#include "csi/local/testing/lvm_host.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "csi/local/host/run.h"
#include "lib/base/file.h"
#include "lib/linux/loop.h"

namespace keelson::csi::local {

namespace {

constexpr off_t kDisk = off_t{1100} << 20;

}  // namespace

LvmHost::LvmHost(std::string dir)
    : dir_(std::move(dir)), real_(::getenv("KEELSON_REAL_LVM") != nullptr), path_(::getenv("PATH")) {
  if (real_) {
    MakeGroup();
    return;
  }
  EXPECT_TRUE(MakeDirs(dir_ + "/bin"));
  EXPECT_EQ(::symlink(KEELSON_FAKE_LVM, (dir_ + "/bin/lvm").c_str()), 0);
  ::setenv("PATH", (dir_ + "/bin:" + path_).c_str(), 1);
  ::setenv("FAKE_LVM_DIR", (dir_ + "/lvm").c_str(), 1);
}

void LvmHost::MakeGroup() {
  const std::string disk = dir_ + "/disk";
  EXPECT_TRUE(WriteFile(disk, ""));
  EXPECT_EQ(::truncate(disk.c_str(), kDisk), 0);
  auto loop = linux::AttachLoop(disk, {});
  ASSERT_TRUE(loop) << loop.error().message();
  device_ = loop->path;
  Run({"vgcreate", "--yes", kTestGroup, device_});
  Run({"lvcreate", "--yes", "--type", "thin-pool", "--size", "1g", "--name", kTestPool, kTestGroup});
}

LvmHost::~LvmHost() {
  if (real_) {
    Run({"vgremove", "--force", "--force", "--yes", kTestGroup});
    EXPECT_TRUE(linux::DetachLoop(device_));
  }
  ::setenv("PATH", path_.c_str(), 1);
}

void LvmHost::Run(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "lvm");
  auto ended = RunProgram(arguments);
  ASSERT_TRUE(ended) << ended.error().message();
  EXPECT_TRUE(ended->status.ok()) << ended->output;
}

std::vector<std::string> LvmHost::Names() const {
  auto ended = RunProgram({"lvm", "lvs", "--reportformat", "json", "--units", "b", "--nosuffix", "--binary",
                           "--options", kVolumeFields, kTestGroup},
                          {.apart = true});
  std::vector<std::string> names;
  auto volumes = ended ? ParseVolumes(ended->output) : Result<std::vector<LogicalVolume>>(ended.error());
  EXPECT_TRUE(volumes) << volumes.error().message();
  if (!volumes) return names;
  for (const LogicalVolume& volume : *volumes) {
    if (volume.pool == kTestPool) names.push_back(volume.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void LvmHost::StopZeroing() const {
  if (real_) {
    Run({"lvchange", "--yes", "--zero", "n", std::string(kTestGroup) + "/" + kTestPool});
    return;
  }
  EXPECT_TRUE(MakeDirs(dir_ + "/lvm"));
  EXPECT_TRUE(WriteFile(dir_ + "/lvm/settings.json", R"({"zero": 0})"));
}

void LvmHost::KillDriverAfter(int commands) const {
  if (commands == 0) {
    EXPECT_TRUE(RemoveFile(dir_ + "/lvm/kill_after"));
    return;
  }
  EXPECT_TRUE(MakeDirs(dir_ + "/lvm"));
  EXPECT_TRUE(WriteFile(dir_ + "/lvm/kill_after", std::to_string(commands)));
}

}  // namespace keelson::csi::local
