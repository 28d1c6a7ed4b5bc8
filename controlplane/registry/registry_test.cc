// The whole storage side on a real etcd.
#include "controlplane/registry/registry.h"

#include <signal.h>

#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "controlplane/etcd/client.h"
#include "controlplane/etcd/test_etcd.h"
#include "controlplane/storage/store.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/proto/networking_v1.pb.h"

namespace keelson::registry {
namespace {

template <typename T>
const ResourceInfo& Row() {
  return api::ResourceOf<T>();
}
const ResourceInfo& Row(std::string_view group, std::string_view resource) {
  return *api::FindResource(group, "v1", resource);
}

// A store and a registry on an etcd, as one control plane has them.
class Plane {
 public:
  explicit Plane(etcd::TestEtcd& etcd)
      : client_(std::make_shared<etcd::Client>(etcd.supervisor().client_options())), store_(client_, {}) {
    std::promise<void> ready;
    thread_ = std::jthread([&](std::stop_token stop) { (void)store_.Run(stop, [&] { ready.set_value(); }); });
    ready.get_future().wait();
    registry_ = std::make_unique<Registry>(store_, Config{});
    EXPECT_TRUE(registry_->Start({}));
  }
  ~Plane() {
    thread_.request_stop();
    thread_.join();
  }
  Registry& operator*() { return *registry_; }
  Registry* operator->() { return registry_.get(); }
  etcd::Client& client() { return *client_; }

 private:
  std::shared_ptr<etcd::Client> client_;
  storage::Store store_;
  std::unique_ptr<Registry> registry_;
  std::jthread thread_;
};

class RegistryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    etcd_ = std::make_unique<etcd::TestEtcd>();
    plane_ = std::make_unique<Plane>(*etcd_);
    corev1::Namespace ns;
    ns.mutable_metadata()->set_name("default");
    ASSERT_TRUE(Create(ns, ""));
  }

  template <typename T>
  Result<T> As(Result<Written> written) {
    if (!written) return written.error();
    return static_cast<const T&>(*written->object->Decode());
  }
  template <typename T>
  Result<T> Create(const T& object, std::string_view ns = "default", const WriteOptions& options = {}) {
    return As<T>((*plane_)->Create(Row<T>(), ns, "", std::make_unique<T>(object), options));
  }
  template <typename T>
  Result<T> Update(const T& object, const ResourceInfo* row = nullptr) {
    const metav1::ObjectMeta& meta = object.metadata();
    return As<T>((*plane_)->Update(row ? *row : Row<T>(), meta.namespace_(), meta.name(),
                                   std::make_unique<T>(object), {}));
  }
  template <typename T>
  Result<T> Get(std::string_view name, std::string_view ns = "default") {
    Result<ObjectPtr> object = (*plane_)->Get(Row<T>(), ns, name);
    if (!object) return object.error();
    return static_cast<const T&>(*(*object)->Decode());
  }
  template <typename T>
  Result<T> Patch(std::string_view name, PatchType type, std::string_view patch,
                  const WriteOptions& options = {}) {
    return As<T>((*plane_)->Patch(Row<T>(), "default", name, type, patch, options));
  }
  Result<Deleted> Delete(const ResourceInfo& info, std::string_view name, metav1::DeleteOptions options = {},
                         std::string_view ns = "default") {
    return (*plane_)->Delete(info, ns, name, options, {});
  }

  static corev1::ConfigMap ConfigMap(const std::string& name) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name(name);
    (*map.mutable_data())["a"] = "1";
    return map;
  }
  static corev1::Pod Pod(const std::string& name) {
    corev1::Pod pod;
    pod.mutable_metadata()->set_name(name);
    auto* container = pod.mutable_spec()->add_containers();
    container->set_name("c");
    container->set_image("busybox");
    return pod;
  }
  static appsv1::Deployment Deployment(const std::string& name) {
    appsv1::Deployment deployment;
    deployment.mutable_metadata()->set_name(name);
    (*deployment.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = name;
    auto& pod = *deployment.mutable_spec()->mutable_template_();
    (*pod.mutable_metadata()->mutable_labels())["app"] = name;
    auto* container = pod.mutable_spec()->add_containers();
    container->set_name("c");
    container->set_image("busybox");
    return deployment;
  }
  static corev1::Service Service(const std::string& name) {
    corev1::Service service;
    service.mutable_metadata()->set_name(name);
    (*service.mutable_spec()->mutable_selector())["app"] = name;
    service.mutable_spec()->add_ports()->set_port(80);
    return service;
  }

  std::unique_ptr<etcd::TestEtcd> etcd_;
  std::unique_ptr<Plane> plane_;
};

