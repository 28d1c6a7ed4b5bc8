#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/node/node_ipam.h"
#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {
namespace {

TEST(NodeIpamTest, GivesEveryNodeItsBlock) {
  TestCluster cluster;
  Options options;
  options.cluster_cidrs = {"10.244.0.0/16", "fd00::/56"};
  auto pools = NodeIpamController::MakePools(options);
  ASSERT_TRUE(pools) << pools.error().message();
  NodeIpamController& ipam = cluster.Make<NodeIpamController>(*pools);
  corev1::Node taken = NodeNamed("a-taken");
  taken.mutable_spec()->set_pod_cidr("10.244.0.0/24");
  taken.mutable_spec()->add_pod_cidrs("10.244.0.0/24");
  taken.mutable_spec()->add_pod_cidrs("fd00::/64");
  cluster.fake->Put(taken);
  cluster.fake->Put(NodeNamed("b-new"));
  cluster.Start();
  cluster.Drain({&ipam});
  auto node = cluster.Get<corev1::Node>("", "b-new");
  EXPECT_EQ(node.spec().pod_cidr(), "10.244.1.0/24");
  ASSERT_EQ(node.spec().pod_cidrs_size(), 2);
  EXPECT_EQ(node.spec().pod_cidrs(1), "fd00:0:0:1::/64");
  EXPECT_TRUE(cluster.errors.empty());
}

// Blocks of other sizes than today's, and of several nodes within one of today's.
TEST(NodeIpamTest, WhatNodesHaveIsNotGivenOutAgainWhateverItsSize) {
  TestCluster cluster;
  Options options;
  options.cluster_cidrs = {"10.244.0.0/21"};  // eight blocks
  auto pools = NodeIpamController::MakePools(options);
  ASSERT_TRUE(pools) << pools.error().message();
  NodeIpamController& ipam = cluster.Make<NodeIpamController>(*pools);
  auto put = [&](const std::string& name, const std::string& block) {
    corev1::Node node = NodeNamed(name);
    if (!block.empty()) {
      node.mutable_spec()->set_pod_cidr(block);
      node.mutable_spec()->add_pod_cidrs(block);
    }
    cluster.fake->Put(node);
  };
  auto block_of = [&](const std::string& name) {
    return cluster.Get<corev1::Node>("", name).spec().pod_cidr();
  };
  put("small-1", "10.244.0.0/25");
  put("small-2", "10.244.0.128/25");
  put("large", "10.244.2.0/23");
  put("elsewhere", "192.168.0.0/24");
  put("new-1", "");
  put("new-2", "");
  cluster.Start();
  cluster.Drain({&ipam});
  EXPECT_EQ(block_of("new-1"), "10.244.1.0/24");
  EXPECT_EQ(block_of("new-2"), "10.244.4.0/24");
  for (const char* gone : {"small-1", "large"}) ASSERT_TRUE(cluster.api.Delete<corev1::Node>("", gone));
  cluster.Drain({&ipam});
  for (const char* name : {"new-3", "new-4", "new-5", "new-6", "new-7"}) put(name, "");
  cluster.Drain({&ipam});
  EXPECT_EQ(block_of("new-6"), "10.244.2.0/24");
  EXPECT_EQ(block_of("new-7"), "10.244.3.0/24");
  EXPECT_TRUE(cluster.errors.empty());
  put("too-many", "");  // 10.244.0.0/24 is used by half
  cluster.Drain({&ipam});
  EXPECT_EQ(block_of("too-many"), "");
  ASSERT_TRUE(cluster.api.Delete<corev1::Node>("", "small-2"));
  cluster.Drain({&ipam});
  cluster.Advance(std::chrono::minutes(20), {&ipam});
  EXPECT_EQ(block_of("too-many"), "10.244.0.0/24");
}

TEST(NodeIpamTest, NodeThatGoesGetsNothing) {
  TestCluster cluster;
  Options options;
  options.cluster_cidrs = {"10.244.0.0/16"};
  NodeIpamController& ipam = cluster.Make<NodeIpamController>(*NodeIpamController::MakePools(options));
  corev1::Node node = NodeNamed("n");
  node.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  cluster.fake->Put(node);
  cluster.Start();
  cluster.Drain({&ipam});
  EXPECT_EQ(cluster.Get<corev1::Node>("", "n").spec().pod_cidr(), "");
}

TEST(NodeIpamTest, TellsWhatFails) {
  TestCluster cluster;
  Options options;
  options.cluster_cidrs = {"10.244.0.0/24"};
  auto pools = NodeIpamController::MakePools(options);
  ASSERT_TRUE(pools) << pools.error().message();
  NodeIpamController& ipam = cluster.Make<NodeIpamController>(*pools);
  cluster.fake->Put(NodeNamed("first"));
  cluster.fake->SetInterceptor(
      [](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method != "PATCH" || request.target.find("nodes/first") == std::string::npos) {
          return std::nullopt;
        }
        return Error(Code::kForbidden, "not today");
      });
  cluster.Start();
  cluster.Drain({&ipam});
  cluster.fake->Put(NodeNamed("second"));  // the only block is kept for the first
  cluster.Drain({&ipam});
  EXPECT_THAT(cluster.Events(),
              ::testing::IsSupersetOf({"CIDRAssignmentFailed: Node first status is now: CIDRAssignmentFailed",
                                       "CIDRNotAvailable: Node second status is now: CIDRNotAvailable"}));
}

