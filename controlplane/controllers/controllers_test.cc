#include "controlplane/controllers/controllers.h"

#include <set>
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

TEST(SelectionTest, AsTheFlagSays) {
  struct Case {
    std::vector<std::string> words;
    bool deployment, job;
  };
  for (const Case& c : {Case{{"*"}, true, true},
                        {{"*", "-deployment-controller"}, false, true},
                        {{"*", "-deployment"}, false, true},
                        {{"job"}, false, true},
                        {{"deployment-controller", "-job-controller", "*"}, true, false},
                        {{"-deployment", "deployment"}, false, false},
                        {{}, false, false}}) {
    auto selection = Selection::Parse(c.words);
    ASSERT_TRUE(selection) << selection.error().message();
    EXPECT_EQ(selection->Has("deployment-controller"), c.deployment);
    EXPECT_EQ(selection->Has("job-controller"), c.job);
  }
  for (const char* wrong : {"none-such", "-none-such", "-*", ""}) {
    auto selection = Selection::Parse({"*", wrong});
    ASSERT_FALSE(selection) << wrong;
    EXPECT_NE(selection.error().message().find("is not in the list of known controllers"), std::string::npos);
  }
}

TEST(SelectionTest, NamesAreDistinct) {
  std::set<std::string_view> seen;
  for (const ControllerName& one : AllControllers()) {
    EXPECT_TRUE(seen.insert(one.name).second) << one.name;
    if (!one.alias.empty()) EXPECT_TRUE(seen.insert(one.alias).second) << one.alias;
  }
}

TEST(RunTest, CidrsAreRequiredForAllocation) {
  Options options;
  options.allocate_node_cidrs = true;
  EXPECT_FALSE(controllers::Run(client::RestClient(std::make_shared<client::FakeApi>()), options,
                                std::stop_token(), {}));
}

}  // namespace
}  // namespace keelson::controllers