TEST_F(RegistryTest, CreatesReadsUpdatesDeletes) {
  auto created = Create(ConfigMap("m"));
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->metadata().namespace_(), "default");
  EXPECT_FALSE(created->metadata().uid().empty());
  EXPECT_TRUE(created->metadata().has_creation_timestamp());
  EXPECT_FALSE(created->metadata().resource_version().empty());

  auto again = Create(ConfigMap("m"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists);
  EXPECT_EQ(again.error().message(), "configmaps \"m\" already exists");

  corev1::ConfigMap changed = *created;
  (*changed.mutable_data())["a"] = "2";
  auto updated = Update(changed);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_NE(updated->metadata().resource_version(), created->metadata().resource_version());

  auto stale = Update(changed);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), Code::kConflict);
  EXPECT_EQ(stale.error().message(),
            "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please apply "
            "your changes "
            "to the latest version and try again");

  changed.mutable_metadata()->clear_resource_version();  // unconditional
  EXPECT_TRUE(Update(changed));
  auto deleted = Delete(Row<corev1::ConfigMap>(), "m");
  ASSERT_TRUE(deleted) << deleted.error().message();
  EXPECT_TRUE(deleted->gone);
  auto gone = Get<corev1::ConfigMap>("m");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().message(), "configmaps \"m\" not found");
}

TEST_F(RegistryTest, NoOpWritesWriteNothing) {
  auto created = Create(ConfigMap("m"));
  ASSERT_TRUE(created);
  auto updated = Update(*created);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_EQ(updated->metadata().resource_version(), created->metadata().resource_version());
}

TEST_F(RegistryTest, GeneratesNames) {
  corev1::ConfigMap map = ConfigMap("");
  map.mutable_metadata()->clear_name();
  map.mutable_metadata()->set_generate_name("gen-");
  auto one = Create(map), two = Create(map);
  ASSERT_TRUE(one && two) << one.error().message();
  EXPECT_EQ(one->metadata().name().substr(0, 4), "gen-");
  EXPECT_EQ(one->metadata().name().size(), 9U);
  EXPECT_NE(one->metadata().name(), two->metadata().name());
}

TEST_F(RegistryTest, RefusesBadObjects) {
  auto bad_name = Create(ConfigMap("No_Good"));
  ASSERT_FALSE(bad_name);
  EXPECT_EQ(bad_name.error().code(), Code::kInvalid);
  ASSERT_NE(bad_name.error().details(), nullptr);
  EXPECT_EQ(bad_name.error().details()->causes.at(0).field, "metadata.name");

  auto no_namespace = Create(ConfigMap("m"), "nowhere");
  ASSERT_FALSE(no_namespace);
  EXPECT_EQ(no_namespace.error().message(), "namespaces \"nowhere\" not found");

  corev1::ConfigMap elsewhere = ConfigMap("m");
  elsewhere.mutable_metadata()->set_namespace_("other");
  auto mismatch = Create(elsewhere);
  ASSERT_FALSE(mismatch);
  EXPECT_EQ(mismatch.error().code(), Code::kBadRequest);
}

TEST_F(RegistryTest, DryRunLeavesNoTrace) {
  WriteOptions dry;
  dry.dry_run = true;
  auto created = Create(Service("s"), "default", dry);
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_FALSE(created->spec().cluster_ip().empty());
  EXPECT_TRUE(created->metadata().resource_version().empty());
  EXPECT_FALSE(Get<corev1::Service>("s"));
  Result<ObjectList> addresses = (*plane_)->List(Row<api::networking::v1::IPAddress>(), "", {});
  ASSERT_TRUE(addresses);
  EXPECT_TRUE(addresses->items.empty());
}

TEST_F(RegistryTest, GenerationFollowsTheSpecOnly) {
  auto created = Create(Deployment("d"));
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->metadata().generation(), 1);
  auto labelled = Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"metadata":{"labels":{"x":"y"}}})");
  ASSERT_TRUE(labelled) << labelled.error().message();
  EXPECT_EQ(labelled->metadata().generation(), 1);
  auto scaled =
      Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"spec":{"replicas":3},"status":{"replicas":9}})");
  ASSERT_TRUE(scaled) << scaled.error().message();
  EXPECT_EQ(scaled->metadata().generation(), 2);
  EXPECT_EQ(scaled->status().replicas(), 0) << "status has a subresource of its own";

  appsv1::Deployment status = *scaled;
  status.mutable_status()->set_replicas(2);
  status.mutable_spec()->set_replicas(7);
  auto written = Update(status, &Row("apps", "deployments/status"));
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->status().replicas(), 2);
  EXPECT_EQ(written->spec().replicas(), 3);
  EXPECT_EQ(written->metadata().generation(), 2);
}

