#include "lib/client/testing/api_conformance.h"

#include <algorithm>
#include <type_traits>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::client {
namespace {

corev1::ConfigMap NewConfigMap(const std::string& name) {
  corev1::ConfigMap map;
  map.mutable_metadata()->set_name(name);
  map.mutable_metadata()->set_namespace_("default");
  return map;
}

std::string Unique(const std::string& prefix) { return prefix + "-" + api::RandomSuffix(10); }

// A pod that a cluster's scheduler, and so its kubelets, ignore.
corev1::Pod NewPod(const std::string& name) {
  corev1::Pod pod;
  pod.mutable_spec()->set_scheduler_name("nobody");
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->set_namespace_("default");
  corev1::Container& container = *pod.mutable_spec()->add_containers();
  container.set_name("main");
  container.set_image("example/image");
  return pod;
}

template <typename T>
::testing::AssertionResult FailsWith(const Result<T>& result, Code code) {
  if (result) return ::testing::AssertionFailure() << "succeeded";
  if (result.error().Is(code)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "failed with: " << result.error().message();
}

TEST_P(ApiConformance, CreateFillsMetadataAndGetReturnsTheSame) {
  corev1::ConfigMap sent = NewConfigMap(Unique("create"));
  (*sent.mutable_data())["key"] = "value";
  auto created = api_.Create(sent);
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_FALSE(created->metadata().uid().empty());
  EXPECT_FALSE(created->metadata().resource_version().empty());
  EXPECT_TRUE(created->metadata().has_creation_timestamp());
  auto read = api_.Get<corev1::ConfigMap>("default", sent.metadata().name());
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(api::EncodeRaw(*read), api::EncodeRaw(*created));
  EXPECT_TRUE(FailsWith(api_.Create(sent), Code::kAlreadyExists));
  EXPECT_TRUE(api_.Delete<corev1::ConfigMap>("default", sent.metadata().name()));
  EXPECT_TRUE(FailsWith(api_.Get<corev1::ConfigMap>("default", sent.metadata().name()), Code::kNotFound));
  EXPECT_TRUE(FailsWith(api_.Delete<corev1::ConfigMap>("default", sent.metadata().name()), Code::kNotFound));
}

TEST_P(ApiConformance, GenerateNameMakesDifferentNames) {
  corev1::ConfigMap sent = NewConfigMap("");
  sent.mutable_metadata()->clear_name();
  sent.mutable_metadata()->set_generate_name("generated-");
  auto a = api_.Create(sent), b = api_.Create(sent);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->metadata().name().rfind("generated-", 0), 0u);
  EXPECT_NE(a->metadata().name(), b->metadata().name());
  for (const auto& map : {*a, *b}) {
    EXPECT_TRUE(api_.Delete<corev1::ConfigMap>("default", map.metadata().name()));
  }
}

TEST_P(ApiConformance, StaleUpdateConflicts) {
  auto created = api_.Create(NewConfigMap(Unique("update")));
  ASSERT_TRUE(created) << created.error().message();
  corev1::ConfigMap first = *created, second = *created;
  (*first.mutable_data())["by"] = "first";
  auto updated = api_.Update(first);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_NE(updated->metadata().resource_version(), created->metadata().resource_version());
  (*second.mutable_data())["by"] = "second";
  EXPECT_TRUE(FailsWith(api_.Update(second), Code::kConflict));
  auto retried = UpdateWithRetry<corev1::ConfigMap>(api_, "default", created->metadata().name(), "",
                                                    [](corev1::ConfigMap& map) -> Result<bool> {
                                                      (*map.mutable_data())["also"] = "second";
                                                      return true;
                                                    });
  ASSERT_TRUE(retried) << retried.error().message();
  EXPECT_EQ(retried->data().at("by"), "first");
  EXPECT_EQ(retried->data().at("also"), "second");
  EXPECT_TRUE(api_.Delete<corev1::ConfigMap>("default", created->metadata().name()));
}

TEST_P(ApiConformance, UpdateWithoutChangeKeepsTheVersion) {
  auto created = api_.Create(NewConfigMap(Unique("same")));
  ASSERT_TRUE(created);
  auto updated = api_.Update(*created);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_EQ(updated->metadata().resource_version(), created->metadata().resource_version());
  EXPECT_TRUE(api_.Delete<corev1::ConfigMap>("default", created->metadata().name()));
}

TEST_P(ApiConformance, StatusAndSpecAreWrittenApart) {
  auto created = api_.Create(NewPod(Unique("status")));
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->status().phase(), "Pending");
  corev1::Pod both = *created;
  both.mutable_status()->set_message("from the kubelet");
  (*both.mutable_metadata()->mutable_annotations())["a"] = "b";
  auto main = api_.Update(both);
  ASSERT_TRUE(main) << main.error().message();
  EXPECT_EQ(main->status().message(), "");
  EXPECT_EQ(main->metadata().annotations().at("a"), "b");
  both = *main;
  both.mutable_status()->set_message("from the kubelet");
  both.mutable_spec()->set_priority_class_name("ignored");
  both.mutable_metadata()->add_finalizers("example.com/hold");
  auto status = api_.UpdateStatus(both);
  ASSERT_TRUE(status) << status.error().message();
  EXPECT_EQ(status->status().message(), "from the kubelet");
  EXPECT_EQ(status->spec().priority_class_name(), main->spec().priority_class_name());
  EXPECT_EQ(status->metadata().generation(), main->metadata().generation());
  EXPECT_EQ(status->metadata().finalizers_size(), 1);
  status->mutable_metadata()->clear_finalizers();
  ASSERT_TRUE(api_.UpdateStatus(*status));
  EXPECT_TRUE(api_.Delete<corev1::Pod>("default", created->metadata().name()));
}

