#include "controlplane/scheduler/devices/catalog.h"

#include <gtest/gtest.h>

#include "controlplane/scheduler/devices/testing/device_objects.h"

namespace keelson::scheduler {
namespace {

using testing::MakeClaim;

std::shared_ptr<resourcev1::ResourceClaim> Version(int version, const std::string& device = "",
                                                   const std::string& uid = "uid-c") {
  auto claim = MakeClaim("c", "");
  claim->mutable_metadata()->set_uid(uid);
  claim->mutable_metadata()->set_resource_version(std::to_string(version));
  if (device.empty()) return claim;
  auto& result = *claim->mutable_status()->mutable_allocation()->mutable_devices()->add_results();
  result.set_driver("d.com");
  result.set_pool("p");
  result.set_device(device);
  return claim;
}

class CatalogTest : public ::testing::Test {
 protected:
  // Names of the devices in use.
  std::set<std::string> InUse() {
    std::set<std::string> names;
    if (const PoolUse* pool = catalog_.Refresh().uses.Of("d.com/p")) {
      for (const auto& [name, use] : *pool) names.insert(name);
    }
    return names;
  }
  using Names = std::set<std::string>;
  DeviceCatalog catalog_;
};

TEST_F(CatalogTest, AllocatedClaimsUseTheirDevices) {
  catalog_.SetClaim("default/c", Version(1));
  EXPECT_EQ(InUse(), Names{});
  catalog_.SetClaim("default/c", Version(2, "d1"));
  EXPECT_EQ(InUse(), Names{"d1"});
  catalog_.SetClaim("default/c", Version(3, "d2"));
  EXPECT_EQ(InUse(), Names{"d2"});
  catalog_.SetClaim("default/c", nullptr);
  EXPECT_EQ(InUse(), Names{});
}

TEST_F(CatalogTest, APendingAllocationCountsUntilItIsWritten) {
  catalog_.SetClaim("default/c", Version(1));
  EXPECT_TRUE(catalog_.AddPending(Version(1, "d1")));
  EXPECT_FALSE(catalog_.AddPending(Version(1, "d2")));
  EXPECT_TRUE(catalog_.IsPending("uid-c"));
  EXPECT_EQ(InUse(), Names{"d1"});
  EXPECT_FALSE(catalog_.FindClaim("default", "c")->status().has_allocation());
  catalog_.Assume(*Version(3, "d1"));
  EXPECT_TRUE(catalog_.RemovePending("uid-c"));
  EXPECT_FALSE(catalog_.RemovePending("uid-c"));
  EXPECT_EQ(InUse(), Names{"d1"});
  catalog_.SetClaim("default/c", Version(2));  // the informer is behind
  EXPECT_EQ(InUse(), Names{"d1"});
  EXPECT_TRUE(catalog_.FindClaim("default", "c")->status().has_allocation());
  catalog_.SetClaim("default/c", Version(3, "d1"));
  EXPECT_EQ(InUse(), Names{"d1"});
  catalog_.SetClaim("default/c", Version(4));
  EXPECT_EQ(InUse(), Names{});
}

TEST_F(CatalogTest, AFailedAllocationGivesItsDevicesBack) {
  catalog_.SetClaim("default/c", Version(1));
  EXPECT_TRUE(catalog_.AddPending(Version(1, "d1")));
  EXPECT_TRUE(catalog_.RemovePending("uid-c"));
  EXPECT_EQ(InUse(), Names{});
}

TEST_F(CatalogTest, AnAnswerThatCameTooLateChangesNothing) {
  catalog_.SetClaim("default/c", Version(5));
  catalog_.Assume(*Version(4, "d1"));  // freed since
  EXPECT_EQ(InUse(), Names{});
  catalog_.SetClaim("default/c", nullptr);
  catalog_.Assume(*Version(6, "d1"));  // deleted since
  EXPECT_EQ(InUse(), Names{});
  catalog_.SetClaim("default/c", Version(7, "", "another"));
  catalog_.Assume(*Version(8, "d1"));
  EXPECT_EQ(InUse(), Names{});
  catalog_.Assume(*Version(9, "d2", "another"));
  EXPECT_EQ(InUse(), Names{"d2"});
  catalog_.Restore("default/c");
  EXPECT_EQ(InUse(), Names{});
}

}  // namespace
}  // namespace keelson::scheduler