TEST_F(RegistryTest, PatchesThreeWays) {
  ASSERT_TRUE(Create(Deployment("d")));
  auto strategic = Patch<appsv1::Deployment>(
      "d", PatchType::kStrategicMerge,
      R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"new"},{"name":"b","image":"x"}]}}}})");
  ASSERT_TRUE(strategic) << strategic.error().message();
  ASSERT_EQ(strategic->spec().template_().spec().containers_size(), 2);
  auto json = Patch<appsv1::Deployment>("d", PatchType::kJson,
                                        R"([{"op":"replace","path":"/spec/replicas","value":4}])");
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(json->spec().replicas(), 4);

  WriteOptions strict;
  strict.field_validation = FieldValidation::kStrict;
  auto unknown = Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"spec":{"foo":1}})", strict);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kInvalid);
  EXPECT_NE(unknown.error().message().find("unknown field \"spec.foo\""), std::string::npos);
  auto stale = Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"metadata":{"resourceVersion":"1"}})");
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), Code::kConflict);
  auto immutable = Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"metadata":{"uid":"x"}})");
  ASSERT_FALSE(immutable);
}

TEST_F(RegistryTest, ConcurrentPatchesAllLand) {
  ASSERT_TRUE(Create(ConfigMap("m")));
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        std::string patch = R"({"data":{"k)" + std::to_string(t) + std::to_string(i) + R"(":"v"}})";
        if (!Patch<corev1::ConfigMap>("m", PatchType::kMerge, patch)) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Get<corev1::ConfigMap>("m")->data_size(), 21);
}

TEST_F(RegistryTest, PodsGoGracefully) {
  ASSERT_TRUE(Create(Pod("p")));
  EXPECT_EQ(Get<corev1::Pod>("p")->status().phase(), "Pending");
  corev1::Binding binding;
  binding.mutable_metadata()->set_name("p");
  binding.mutable_target()->set_kind("Node");
  binding.mutable_target()->set_name("n1");
  auto bind = [&] {
    return (*plane_)->Create(Row("", "pods/binding"), "default", "p",
                             std::make_unique<corev1::Binding>(binding), {});
  };
  auto bound = bind();
  ASSERT_TRUE(bound) << bound.error().message();
  auto twice = bind();
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code(), Code::kConflict);
  EXPECT_EQ(Get<corev1::Pod>("p")->spec().node_name(), "n1");

  auto deleted = Delete(Row<corev1::Pod>(), "p");
  ASSERT_TRUE(deleted) << deleted.error().message();
  EXPECT_FALSE(deleted->gone);
  auto pod = Get<corev1::Pod>("p");
  ASSERT_TRUE(pod);
  EXPECT_TRUE(pod->metadata().has_deletion_timestamp());
  EXPECT_EQ(pod->metadata().deletion_grace_period_seconds(), 30);
  EXPECT_EQ(pod->metadata().generation(), 2);

  metav1::DeleteOptions now;
  now.set_grace_period_seconds(0);
  now.mutable_preconditions()->set_uid("somebody-else");
  auto wrong = Delete(Row<corev1::Pod>(), "p", now);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Code::kConflict);
  now.mutable_preconditions()->set_uid(pod->metadata().uid());
  auto last = Delete(Row<corev1::Pod>(), "p", now);
  ASSERT_TRUE(last) << last.error().message();
  EXPECT_TRUE(last->gone);
  EXPECT_FALSE(Get<corev1::Pod>("p"));
}

TEST_F(RegistryTest, UnscheduledPodsGoAtOnce) {
  ASSERT_TRUE(Create(Pod("p")));
  auto deleted = Delete(Row<corev1::Pod>(), "p");
  ASSERT_TRUE(deleted);
  EXPECT_TRUE(deleted->gone);
}