// An object that no controller acts on.
template <typename T>
T Idle(const std::string& name) {
  T object;
  if constexpr (std::is_same_v<T, corev1::Pod>) {
    object = NewPod(name);
  } else if constexpr (std::is_same_v<T, corev1::Service>) {
    object.mutable_spec()->set_type("ExternalName");
    object.mutable_spec()->set_external_name("example.com");
  } else if constexpr (std::is_same_v<T, corev1::PersistentVolumeClaim>) {
    object.mutable_spec()->add_access_modes("ReadWriteOnce");
    object.mutable_spec()->set_storage_class_name("none-such");
    (*object.mutable_spec()->mutable_resources()->mutable_requests())["storage"].set_string("1Gi");
  } else {  // a ReplicaSet
    object.mutable_spec()->set_replicas(0);
    (*object.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = name;
    *object.mutable_spec()->mutable_template_()->mutable_spec() = NewPod(name).spec();
    object.mutable_spec()->mutable_template_()->mutable_spec()->clear_scheduler_name();
    (*object.mutable_spec()->mutable_template_()->mutable_metadata()->mutable_labels())["app"] = name;
  }
  object.mutable_metadata()->set_name(name);
  object.mutable_metadata()->set_namespace_("default");
  return object;
}

// A status write also updates metadata: labels, annotations, finalizers, and owners except for Pods.
// Emptying the finalizers of a deleted object this way removes it.
template <typename T>
void WritesMetadataWithTheStatus(const RestClient& api, const corev1::ConfigMap& owner) {
  const std::string kind(api::ResourceOf<T>().kind), name = Unique("metadata");
  auto created = api.Create(Idle<T>(name));
  ASSERT_TRUE(created) << created.error().message();
  auto write = [&](const std::function<void(metav1::ObjectMeta&)>& change) {
    auto now = api.Get<T>("default", name);
    if (!now) return now;
    now->mutable_metadata()->clear_resource_version();  // controllers may write in the meantime
    change(*now->mutable_metadata());
    return api.UpdateStatus(*now);
  };
  auto stored = write([&](metav1::ObjectMeta& meta) {
    (*meta.mutable_labels())["l"] = "1";
    (*meta.mutable_annotations())["a"] = "2";
    meta.add_finalizers("example.com/hold");
    metav1::OwnerReference& reference = *meta.add_owner_references();
    reference.set_api_version("v1");
    reference.set_kind("ConfigMap");
    reference.set_name(owner.metadata().name());
    reference.set_uid(owner.metadata().uid());
  });
  ASSERT_TRUE(stored) << kind << ": " << stored.error().message();
  const metav1::ObjectMeta& meta = stored->metadata();
  EXPECT_TRUE(meta.labels().contains("l")) << kind;
  EXPECT_TRUE(meta.annotations().contains("a")) << kind;
  EXPECT_EQ(meta.owner_references_size(), (std::is_same_v<T, corev1::Pod> ? 0 : 1)) << kind;
  const auto& finalizers = meta.finalizers();
  EXPECT_EQ(std::count(finalizers.begin(), finalizers.end(), "example.com/hold"), 1) << kind;
  EXPECT_EQ(meta.generation(), created->metadata().generation()) << kind;

  ASSERT_TRUE(api.Delete<T>("default", name)) << kind;
  auto late = write([](metav1::ObjectMeta& m) { m.add_finalizers("example.com/late"); });
  ASSERT_TRUE(FailsWith(late, Code::kInvalid)) << kind;
  // A controller may remove another finalizer in the meantime, which then counts as new too.
  for (const char* words : {"metadata.finalizers: Forbidden: no new finalizers can be added if the object is "
                            "being deleted, found new finalizers []string{",
                            "\"example.com/late\""}) {
    EXPECT_NE(late.error().message().find(words), std::string::npos) << late.error().message();
  }
  auto released = write([](metav1::ObjectMeta& m) { m.clear_finalizers(); });
  ASSERT_TRUE(released) << kind << ": " << released.error().message();
  EXPECT_TRUE(FailsWith(api.Get<T>("default", name), Code::kNotFound)) << kind;
}

TEST_P(ApiConformance, StatusWritesTakeMetadataAlong) {
  auto owner = api_.Create(NewConfigMap(Unique("owner")));
  ASSERT_TRUE(owner) << owner.error().message();
  WritesMetadataWithTheStatus<corev1::Pod>(api_, *owner);
  WritesMetadataWithTheStatus<corev1::Service>(api_, *owner);
  WritesMetadataWithTheStatus<corev1::PersistentVolumeClaim>(api_, *owner);
  WritesMetadataWithTheStatus<appsv1::ReplicaSet>(api_, *owner);
  EXPECT_TRUE(api_.Delete<corev1::ConfigMap>("default", owner->metadata().name()));
}

TEST_P(ApiConformance, GenerationFollowsTheSpec) {
  appsv1::ReplicaSet set;
  set.mutable_metadata()->set_name(Unique("generation"));
  set.mutable_metadata()->set_namespace_("default");
  set.mutable_spec()->set_replicas(0);
  (*set.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = "generation";
  (*set.mutable_spec()->mutable_template_()->mutable_metadata()->mutable_labels())["app"] = "generation";
  *set.mutable_spec()->mutable_template_()->mutable_spec() = NewPod("x").spec();
  auto created = api_.Create(set);
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->metadata().generation(), 1);
  // Retries, because a running controller writes the status in the meantime.
  auto edit = [&](const std::function<void(appsv1::ReplicaSet&)>& change) {
    return UpdateWithRetry<appsv1::ReplicaSet>(api_, "default", set.metadata().name(), "",
                                               [&](appsv1::ReplicaSet& live) -> Result<bool> {
                                                 change(live);
                                                 return true;
                                               });
  };
  auto annotated = edit([](auto& live) { (*live.mutable_metadata()->mutable_annotations())["a"] = "b"; });
  ASSERT_TRUE(annotated) << annotated.error().message();
  EXPECT_EQ(annotated->metadata().generation(), 1);
  auto changed = edit([](auto& live) { live.mutable_spec()->set_min_ready_seconds(7); });
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(changed->metadata().generation(), 2);
  EXPECT_TRUE(api_.Delete<appsv1::ReplicaSet>("default", set.metadata().name(),
                                              {.propagation_policy = "Background"}));
}

TEST_P(ApiConformance, PatchesOfThreeKinds) {
  struct Case {
    PatchType type;
    const char* body;
    std::string want;
  };
  auto created = api_.Create(NewConfigMap(Unique("patch")));
  ASSERT_TRUE(created) << created.error().message();
  const std::string name = created->metadata().name();
  for (const Case& c :
       {Case{PatchType::kMerge, R"({"data":{"k":"merge"}})", "merge"},
        Case{PatchType::kJson, R"([{"op":"replace","path":"/data/k","value":"json"}])", "json"},
        Case{PatchType::kStrategicMerge, R"({"data":{"k":"strategic"}})", "strategic"}}) {
    auto patched = api_.Patch<corev1::ConfigMap>("default", name, c.type, c.body);
    ASSERT_TRUE(patched) << patched.error().message();
    EXPECT_EQ(patched->data().at("k"), c.want);
  }
  EXPECT_TRUE(FailsWith(api_.Patch<corev1::ConfigMap>("default", Unique("none"), PatchType::kMerge, "{}"),
                        Code::kNotFound));
  EXPECT_TRUE(api_.Delete<corev1::ConfigMap>("default", name));
}

TEST_P(ApiConformance, ListsBySelectorAndInPages) {
  const std::string run = Unique("list");
  for (int i = 0; i < 5; ++i) {
    corev1::ConfigMap map = NewConfigMap(run + "-" + std::to_string(i));
    (*map.mutable_metadata()->mutable_labels())["run"] = run;
    (*map.mutable_metadata()->mutable_labels())["parity"] = i % 2 ? "odd" : "even";
    ASSERT_TRUE(api_.Create(map));
  }
  auto count = [&](const std::string& ns, ListOptions options) {
    auto items = api_.List<corev1::ConfigMap>(ns, options);
    EXPECT_TRUE(items) << items.error().message();
    return items ? static_cast<int>(items->size()) : -1;
  };
  EXPECT_EQ(count("default", {.label_selector = "run=" + run}), 5);
  EXPECT_EQ(count("", {.label_selector = "run=" + run + ",parity in (odd,none)"}), 2);
  EXPECT_EQ(count("default", {.label_selector = "run=" + run + ",parity!=odd"}), 3);
  EXPECT_EQ(count("default", {.field_selector = "metadata.name=" + run + "-3"}), 1);
  EXPECT_EQ(count("kube-system", {.label_selector = "run=" + run}), 0);
  EXPECT_EQ(count("default", {.label_selector = "run=" + run, .limit = 2}), 5);
  std::string version;
  int metadata_only = 0;
  EXPECT_TRUE(api_.ListEach(api::ResourceOf<corev1::ConfigMap>(), "default",
                            {.label_selector = "run=" + run, .metadata_only = true}, &version,
                            [&](std::string_view raw) -> Result<> {
                              metav1::PartialObjectMetadata object;
                              KEELSON_RETURN_IF_ERROR(RestClient::DecodeInto(raw, object));
                              EXPECT_EQ(object.metadata().labels().at("run"), run);
                              ++metadata_only;
                              return {};
                            }));
  EXPECT_EQ(metadata_only, 5);
  EXPECT_FALSE(version.empty());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(api_.Delete<corev1::ConfigMap>("default", run + "-" + std::to_string(i)));
  }
}

