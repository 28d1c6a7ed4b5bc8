// Values of other writers in etcd: JSON, and values that cannot be decoded.
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "controlplane/etcd/testing/test_etcd.h"
#include "controlplane/storage/store.h"
#include "controlplane/storage/stored_value_decoder.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/mutex.h"

namespace keelson::storage {
namespace {

// Remembers what a watch says.
class Sink : public WatchSink {
 public:
  bool OnEvent(const EventPtr& event) override {
    MutexLock lock(mutex_);
    events_.push_back(std::string(event->TypeName()) + " " + std::string(event->object()->name()));
    changed_.notify_all();
    return true;
  }
  void OnEnd(const Error& error) override {
    MutexLock lock(mutex_);
    events_.push_back(error.Is(Code::kGone) ? "GONE" : "END");
    changed_.notify_all();
  }
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(mutex_);
    SteadyTime deadline = SteadyTime::clock::now() + std::chrono::seconds(20);
    while (events_.size() < count && SteadyTime::clock::now() < deadline) {
      changed_.wait_for(mutex_, std::stop_token(), std::chrono::milliseconds(100), [] { return false; });
    }
    return events_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> events_ KEELSON_GUARDED_BY(mutex_);
};

class StoredForms : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    etcd_ = std::make_unique<etcd::TestEtcd>();
    client_ = std::make_shared<etcd::Client>(etcd_->supervisor().client_options());
  }
  void TearDown() override { Stop(); }
  void Start(bool json = false) {
    Stop();
    Store::Options options;
    options.json = json;
    store_ = std::make_unique<Store>(client_, options);
    std::promise<void> ready;
    thread_ =
        std::jthread([&](std::stop_token stop) { (void)store_->Run(stop, [&] { ready.set_value(); }); });
    ready.get_future().wait();
  }
  void Stop() {
    if (!store_) return;
    thread_.request_stop();
    thread_.join();
    store_.reset();
  }

  static Limits Soon() { return {SteadyTime::clock::now() + std::chrono::seconds(20), {}}; }
  static const api::ResourceInfo& Maps() { return api::ResourceOf<corev1::ConfigMap>(); }
  static std::string MapJson(const std::string& name, const std::string& value) {
    return R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":")" + name +
           R"(","namespace":"default","uid":"u","creationTimestamp":null},"data":{"a":")" + value + "\"}}\n";
  }
  int64_t Plant(const std::string& etcd_key, const std::string& value) {
    auto range = client_->Range(etcd_key, {}, Soon());
    int64_t before = range && !range->kvs.empty() ? range->kvs[0].mod_revision : 0;
    auto put = client_->PutIf(etcd_key, value, before, 0, Soon());
    EXPECT_TRUE(put && put->succeeded);
    return put ? put->revision : 0;
  }
  std::string Raw(const std::string& etcd_key) {
    auto range = client_->Range(etcd_key, {}, Soon());
    return range && !range->kvs.empty() ? range->kvs[0].value : "";
  }
  std::string ValueOf(const ObjectPtr& object) {
    return static_cast<const corev1::ConfigMap&>(*object->Decode()).data().at("a");
  }
  std::vector<std::string> Names(const ListRequest& request = {}) {
    auto list = store_->List(Maps(), request, Soon());
    if (!list) return {"error: " + list.error().message()};
    std::vector<std::string> names;
    for (const ObjectPtr& item : list->items) names.emplace_back(item->name());
    return names;
  }

  std::unique_ptr<etcd::TestEtcd> etcd_;
  std::shared_ptr<etcd::Client> client_;
  std::unique_ptr<Store> store_;
  std::jthread thread_;
};

using Strings = std::vector<std::string>;

