#include "lib/client/custom/custom_client.h"

#include <gmock/gmock.h>
#include <boost/json.hpp>
#include <thread>

#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/client/custom/custom_informers.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const api::ResourceInfo kFoos = CustomRow("example.com", "v1", "foos", "Foo", true);

CustomObject Foo(const std::string& json) {
  CustomObject out;
  const Result<> decoded = api::DecodeJson(json, out);
  EXPECT_TRUE(decoded) << decoded.error().message();
  return out;
}

class CustomClientTest : public ::testing::Test {
 protected:
  void Serve() { fake_->Serve({"example.com", "foos", "Foo", true, {"v1"}}); }

  const std::shared_ptr<FakeApi> fake_ = std::make_shared<FakeApi>();
  const CustomClient foos_{RestClient(fake_)};
};

TEST_F(CustomClientTest, KeepsContentAndSplitsStatus) {
  Serve();
  auto made = foos_.Create(
      kFoos, Foo(R"({"metadata":{"name":"a","namespace":"ns"},"spec":{"size":1,"unknown":[null]}})"));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_FALSE(made->metadata().uid().empty());
  auto change = [](const char* member, int value) {
    return [=](CustomObject& object) -> Result<bool> {
      boost::json::object content = *api::ContentOf(object);
      content[member] = {{"size", value}};
      api::SetContent(object, content);
      return true;
    };
  };
  ASSERT_TRUE(foos_.UpdateWithRetry(kFoos, "ns", "a", "status", change("status", 2)));
  const auto read = foos_.Get(kFoos, "ns", "a");
  ASSERT_TRUE(read);
  EXPECT_EQ(api::ContentText(*read), R"({"spec":{"size":1,"unknown":[null]},"status":{"size":2}})");
  // The other half of the object is ignored.
  ASSERT_TRUE(foos_.UpdateWithRetry(kFoos, "ns", "a", "", change("status", 3)));
  EXPECT_EQ(foos_.Get(kFoos, "ns", "a")->content(), read->content());

  const auto stale = foos_.Update(kFoos, *made);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), Code::kConflict);
  ASSERT_TRUE(foos_.Delete(kFoos, "ns", "a"));
  EXPECT_EQ(foos_.Get(kFoos, "ns", "a").error().code(), Code::kNotFound);
}

TEST_F(CustomClientTest, ListsPages) {
  Serve();
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(
        foos_.Create(kFoos, Foo(R"({"metadata":{"name":")" + std::string(name) + R"(","namespace":"ns"}})")));
  }
  const auto all = foos_.List(kFoos, "", {.limit = 2});
  ASSERT_TRUE(all) << all.error().message();
  std::vector<std::string> names;
  for (const CustomObject& one : *all) names.push_back(one.metadata().name());
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

TEST_F(CustomClientTest, InformersWaitForTheDefinition) {
  CustomInformers informers{RestClient(fake_)};
  Informer<CustomObject>& foos = informers.Get(kFoos);
  EXPECT_EQ(&foos, &informers.Get(kFoos));
  Mutex mutex;
  CondVar changed;
  std::vector<std::string> seen;
  bool ready = false;
  foos.AddHandler([&](const Change<CustomObject>& change) {
    MutexLock lock(mutex);
    seen.push_back(change.key + " " + (change.new_object ? change.new_object->content() : "gone"));
    changed.notify_all();
  });
  auto await = [&](size_t count) {
    MutexLock lock(mutex);
    while (seen.size() < count) changed.wait(mutex);
  };
  std::jthread thread([&](std::stop_token stop) {
    (void)informers.Run(stop, [&] {
      MutexLock lock(mutex);
      ready = true;
      changed.notify_all();
    });
  });
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(ready);
  }
  Serve();
  ASSERT_TRUE(foos_.Create(kFoos, Foo(R"({"spec":{"b":1,"a":2},"metadata":{"name":"a","namespace":"ns"}})")));
  await(1);
  {
    MutexLock lock(mutex);
    while (!ready) changed.wait(mutex);
  }
  EXPECT_EQ(foos.Get("ns", "a")->content(), R"({"spec":{"a":2,"b":1}})");
  ASSERT_TRUE(foos_.UpdateWithRetry(kFoos, "ns", "a", "", [](CustomObject& object) -> Result<bool> {
    api::SetContent(object, {{"spec", {{"a", 3}}}});
    return true;
  }));
  await(2);
  ASSERT_TRUE(foos_.Delete(kFoos, "ns", "a"));
  await(3);
  EXPECT_THAT(seen, ElementsAre(R"(ns/a {"spec":{"a":2,"b":1}})", R"(ns/a {"spec":{"a":3}})", "ns/a gone"));
  EXPECT_THAT(foos.Keys(), IsEmpty());
}

}  // namespace
}  // namespace keelson::client