// Reads the next event that is no bookmark.
struct Seen {
  WatchEvent::Type type;
  corev1::ConfigMap object;
};
Result<Seen> NextEvent(WatchStream& stream) {
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(WatchEvent event, stream.Next(std::stop_token()));
    if (event.type == WatchEvent::Type::kBookmark) continue;
    Seen seen{event.type, {}};
    KEELSON_RETURN_IF_ERROR(RestClient::DecodeInto(event.raw, seen.object));
    return seen;
  }
}

TEST_P(ApiConformance, WatchFollowsASelection) {
  const std::string run = Unique("watch");
  auto items = api_.List<corev1::ConfigMap>("default");
  ASSERT_TRUE(items);
  std::string version;
  ASSERT_TRUE(api_.ListEach(api::ResourceOf<corev1::ConfigMap>(), "default", {}, &version,
                            [](std::string_view) -> Result<> { return {}; }));
  auto stream = api_.Watch(api::ResourceOf<corev1::ConfigMap>(), "default",
                           {.label_selector = "run=" + run, .resource_version = version});
  ASSERT_TRUE(stream) << stream.error().message();

  corev1::ConfigMap map = NewConfigMap(run);
  auto stored = api_.Create(map);  // not selected yet
  ASSERT_TRUE(stored);
  (*stored->mutable_metadata()->mutable_labels())["run"] = run;
  stored = api_.Update(*stored);
  ASSERT_TRUE(stored);
  auto event = NextEvent(**stream);
  ASSERT_TRUE(event) << event.error().message();
  EXPECT_EQ(event->type, WatchEvent::Type::kAdded);
  EXPECT_EQ(event->object.metadata().resource_version(), stored->metadata().resource_version());

  (*stored->mutable_data())["a"] = "b";
  stored = api_.Update(*stored);
  ASSERT_TRUE(stored);
  event = NextEvent(**stream);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, WatchEvent::Type::kModified);
  EXPECT_EQ(event->object.data().at("a"), "b");

  stored->mutable_metadata()->clear_labels();  // no longer matches the selector
  stored = api_.Update(*stored);
  ASSERT_TRUE(stored);
  event = NextEvent(**stream);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, WatchEvent::Type::kDeleted);
  EXPECT_EQ(event->object.metadata().resource_version(), stored->metadata().resource_version());
  EXPECT_TRUE(api_.Delete<corev1::ConfigMap>("default", run));
}

