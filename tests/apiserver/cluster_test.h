// For tests: a fixture with one TestCluster per suite and one namespace per test. Skips with the reason when
// the machine cannot run a cluster.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/apiserver/cluster.h"

namespace keelson::apiserver {

class ClusterTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { Start({}); }
  // For suites with other flags.
  static void Start(const std::vector<std::string>& flags) {
    missing_ = TestCluster::Missing();
    if (missing_.empty()) cluster_ = std::make_unique<TestCluster>(flags);
  }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
    ns_ = "t" + std::to_string(++count_);
    ASSERT_EQ(cluster_->Kubectl({"create", "ns", ns_}).code, 0);
    // Made by controllers: pods need the account, and lists of a namespace are complete with the map.
    for (const char* made : {"sa/default", "cm/kube-root-ca.crt"}) {
      Output wait = cluster_->Kubectl({"-n", ns_, "wait", "--for=create", made, "--timeout=30s"});
      ASSERT_EQ(wait.code, 0) << wait.err;
    }
  }

  // Runs kubectl in the test's namespace.
  Output Run(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"-n", ns_});
    return cluster_->Kubectl(arguments, input);
  }
  // The same, and expects the exit code `code`; returns the output.
  std::string Kubectl(const std::vector<std::string>& arguments, const std::string& input = "",
                      int code = 0) {
    Output output = Run(arguments, input);
    EXPECT_EQ(output.code, code) << testing::PrintToString(arguments) << "\n" << output.err;
    return output.out;
  }

  inline static std::string missing_;
  inline static std::unique_ptr<TestCluster> cluster_;
  inline static int count_ = 0;
  std::string ns_;
};

}  // namespace keelson::apiserver