TEST_F(RegistryTest, FinalizersHoldObjects) {
  corev1::ConfigMap map = ConfigMap("m");
  map.mutable_metadata()->add_finalizers("example.com/hold");
  ASSERT_TRUE(Create(map));
  auto deleted = Delete(Row<corev1::ConfigMap>(), "m");
  ASSERT_TRUE(deleted);
  EXPECT_FALSE(deleted->gone);
  EXPECT_EQ(Get<corev1::ConfigMap>("m")->metadata().deletion_grace_period_seconds(), 0);
  auto freed = Patch<corev1::ConfigMap>("m", PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
  ASSERT_TRUE(freed) << freed.error().message();
  EXPECT_FALSE(Get<corev1::ConfigMap>("m"));
}

TEST_F(RegistryTest, PropagationBecomesFinalizers) {
  ASSERT_TRUE(Create(Deployment("d")));
  metav1::DeleteOptions options;
  options.set_propagation_policy("Foreground");
  auto deleted = Delete(Row<appsv1::Deployment>(), "d", options);
  ASSERT_TRUE(deleted);
  EXPECT_FALSE(deleted->gone);
  EXPECT_EQ(Get<appsv1::Deployment>("d")->metadata().finalizers(0), "foregroundDeletion");
  options.set_propagation_policy("Sideways");
  auto refused = Delete(Row<appsv1::Deployment>(), "d", options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalid);
}

TEST_F(RegistryTest, NamespacesTerminate) {
  corev1::Namespace ns;
  ns.mutable_metadata()->set_name("team");
  auto created = Create(ns, "");
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->status().phase(), "Active");
  ASSERT_EQ(created->spec().finalizers_size(), 1);
  EXPECT_EQ(created->metadata().labels().at("kubernetes.io/metadata.name"), "team");

  auto immortal = Delete(Row<corev1::Namespace>(), "default", {}, "");
  ASSERT_FALSE(immortal);
  EXPECT_EQ(immortal.error().code(), Code::kForbidden);
  auto deleted = Delete(Row<corev1::Namespace>(), "team", {}, "");
  ASSERT_TRUE(deleted) << deleted.error().message();
  EXPECT_FALSE(deleted->gone);
  auto terminating = Get<corev1::Namespace>("team", "");
  ASSERT_TRUE(terminating);
  EXPECT_EQ(terminating->status().phase(), "Terminating");
  // The cache has seen it by now: Get() read it from etcd, so wait for the cache through a list.
  ASSERT_TRUE((*plane_)->List(Row<corev1::Namespace>(), "", {}));
  auto refused = Create(ConfigMap("m"), "team");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kForbidden);
  EXPECT_NE(refused.error().message().find("because it is being terminated"), std::string::npos);

  corev1::Namespace final = *terminating;
  final.mutable_spec()->clear_finalizers();
  auto finalized = Update(final, &Row("", "namespaces/finalize"));
  ASSERT_TRUE(finalized) << finalized.error().message();
  EXPECT_FALSE(Get<corev1::Namespace>("team", ""));
}

TEST_F(RegistryTest, ServicesGetAddressesAndPorts) {
  auto one = Create(Service("one"));
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(one->spec().cluster_ip().substr(0, 3), "10.");
  EXPECT_EQ(one->spec().cluster_ips(0), one->spec().cluster_ip());
  EXPECT_EQ(one->spec().ip_families(0), "IPv4");
  EXPECT_EQ(one->spec().ip_family_policy(), "SingleStack");
  EXPECT_TRUE((*plane_)->Get(Row<api::networking::v1::IPAddress>(), "", one->spec().cluster_ip()));

  corev1::Service fixed = Service("fixed");
  fixed.mutable_spec()->set_cluster_ip("10.96.0.10");
  ASSERT_TRUE(Create(fixed));
  fixed.mutable_metadata()->set_name("second");
  auto taken = Create(fixed);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message().find("provided IP is already allocated"), std::string::npos)
      << taken.error().message();

  corev1::Service changed = *one;
  changed.mutable_spec()->set_type("NodePort");
  auto node_port = Update(changed);
  ASSERT_TRUE(node_port) << node_port.error().message();
  int port = node_port->spec().ports(0).node_port();
  EXPECT_GE(port, 30000);
  EXPECT_LE(port, 32767);
  corev1::Service rival = Service("rival");
  rival.mutable_spec()->set_type("NodePort");
  rival.mutable_spec()->mutable_ports(0)->set_node_port(port);
  auto refused = Create(rival);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("provided port is already allocated"), std::string::npos);

  ASSERT_TRUE(Delete(Row<corev1::Service>(), "one"));
  EXPECT_FALSE((*plane_)->Get(Row<api::networking::v1::IPAddress>(), "", one->spec().cluster_ip()));
  auto now_free = Create(rival);
  EXPECT_TRUE(now_free) << now_free.error().message();

  corev1::Service headless = Service("headless");
  headless.mutable_spec()->set_cluster_ip("None");
  auto none = Create(headless);
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_EQ(none->spec().cluster_ips(0), "None");
}