TEST_P(ApiConformance, WatchEndsWhenStopped) {
  std::string version;
  ASSERT_TRUE(api_.ListEach(api::ResourceOf<corev1::ConfigMap>(), "default", {}, &version,
                            [](std::string_view) -> Result<> { return {}; }));
  auto stream = api_.Watch(api::ResourceOf<corev1::ConfigMap>(), "default",
                           {.label_selector = "run=" + Unique("stop"), .resource_version = version});
  ASSERT_TRUE(stream);
  std::stop_source stop;
  stop.request_stop();
  Result<WatchEvent> event = (*stream)->Next(stop.get_token());
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code(), Code::kCancelled);
}

TEST_P(ApiConformance, FinalizersHoldADeletedObject) {
  corev1::ConfigMap map = NewConfigMap(Unique("finalizer"));
  map.mutable_metadata()->add_finalizers("example.com/hold");
  auto stored = api_.Create(map);
  ASSERT_TRUE(stored) << stored.error().message();
  ASSERT_TRUE(api_.Delete<corev1::ConfigMap>("default", map.metadata().name()));
  auto held = api_.Get<corev1::ConfigMap>("default", map.metadata().name());
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_TRUE(held->metadata().has_deletion_timestamp());
  corev1::ConfigMap more = *held;
  more.mutable_metadata()->add_finalizers("example.com/late");
  EXPECT_TRUE(FailsWith(api_.Update(more), Code::kInvalid));
  held->mutable_metadata()->clear_finalizers();
  ASSERT_TRUE(api_.Update(*held));
  EXPECT_TRUE(FailsWith(api_.Get<corev1::ConfigMap>("default", map.metadata().name()), Code::kNotFound));
}

