#include "csi/local/model/config.h"

#include <gtest/gtest.h>

#include <functional>

#include "csi/local/model/path.h"

namespace keelson::csi::local {
namespace {

Config Good() {
  Config config;
  config.endpoint = "unix:///run/csi.sock";
  config.node_id = "node-1.example";
  return config;
}

std::string Why(const Config& config) {
  auto valid = Validate(config);
  return valid ? "" : valid.error().message();
}

TEST(ConfigTest, DefaultsAreValid) {
  EXPECT_EQ(Why(Good()), "");
  EXPECT_EQ(Good().TopologyKey(), "topology.local.csi.keelson.dev/node");
}

TEST(ConfigTest, WhatIsMissingOrWrongIsNamed) {
  const std::pair<std::function<void(Config&)>, const char*> cases[] = {
      {[](Config& c) { c.endpoint = ""; }, "--csi-endpoint or CSI_ENDPOINT is required"},
      {[](Config& c) { c.endpoint = "tcp://0.0.0.0:1"; },
       "--csi-endpoint: \"tcp://0.0.0.0:1\" is not unix:// and an absolute path"},
      {[](Config& c) { c.node_id = ""; }, "--node-id is required"},
      {[](Config& c) { c.node_id = "a/b"; }, "--node-id: \"a/b\" cannot be the value of a label"},
      {[](Config& c) { c.driver_name = "-x"; }, "--driver-name: \"-x\" is not a driver's name"},
      {[](Config& c) { c.data_dir = "data"; }, "--data-dir: \"data\" is not an absolute path"},
      {[](Config& c) { c.data_dir = "/a/../b"; }, "--data-dir: \"/a/../b\" is not an absolute path"},
      {[](Config& c) { c.registration_dir = "x"; },
       "--kubelet-registration-dir: \"x\" is not an absolute path"},
      {[](Config& c) { c.max_volumes_per_node = -1; }, "--max-volumes-per-node is negative"},
      {[](Config& c) { c.lvm_volume_group = "g"; }, "--lvm-volume-group and --lvm-thin-pool go together"},
      {[](Config& c) { c.lvm_volume_group = "-g", c.lvm_thin_pool = "p"; },
       "--lvm-volume-group: \"-g\" is not the name of a volume group"},
      {[](Config& c) { c.lvm_volume_group = "g", c.lvm_thin_pool = "p/q"; },
       "--lvm-thin-pool: \"p/q\" is not the name of a logical volume"},
      {[](Config& c) { c.overprovision_ratio = 0.5; }, "--overprovision-ratio is not between 1 and 1000"},
  };
  for (const auto& [change, why] : cases) {
    Config config = Good();
    change(config);
    EXPECT_EQ(Why(config), why);
  }
}

TEST(ConfigTest, EndpointsAreUnixSockets) {
  EXPECT_EQ(*SocketPath("unix:///run/a.sock"), "/run/a.sock");
  EXPECT_EQ(*SocketPath("unix:/run/a.sock"), "/run/a.sock");
  EXPECT_EQ(*SocketPath("/run/a.sock"), "/run/a.sock");
  EXPECT_FALSE(SocketPath("unix://a.sock"));
}

TEST(ConfigTest, PathsAreClean) {
  for (const char* good :
       {"/", "/a", "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pvc/mount", "/a..b/.c"}) {
    EXPECT_TRUE(IsCleanAbsolutePath(good)) << good;
  }
  for (const char* bad : {"", "a", "some/path", "/a/", "/a//b", "/a/./b", "/a/../b", "/..", "//"}) {
    EXPECT_FALSE(IsCleanAbsolutePath(bad)) << bad;
  }
  EXPECT_FALSE(IsCleanAbsolutePath(std::string_view("/a\0b", 4)));
  EXPECT_FALSE(IsCleanAbsolutePath("/" + std::string(4096, 'a')));
}

}  // namespace
}  // namespace keelson::csi::local