TEST_F(StoredForms, JsonIsReadLikeProtobuf) {
  int64_t first = Plant("/registry/configmaps/default/early", MapJson("early", "1"));
  Start();
  auto early = store_->Get(Maps(), "default/early", "", Soon());
  ASSERT_TRUE(early && *early) << early.error().message();
  EXPECT_EQ(ValueOf(*early), "1");
  EXPECT_EQ((*early)->revision(), first);
  EXPECT_EQ(api::Meta(*(*early)->Decode()).resource_version(), std::to_string(first));

  auto sink = std::make_shared<Sink>();
  WatchRequest request;
  request.initial_events = true;
  auto watch = store_->Watch(Maps(), request, sink, Soon());
  ASSERT_TRUE(watch);
  Plant("/registry/configmaps/default/late", MapJson("late", "2"));
  EXPECT_EQ(sink->Await(2), (Strings{"ADDED early", "ADDED late"}));
  EXPECT_EQ(Names(), (Strings{"early", "late"}));

  // Rewritten as this server writes, and removed.
  corev1::ConfigMap map = static_cast<const corev1::ConfigMap&>(*(*early)->Decode());
  map.mutable_metadata()->clear_resource_version();
  EXPECT_TRUE(store_->IsStale(Maps(), **early, Soon()));
  Conflict conflict;
  auto put = store_->Put(Maps(), "default/early", map, first, {}, conflict, Soon());
  ASSERT_TRUE(put) << put.error().message();
  EXPECT_EQ(Raw("/registry/configmaps/default/early").substr(0, 4), api::kProtobufMagic);
  EXPECT_FALSE(store_->IsStale(Maps(), **put, Soon()));
  EXPECT_EQ(sink->Await(3).back(), "MODIFIED early");
  ASSERT_TRUE(store_->Delete(Maps(), "default/early", (*put)->revision(), conflict, Soon()));
  EXPECT_EQ(sink->Await(4).back(), "DELETED early");
}

TEST_F(StoredForms, JsonOfAnotherVersionIsConverted) {
  Plant("/registry/horizontalpodautoscalers/default/h",
        R"({"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"h",)"
        R"("namespace":"default"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d",)"
        R"("apiVersion":"apps/v1"},"maxReplicas":3,"targetCPUUtilizationPercentage":50},"status":)"
        R"({"currentReplicas":0,"desiredReplicas":0}})");
  Start();
  const api::ResourceInfo& v2 = *api::FindResource("autoscaling", "v2", "horizontalpodautoscalers");
  auto object = store_->Get(v2, "default/h", "", Soon());
  ASSERT_TRUE(object && *object) << object.error().message();
  EXPECT_NE((*object)->TypedJson().find(R"("averageUtilization":50)"), std::string::npos)
      << (*object)->TypedJson();
}

TEST_F(StoredForms, JsonIsWrittenWhereItIsAskedFor) {
  Start(true);
  corev1::ConfigMap map;
  map.mutable_metadata()->set_namespace_("default");
  map.mutable_metadata()->set_name("m");
  (*map.mutable_data())["a"] = "1";
  Conflict conflict;
  auto put = store_->Put(Maps(), "default/m", map, 0, {}, conflict, Soon());
  ASSERT_TRUE(put) << put.error().message();
  EXPECT_EQ(Raw("/registry/configmaps/default/m").substr(0, 38), R"({"kind":"ConfigMap","apiVersion":"v1",)");
  auto read = store_->Get(Maps(), "default/m", "", Soon());
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(ValueOf(*read), "1");
  Start(true);
  auto again = store_->Get(Maps(), "default/m", "", Soon());
  ASSERT_TRUE(again && *again);
  EXPECT_EQ(ValueOf(*again), "1");
  EXPECT_FALSE(store_->IsStale(Maps(), **again, Soon()));
}

