#include "kubelet/volume/csi/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "kubelet/volume/csi/testing/fake_driver.h"
#include "lib/base/file.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::kubelet::csi {
namespace {

constexpr char kName[] = "disk.example.com";

class CsiRegistrationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/csi_registration.XXXXXX";
    dir_ = ::mkdtemp(name);
    driver_ = std::make_unique<FakeDriver>(Socket());
    driver_->SetInfo("id-1", 8, {{"example.com/zone", "a"}});
    corev1::Node node;
    node.mutable_metadata()->set_name("n1");
    node.mutable_metadata()->set_uid("nu");
    fake_->Put(node);
  }
  void TearDown() override {
    driver_.reset();
    EXPECT_TRUE(RemoveTree(dir_));
  }
  std::string Socket() const { return dir_ + "/csi.sock"; }
  Result<> Register(const std::string& endpoint, const std::string& version = "1.0.0") {
    KEELSON_RETURN_IF_ERROR(registration_.Validate(kName, endpoint, {version}));
    return registration_.Register(kName, endpoint, {version}, {});
  }
  // "disk.example.com id-1 8" of each driver; "none" without a CSINode.
  std::string CsiNodeText() {
    auto object = api_.Get<CsiNode>("", "n1");
    if (!object) return "none";
    std::string out;
    for (const auto& driver : object->spec().drivers()) {
      out += driver.name() + " " + driver.node_id() + " " + std::to_string(driver.allocatable().count());
    }
    return out;
  }
  corev1::Node Node() { return *api_.Get<corev1::Node>("", "n1"); }

  std::string dir_;
  FakeClock clock_;
  std::shared_ptr<client::FakeApi> fake_ = std::make_shared<client::FakeApi>(clock_);
  client::RestClient api_{fake_};
  std::unique_ptr<FakeDriver> driver_;
  Drivers drivers_;
  NodeInfoManager node_info_{api_, "n1"};
  Mutex mutex_;
  std::optional<std::chrono::seconds> period_ KEELSON_GUARDED_BY(mutex_);
  Registration registration_{{drivers_, node_info_,
                              [this](const std::string&) {
                                MutexLock lock(mutex_);
                                return period_;
                              }},
                             clock_};
};

TEST_F(CsiRegistrationTest, TheNodesObjectsSayWhichDriversItHas) {
  ASSERT_TRUE(node_info_.Initialize({}));
  EXPECT_EQ(CsiNodeText(), "");
  auto done = Register(Socket());
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(CsiNodeText(), "disk.example.com id-1 8");
  EXPECT_EQ(Node().metadata().labels().at("example.com/zone"), "a");
  EXPECT_EQ(Node().metadata().annotations().at("csi.volume.kubernetes.io/nodeid"),
            R"({"disk.example.com":"id-1"})");
  EXPECT_TRUE(drivers_.Client(kName));
  registration_.Deregister(kName, Socket());
  EXPECT_EQ(CsiNodeText(), "");
  EXPECT_EQ(Node().metadata().annotations().count("csi.volume.kubernetes.io/nodeid"), 0u);
  EXPECT_EQ(Node().metadata().labels().count("example.com/zone"), 1u) << "other drivers may need it";
  EXPECT_EQ(drivers_.Client(kName).error().message(),
            "driver name disk.example.com not found in the list of registered CSI drivers");
}

TEST_F(CsiRegistrationTest, ARestartedKubeletWritesNothingNew) {
  ASSERT_TRUE(Register(Socket()));
  fake_->ForgetRequests();
  Drivers later;
  Registration again({later, node_info_, [](const std::string&) { return std::nullopt; }}, clock_);
  ASSERT_TRUE(again.Register(kName, Socket(), {"1.0.0"}, {}));
  for (const std::string& request : fake_->Requests()) {
    EXPECT_EQ(request.rfind("GET", 0), 0u) << request;
  }
}