TEST(NodeIpamTest, Flags) {
  struct Case {
    std::vector<std::string> ranges;
    int one, v4, v6;
    const char* want;  // the first blocks, or the error
  };
  for (const Case& c :
       {Case{{"10.0.0.0/16"}, 0, 0, 0, "10.0.0.0/24"},
        {{"10.0.0.0/16"}, 26, 0, 0, "10.0.0.0/26"},
        {{"10.0.0.0/16"}, 0, 25, 0, "10.0.0.0/25"},
        {{"fd00::/48"}, 0, 0, 0, "fd00::/64"},
        {{"fd00::/48"}, 60, 0, 0, "fd00::/60"},
        {{"10.0.0.0/16", "fd00::/48"}, 0, 0, 0, "10.0.0.0/24 fd00::/64"},
        {{"fd00::/48", "10.0.0.0/16"}, 0, 22, 56, "fd00::/56 10.0.0.0/22"},
        {{"10.0.0.0/16", "fd00::/48"},
         24,
         0,
         0,
         "usage of --node-cidr-mask-size is not allowed with dual-stack clusters"},
        {{"10.0.0.0/16"},
         0,
         0,
         64,
         "usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster"},
        {{"fd00::/48"},
         0,
         24,
         0,
         "usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster"},
        {{"10.0.0.0/16"},
         24,
         24,
         0,
         "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if "
         "--node-cidr-mask-size is set. For dual-stack clusters please unset it."},
        {{"10.0.0.0/16", "10.1.0.0/16"},
         0,
         0,
         0,
         "len of ClusterCIDRs==2 and they are not configured as dual stack (at least one from each "
         "IPFamily)"},
        {{"10.0.0.0/16", "fd00::/48", "fd01::/48"},
         0,
         0,
         0,
         "len of ClusterCIDRs is:3 > more than max allowed of 2"}}) {
    Options options;
    options.cluster_cidrs = c.ranges;
    options.node_cidr_mask_size = c.one;
    options.node_cidr_mask_size_ipv4 = c.v4;
    options.node_cidr_mask_size_ipv6 = c.v6;
    auto pools = NodeIpamController::MakePools(options);
    std::string got = pools ? "" : pools.error().message();
    if (pools) {
      for (CidrPool& pool : *pools) got += (got.empty() ? "" : " ") + pool.Allocate().value_or("none");
    }
    EXPECT_EQ(got, c.want);
  }
}

TEST(NodeIpamTest, ServicesKeepTheirRange) {
  struct Case {
    const char *range, *services, *first;
  };
  for (const Case& c : {Case{"10.0.0.0/16", "10.0.0.0/20", "10.0.16.0/24"},
                        {"10.0.0.0/16", "10.0.0.64/26", "10.0.1.0/24"},
                        {"10.0.0.0/16", "10.0.1.0/24", "10.0.0.0/24"},
                        {"10.0.0.0/16", "10.0.0.0/8", "none"},
                        {"10.0.0.0/16", "10.96.0.0/12", "10.0.0.0/24"},
                        {"10.0.0.0/16", "fd00::/108", "10.0.0.0/24"}}) {
    Options options;
    options.cluster_cidrs = {c.range};
    options.service_cidrs = {c.services};
    auto pools = NodeIpamController::MakePools(options);
    ASSERT_TRUE(pools);
    EXPECT_EQ(pools->front().Allocate().value_or("none"), c.first) << c.services;
  }
}

}  // namespace
}  // namespace keelson::controllers