TEST_P(ApiConformance, PropagationPoliciesLeaveFinalizers) {
  constexpr const char* kProtobuf = "application/vnd.kubernetes.protobuf";
  for (const auto& [policy, finalizer] :
       {std::pair("Foreground", "foregroundDeletion"), {"Orphan", "orphan"}}) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name(Unique("propagation"));
    map.mutable_metadata()->set_namespace_("default");
    map.mutable_metadata()->add_finalizers("example.com/hold");
    const std::string& name = map.metadata().name();
    auto created = api_.Create(map);
    ASSERT_TRUE(created) << created.error().message();
    metav1::DeleteOptions options;
    options.set_propagation_policy(policy);
    ApiRequest request{"DELETE", "/api/v1/namespaces/default/configmaps/" + name, kProtobuf, kProtobuf,
                       api::EncodeProtobuf(options, api::GvkOf(options.GetDescriptor()))};
    auto reply = api_.transport().Do(request, std::chrono::seconds(30), {});
    ASSERT_TRUE(reply) << reply.error().message();
    // Check the response: a garbage collector soon removes the finalizer.
    corev1::ConfigMap held;
    ASSERT_TRUE(api::DecodeProtobuf(reply->body, held)) << reply->status;
    const auto& finalizers = held.metadata().finalizers();
    EXPECT_EQ(std::count(finalizers.begin(), finalizers.end(), finalizer), 1) << policy;
    auto released = api_.Patch<corev1::ConfigMap>("default", name, PatchType::kMerge,
                                                  R"({"metadata":{"finalizers":null}})");
    ASSERT_TRUE(released) << released.error().message();
  }
}