TEST_F(CsiRegistrationTest, AFailureLeavesNoTrace) {
  driver_->Fail("NodeGetInfo", 14, "not ready");
  EXPECT_EQ(Register(Socket()).error().message(), "rpc error: code = Unavailable desc = not ready");
  EXPECT_FALSE(drivers_.Client(kName));
  driver_->SetInfo("", 0, {});
  EXPECT_EQ(Register(Socket()).error().message(),
            "error adding CSI driver node info: driverNodeID must not be empty");
  EXPECT_EQ(CsiNodeText(), "none");
  driver_->SetInfo("id-1", 8, {});
  fake_->SetInterceptor([](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    if (request.method != "POST") return std::nullopt;
    return client::FakeApi::Refuse(Error(Code::kUnavailable, "not now"));
  });
  EXPECT_FALSE(Register(Socket()));
  EXPECT_FALSE(drivers_.Client(kName));
  EXPECT_EQ(Node().metadata().annotations().count("csi.volume.kubernetes.io/nodeid"), 0u);
  fake_->SetInterceptor(nullptr);
  EXPECT_TRUE(Register(Socket()));
}

TEST_F(CsiRegistrationTest, WhichVersionsAreTaken) {
  EXPECT_EQ(
      Register(Socket(), "0.3.0").error().message(),
      "validation failed for CSI Driver disk.example.com at endpoint " + Socket() +
          ": kubernetes.io/csi: ValidatePlugin for CSI driver \"disk.example.com\" failed. None of the "
          "versions specified [\"0.3.0\"] are supported. err=highest supported version reported by plugin "
          "is 0.3.0, must be v1.x");
  EXPECT_THAT(registration_.Validate(kName, Socket(), {}).error().message(),
              ::testing::HasSubstr("Plugin returned an empty list for supported versions"));
  ASSERT_TRUE(Register(Socket(), "1.1.0"));
  EXPECT_TRUE(Register(Socket(), "1.1.0")) << "the same driver again";
  FakeDriver other(dir_ + "/other.sock");
  other.SetInfo("id-2", 3, {});
  EXPECT_THAT(Register(dir_ + "/other.sock", "1.1.0").error().message(),
              ::testing::HasSubstr("Another driver with the same name is already registered with a higher "
                                   "supported version: \"1.1.0\""));
  ASSERT_TRUE(Register(dir_ + "/other.sock", "1.2.0"));
  EXPECT_EQ(CsiNodeText(), "disk.example.com id-2 3");
  registration_.Deregister(kName, Socket());
  EXPECT_EQ(CsiNodeText(), "disk.example.com id-2 3") << "the old one goes, and is another one's";
}

TEST_F(CsiRegistrationTest, TheNumberOfVolumesFollowsTheDriver) {
  ASSERT_TRUE(Register(Socket()));
  {
    MutexLock lock(mutex_);
    period_ = std::chrono::seconds(60);
  }
  std::jthread updates([this](std::stop_token stop) { registration_.RunUpdates(stop); });
  clock_.AwaitWaiters(1);
  driver_->SetInfo("id-1", 5, {{"example.com/zone", "a"}});
  clock_.Advance(std::chrono::seconds(59));
  clock_.AwaitWaiters(1);
  EXPECT_EQ(CsiNodeText(), "disk.example.com id-1 8");
  clock_.Advance(std::chrono::seconds(1));
  while (CsiNodeText() != "disk.example.com id-1 5") std::this_thread::yield();
  clock_.AwaitWaiters(1);
  driver_->SetInfo("id-1", 4, {{"example.com/zone", "a"}});
  {
    MutexLock lock(mutex_);
    period_.reset();
  }
  registration_.Look();
  clock_.Advance(std::chrono::hours(2));
  updates.request_stop();
  updates.join();
  EXPECT_EQ(CsiNodeText(), "disk.example.com id-1 5") << "not without a period";
}

}  // namespace
}  // namespace keelson::kubelet::csi
