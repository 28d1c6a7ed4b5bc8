// For tests of what must never be open: x/a takes nothing from x/b and y/b, whatever else happens.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "lib/base/testing/eventually.h"
#include "tests/policies/policy_world.h"
#include "tests/policies/stream.h"

namespace keelson::policies {

inline constexpr char kDenyA[] = R"({"podSelector":{"matchLabels":{"pod":"a"}},"policyTypes":["Ingress"]})";
inline constexpr char kAllowZ[] =
    R"({"podSelector":{"matchLabels":{"pod":"a"}},"ingress":[{"from":[
        {"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"z"}}}]}]})";

class ShutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto world = PolicyWorld::Make();
    if (!world) GTEST_SKIP() << world.error().message();
    world_ = std::move(*world);
  }
  void Put(const std::string& name, const std::string& spec) {
    Result<> put = world_->PutPolicy(name, spec);
    ASSERT_TRUE(put) << put.error().message();
  }
  void Sync() {
    Result<> synced = world_->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
  }
  PolicyNode& node() { return world_->node(1); }

  std::unique_ptr<Stream> From(const std::string& from, const std::string& to, bool v4 = true) const {
    return std::make_unique<Stream>(world_->Place(from), world_->Place(to), world_->Address(to, v4));
  }
  // Isolates x/a, and begins to try it.
  void Shut() {
    Put("x/deny", kDenyA);
    Sync();
    for (const char* from : {"x/b", "y/b"}) {
      for (bool v4 : {true, false}) shut_.push_back(From(from, "x/a", v4));
    }
    passing_ = From("x/b", "z/a");
    AwaitPassing();
  }
  // The way of what is permitted is open, so the others are not shut for another reason.
  void AwaitPassing() {
    const uint64_t before = passing_->Arrived();
    EXPECT_TRUE(Eventually([&] { return passing_->Arrived() > before; }));
  }
  void NothingArrived() {
    for (const auto& stream : shut_) {
      stream->AwaitSent(3);
      EXPECT_EQ(stream->Arrived(), 0u);
    }
    AwaitPassing();
  }

  std::unique_ptr<PolicyWorld> world_;
  std::vector<std::unique_ptr<Stream>> shut_;
  std::unique_ptr<Stream> passing_;
};

}  // namespace keelson::policies