TEST_P(ApiConformance, DeletePreconditions) {
  auto stored = api_.Create(NewConfigMap(Unique("precondition")));
  ASSERT_TRUE(stored);
  const std::string& name = stored->metadata().name();
  EXPECT_TRUE(
      FailsWith(api_.Delete<corev1::ConfigMap>("default", name, {.uid = "another"}), Code::kConflict));
  EXPECT_TRUE(
      FailsWith(api_.Delete<corev1::ConfigMap>("default", name, {.resource_version = "1"}), Code::kConflict));
  EXPECT_TRUE(api_.Delete<corev1::ConfigMap>("default", name, {.uid = stored->metadata().uid()}));
}

TEST_P(ApiConformance, BoundPodsAreDeletedGracefully) {
  auto pod = api_.Create(NewPod(Unique("graceful")));
  ASSERT_TRUE(pod) << pod.error().message();
  const std::string& name = pod->metadata().name();
  corev1::Binding binding;
  binding.mutable_metadata()->set_name(name);
  binding.mutable_metadata()->set_namespace_("default");
  binding.mutable_target()->set_kind("Node");
  binding.mutable_target()->set_name("node-of-" + name);
  auto bind = [&] {
    return api_.CreateSub(api::ResourceOf<corev1::Pod>(), "default", name, "binding", binding, nullptr);
  };
  Result<> bound = bind();
  ASSERT_TRUE(bound) << bound.error().message();
  EXPECT_TRUE(FailsWith(bind(), Code::kConflict));
  auto there = api_.Get<corev1::Pod>("default", name);
  ASSERT_TRUE(there);
  EXPECT_EQ(there->spec().node_name(), "node-of-" + name);

  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", name, {.grace_period_seconds = 20}));
  auto going = api_.Get<corev1::Pod>("default", name);
  ASSERT_TRUE(going) << going.error().message();
  EXPECT_TRUE(going->metadata().has_deletion_timestamp());
  EXPECT_EQ(going->metadata().deletion_grace_period_seconds(), 20);
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", name, {.grace_period_seconds = 0}));
  EXPECT_TRUE(FailsWith(api_.Get<corev1::Pod>("default", name), Code::kNotFound));
}

TEST_P(ApiConformance, UnboundPodsGoAtOnce) {
  auto pod = api_.Create(NewPod(Unique("unbound")));
  ASSERT_TRUE(pod);
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", pod->metadata().name()));
  EXPECT_TRUE(FailsWith(api_.Get<corev1::Pod>("default", pod->metadata().name()), Code::kNotFound));
}

}  // namespace
}  // namespace keelson::client
