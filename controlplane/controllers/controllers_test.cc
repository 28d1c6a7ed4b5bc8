#include "controlplane/controllers/controllers.h"

#include <thread>

#include <gtest/gtest.h>

#include "controlplane/controllers/testing.h"

namespace keelson::controllers {
namespace {

// All controllers together, with their own threads, on real time.
TEST(RunTest, DeploymentBecomesPods) {
  auto fake = std::make_shared<client::FakeApi>();
  client::RestClient api(fake);
  corev1::Namespace ns;
  ns.mutable_metadata()->set_name("default");
  ASSERT_TRUE(api.Create(ns));
  auto watch = api.Watch(api::ResourceOf<corev1::Pod>(), "default", {});
  ASSERT_TRUE(watch) << watch.error().message();

  Options options;
  options.root_ca_pem = "PEM";
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::jthread manager([&](std::stop_token stop) {
    Result<> result = controllers::Run(api, options, stop, [&] {
      MutexLock lock(mutex);
      ready = true;
      changed.notify_all();
    });
    EXPECT_TRUE(result);
  });
  {
    MutexLock lock(mutex);
    while (!ready) changed.wait(mutex);
  }
  ASSERT_TRUE(api.Create(DeploymentNamed("web", 2)));
  for (int added = 0; added < 2;) {
    Result<client::WatchEvent> event = (*watch)->Next(std::stop_token());
    ASSERT_TRUE(event) << event.error().message();
    added += event->type == client::WatchEvent::Type::kAdded;
  }
}

TEST(RunTest, UnknownNamesAreRefused) {
  Options options;
  options.disabled = {"none-such"};
  Result<> result = controllers::Run(client::RestClient(std::make_shared<client::FakeApi>()), options,
                                     std::stop_token(), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kInvalid);
}

TEST(RunTest, CidrsAreRequiredForAllocation) {
  Options options;
  options.allocate_node_cidrs = true;
  EXPECT_FALSE(controllers::Run(client::RestClient(std::make_shared<client::FakeApi>()), options,
                                std::stop_token(), {}));
}

}  // namespace
}  // namespace keelson::controllers
