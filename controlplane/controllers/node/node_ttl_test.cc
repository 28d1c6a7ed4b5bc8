#include <gtest/gtest.h>

#include "controlplane/controllers/node/node_ttl.h"
#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {
namespace {

TEST(NodeTtlTest, FollowsTheSizeOfTheClusterWithoutFlapping) {
  TtlBySize ttl;
  for (const auto& [nodes, seconds] : std::vector<std::pair<int, int>>{{0, 0},
                                                                       {100, 0},
                                                                       {101, 15},
                                                                       {100, 15},
                                                                       {90, 15},
                                                                       {89, 0},
                                                                       {501, 15 * 2},
                                                                       {450, 30},
                                                                       {449, 15},
                                                                       {1001, 60},
                                                                       {5000, 300},
                                                                       {1800, 300},
                                                                       {1799, 60},
                                                                       {3, 0}}) {
    EXPECT_EQ(ttl.Seconds(nodes), seconds) << nodes;
  }
}

TEST(NodeTtlTest, EveryNodeIsToldOnce) {
  TestCluster cluster;
  auto& ttl = cluster.Make<NodeTtlController>();
  for (int i = 0; i < 100; ++i) cluster.fake->Put(NodeNamed("n" + std::to_string(i)));
  corev1::Node odd = NodeNamed("n0");
  (*odd.mutable_metadata()->mutable_annotations())[kTtlAnnotation] = "soon";
  cluster.fake->Put(odd);
  cluster.Start();
  cluster.Drain({&ttl});
  auto told = [&](const char* name) {
    return cluster.Get<corev1::Node>("", name).metadata().annotations().at(kTtlAnnotation);
  };
  EXPECT_EQ(told("n0"), "0");
  EXPECT_EQ(told("n99"), "0");
  cluster.fake->ForgetRequests();
  corev1::Node node = cluster.Get<corev1::Node>("", "n7");
  node.mutable_status()->mutable_node_info()->set_kernel_version("6");
  cluster.fake->Put(node);
  cluster.Drain({&ttl});
  for (const std::string& request : cluster.fake->Requests()) {
    EXPECT_FALSE(request.starts_with("PATCH")) << request;
  }
  cluster.fake->Put(NodeNamed("n100"));  // one too many
  cluster.Drain({&ttl});
  EXPECT_EQ(told("n100"), "15");
  EXPECT_EQ(told("n7"), "0");  // not before it reports
  node.mutable_status()->mutable_node_info()->set_kernel_version("7");
  cluster.fake->Put(node);
  cluster.Drain({&ttl});
  EXPECT_EQ(told("n7"), "15");
  EXPECT_TRUE(cluster.errors.empty());
}

}  // namespace
}  // namespace keelson::controllers