TEST_F(RegistryTest, Scales) {
  ASSERT_TRUE(Create(Deployment("d")));
  const ResourceInfo& row = Row("apps", "deployments/scale");
  Result<ObjectPtr> object = (*plane_)->Get(row, "default", "d");
  ASSERT_TRUE(object) << object.error().message();
  auto scale = static_cast<const autoscalingv1::Scale&>(*(*object)->Decode());
  EXPECT_EQ(scale.spec().replicas(), 1);
  EXPECT_EQ(scale.status().selector(), "app=d");
  scale.mutable_spec()->set_replicas(5);
  auto updated = (*plane_)->Update(row, "default", "d", std::make_unique<autoscalingv1::Scale>(scale), {});
  ASSERT_TRUE(updated) << updated.error().message();
  auto stale = (*plane_)->Update(row, "default", "d", std::make_unique<autoscalingv1::Scale>(scale), {});
  ASSERT_TRUE(!stale || stale->object->revision() != 0);
  auto patched = (*plane_)->Patch(row, "default", "d", PatchType::kMerge, R"({"spec":{"replicas":0}})", {});
  ASSERT_TRUE(patched) << patched.error().message();
  EXPECT_EQ(Get<appsv1::Deployment>("d")->spec().replicas(), 0);
}

TEST_F(RegistryTest, ListsInPagesOfOneSnapshot) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(Create(ConfigMap("m" + std::to_string(i))));
  ListOptions options;
  options.limit = 3;
  Result<ObjectList> page = (*plane_)->List(Row<corev1::ConfigMap>(), "default", options);
  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->items.size(), 3U);
  EXPECT_EQ(page->remaining, 4);
  const int64_t revision = page->revision;
  ASSERT_TRUE(Delete(Row<corev1::ConfigMap>(), "m4"));
  ASSERT_TRUE(Create(ConfigMap("m9")));
  std::string names;
  while (true) {
    for (const auto& item : page->items) names += std::string(item->name()) + " ";
    if (page->continue_token.empty()) break;
    options.continue_token = page->continue_token;
    page = (*plane_)->List(Row<corev1::ConfigMap>(), "default", options);
    ASSERT_TRUE(page) << page.error().message();
    EXPECT_EQ(page->revision, revision);
  }
  EXPECT_EQ(names, "m0 m1 m2 m3 m4 m5 m6 ");

  options = {};
  options.field_selector = "spec.foo=x";
  Result<ObjectList> bad = (*plane_)->List(Row<corev1::ConfigMap>(), "default", options);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message().find("field label not supported: spec.foo"), std::string::npos);
}

class Waiter : public storage::WatchSink {
 public:
  bool OnEvent(const storage::EventPtr& event) override {
    std::string line(event->TypeName());
    if (event->type() != storage::Event::Type::kBookmark) line += " " + event->object()->key();
    MutexLock lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
    return true;
  }
  void OnEnd(const Error& error) override {
    MutexLock lock(mutex_);
    lines_.push_back("END " + std::string(Reason(error.code())));
    changed_.notify_all();
  }
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(mutex_);
    while (lines_.size() < count) {
      if (changed_.wait_for(mutex_, std::chrono::seconds(20)) == std::cv_status::timeout) break;
    }
    return lines_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_;
};

TEST_F(RegistryTest, WatchesFromAListWithoutGaps) {
  ASSERT_TRUE(Create(ConfigMap("a")));
  Result<ObjectList> list = (*plane_)->List(Row<corev1::ConfigMap>(), "default", {});
  ASSERT_TRUE(list);
  ASSERT_EQ(list->items.size(), 1U);
  ASSERT_TRUE(Create(ConfigMap("b")));
  ListOptions options;
  options.resource_version = std::to_string(list->revision);
  auto sink = std::make_shared<Waiter>();
  auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "default", options, sink);
  ASSERT_TRUE(watch) << watch.error().message();
  ASSERT_TRUE(Delete(Row<corev1::ConfigMap>(), "a"));
  EXPECT_EQ(sink->Await(2), (std::vector<std::string>{"ADDED default/b", "DELETED default/a"}));
}