TEST_F(StoredForms, ListsFailOnWhatCannotBeRead) {
  constexpr char kBad[] = "/registry/configmaps/default/bad";
  Plant("/registry/configmaps/default/good", MapJson("good", "1"));
  for (const std::string& junk :
       {std::string("junk"), std::string("{\"kind\":"), std::string("{}"),
        std::string(R"({"kind":"Secret","apiVersion":"v1"})"), std::string("k8s\0\xff\xff", 6),
        std::string(R"({"kind":"ConfigMap","apiVersion":"v1","data":7})")}) {
    int64_t revision = Plant(kBad, junk);
    Start();
    std::string why =
        "StorageError: corrupt object, Code: 7, Key: /registry/configmaps/default/bad, "
        "ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=" +
        std::to_string(revision) + ": ";
    auto got = store_->Get(Maps(), "default/bad", "", Soon());
    ASSERT_FALSE(got) << junk;
    EXPECT_EQ(got.error().code(), Code::kInternal);
    EXPECT_EQ(got.error().message().substr(0, 25 + why.size()), "Internal error occurred: " + why);
    EXPECT_FALSE(store_->Get(Maps(), "default/bad", "0", Soon())) << "not found would be a lie";

    for (const char* ns : {"", "default"}) {
      ListRequest request;
      request.ns = ns;
      auto list = store_->List(Maps(), request, Soon());
      ASSERT_FALSE(list) << junk;
      EXPECT_TRUE(IsReadError(list.error()));
      EXPECT_EQ(list.error().message(), "failed to read one or more configmaps from the storage");
      const ErrorDetails& details = *list.error().details();
      EXPECT_EQ(details.kind, "configmaps");
      ASSERT_EQ(details.causes.size(), 1u);
      EXPECT_EQ(details.causes[0].reason, "UnexpectedServerResponse");
      EXPECT_EQ(details.causes[0].field, kBad);
      EXPECT_EQ(details.causes[0].message.substr(0, why.size()), why);
    }
    ListRequest by_name;
    by_name.ns = "default";
    by_name.name = "bad";
    EXPECT_NE(Names(by_name), Strings{});
    ListRequest elsewhere;
    elsewhere.ns = "other";
    EXPECT_EQ(Names(elsewhere), Strings{});
    // It is in the way of a create, without being read.
    corev1::ConfigMap map;
    map.mutable_metadata()->set_namespace_("default");
    map.mutable_metadata()->set_name("bad");
    Conflict conflict;
    EXPECT_EQ(store_->Put(Maps(), "default/bad", map, 0, {}, conflict, Soon()).error().code(),
              Code::kConflict);
    Stop();
  }
}

TEST_F(StoredForms, WatchersAreNotToldThatItIsGone) {
  Start();
  Plant("/registry/configmaps/default/m", MapJson("m", "1"));
  auto sink = std::make_shared<Sink>();
  WatchRequest request;
  request.initial_events = true;
  auto watch = store_->Watch(Maps(), request, sink, Soon());
  ASSERT_TRUE(watch);
  EXPECT_EQ(sink->Await(1), (Strings{"ADDED m"}));
  int64_t bad = Plant("/registry/configmaps/default/m", "junk");
  EXPECT_EQ(sink->Await(2), (Strings{"ADDED m", "GONE"}));
  EXPECT_FALSE(store_->List(Maps(), {}, Soon()));
  // A watch from before would miss it.
  auto old_sink = std::make_shared<Sink>();
  WatchRequest old;
  old.resource_version = std::to_string(bad - 1);
  auto old_watch = store_->Watch(Maps(), old, old_sink, Soon());
  ASSERT_TRUE(old_watch);
  EXPECT_EQ(old_sink->Await(1), Strings{"GONE"});
  Plant("/registry/configmaps/default/m", MapJson("m", "2"));
  EXPECT_EQ(Names(), Strings{"m"});
}

TEST_F(StoredForms, WhatCannotBeReadIsDeletedOnDemand) {
  Plant("/registry/configmaps/default/bad", "junk");
  Plant("/registry/configmaps/default/good", MapJson("good", "1"));
  Start();
  auto good = store_->DeleteUnreadable(Maps(), "default/good", Soon());
  EXPECT_TRUE(good && !*good);
  auto none = store_->DeleteUnreadable(Maps(), "default/none", Soon());
  EXPECT_TRUE(none && !*none);
  auto bad = store_->DeleteUnreadable(Maps(), "default/bad", Soon());
  EXPECT_TRUE(bad && *bad);
  EXPECT_EQ(Raw("/registry/configmaps/default/bad"), "");
  EXPECT_EQ(Names(), Strings{"good"});
}

}  // namespace
}  // namespace keelson::storage