TEST_F(RegistryTest, WatchListEndsWithABookmark) {
  ASSERT_TRUE(Create(ConfigMap("a")));
  ListOptions options;
  options.send_initial_events = true;
  options.allow_bookmarks = true;
  options.resource_version_match = "NotOlderThan";
  auto sink = std::make_shared<Waiter>();
  auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "default", options, sink);
  ASSERT_TRUE(watch) << watch.error().message();
  EXPECT_EQ(sink->Await(2), (std::vector<std::string>{"ADDED default/a", "BOOKMARK"}));
}

TEST_F(RegistryTest, EventsAreOneInBothGroups) {
  corev1::Event event;
  event.mutable_metadata()->set_name("e");
  event.mutable_metadata()->set_namespace_("default");
  event.mutable_involved_object()->set_kind("Pod");
  event.mutable_involved_object()->set_name("p");
  event.mutable_involved_object()->set_namespace_("default");
  event.set_message("hello");
  event.set_reason("Because");
  event.set_type("Normal");
  event.mutable_source()->set_component("test");
  auto created = Create(event);
  ASSERT_TRUE(created) << created.error().message();
  auto other = Get<eventsv1::Event>("e");
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_EQ(other->note(), "hello");
  EXPECT_EQ(other->metadata().resource_version(), created->metadata().resource_version());
  Result<etcd::RangeResult> stored = plane_->client().Range("/registry/events/default/e", {}, {});
  ASSERT_TRUE(stored);
  ASSERT_EQ(stored->kvs.size(), 1U);
  EXPECT_NE(stored->kvs[0].lease, 0);
  EXPECT_EQ(api::OpenEnvelope(stored->kvs[0].value)->type_meta.api_version, "v1");
}

TEST_F(RegistryTest, SecretsFoldStringData) {
  corev1::Secret secret;
  secret.mutable_metadata()->set_name("s");
  (*secret.mutable_string_data())["k"] = "v";
  auto created = Create(secret);
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->data().at("k"), "v");
  EXPECT_EQ(created->string_data_size(), 0);
  EXPECT_EQ(created->type(), "Opaque");
}

TEST_F(RegistryTest, JobsGetTheirSelector) {
  api::batch::v1::Job job;
  job.mutable_metadata()->set_name("j");
  auto& pod = *job.mutable_spec()->mutable_template_()->mutable_spec();
  pod.set_restart_policy("Never");
  pod.add_containers()->set_name("c");
  pod.mutable_containers(0)->set_image("busybox");
  auto created = Create(job);
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->spec().selector().match_labels().at("batch.kubernetes.io/controller-uid"),
            created->metadata().uid());
}

TEST_F(RegistryTest, SurvivesKillOfEtcdInTheMiddleOfWrites) {
  ASSERT_TRUE(Create(ConfigMap("first")));
  ListOptions from_now;
  Result<ObjectList> before = (*plane_)->List(Row<corev1::ConfigMap>(), "", {});
  ASSERT_TRUE(before);
  from_now.resource_version = std::to_string(before->revision);
  auto sink = std::make_shared<Waiter>();
  auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "", from_now, sink);
  ASSERT_TRUE(watch);

  std::vector<std::string> acknowledged;
  std::atomic<int> written{0};
  std::thread writer([&] {
    for (int i = 0; i < 60; ++i) {
      std::string name = "m" + std::to_string(i);
      // A lost answer leaves open whether it was written: "already exists" then means that it was.
      for (int attempt = 0; attempt < 5; ++attempt) {
        auto created = Create(ConfigMap(name));
        if (!created && !created.error().Is(Code::kAlreadyExists)) continue;
        acknowledged.push_back(name);
        break;
      }
      ++written;
    }
  });
  while (written < 20) std::this_thread::yield();
  ASSERT_EQ(kill(etcd_->supervisor().pid(), SIGKILL), 0);
  writer.join();
  EXPECT_EQ(acknowledged.size(), 60U);

  // A second control plane, from nothing but etcd.
  Plane other(*etcd_);
  Result<ObjectList> after = other->List(Row<corev1::ConfigMap>(), "default", {});
  ASSERT_TRUE(after) << after.error().message();
  EXPECT_EQ(after->items.size(), 61U);
  // And the first one's watch went on over the gap, each event once.
  std::vector<std::string> seen = sink->Await(60);
  EXPECT_EQ(seen.size(), 60U);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 60U);
}

}  // namespace
}  // namespace keelson::registry
