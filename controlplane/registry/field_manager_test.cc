#include "controlplane/registry/field_manager.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/autoscaling_v2.pb.h"

namespace keelson::registry {
namespace {

namespace json = boost::json;

const ResourceInfo& Row(std::string_view group, std::string_view resource, std::string_view version = "v1") {
  return *api::FindResource(group, version, resource);
}
const ResourceInfo& kMaps() { return Row("", "configmaps"); }
const ResourceInfo& kDeployments() { return Row("apps", "deployments"); }

json::value Json(std::string_view text) { return json::parse(json::string_view(text.data(), text.size())); }

// Prints: manager operation version[/subresource] @time fields
std::vector<std::string> Print(const ManagedFields::Encoded& entries) {
  std::vector<std::string> lines;
  for (const auto& entry : entries) {
    std::string line = fmt::format("{} {} {}", entry.manager(), entry.operation(), entry.api_version());
    if (!entry.subresource().empty()) line += "/" + entry.subresource();
    if (entry.has_time()) line += fmt::format(" @{}", entry.time().seconds());
    lines.push_back(line + " " + entry.fields_v1().raw());
  }
  return lines;
}

// Applies writes to an object without a store.
template <typename T>
class Subject {
 public:
  explicit Subject(const ResourceInfo& info) : info_(info) {}

  // Creates or updates to `text`, which may include managed fields.
  void Write(std::string_view manager, std::string_view text, const ResourceInfo* row = nullptr,
             Part part = Part::kMain) {
    T object = Decoded(text);
    Update(manager, object, row, part);
  }
  void Update(std::string_view manager, T object, const ResourceInfo* row = nullptr,
              Part part = Part::kMain) {
    ++now_;
    FieldWrite write{row ? *row : info_, manager, Now(), ResetFilter(info_, part)};
    ManagedFields::Encoded managed = ManageUpdate(write, exists_ ? &object_ : nullptr, object);
    object_ = std::move(object);
    *object_.mutable_metadata()->mutable_managed_fields() = managed;
    exists_ = true;
  }
  // The error's message, or "".
  std::string Apply(std::string_view manager, std::string_view config, bool force = false,
                    const ResourceInfo* row = nullptr, Part part = Part::kMain) {
    ++now_;
    FieldWrite write{row ? *row : info_, manager, Now(), ResetFilter(info_, part)};
    auto applied = ManageApply(write, exists_ ? &object_ : nullptr, Json(config), force);
    last_error_ = applied ? std::nullopt : std::optional<Error>(applied.error());
    if (!applied) return applied.error().message();
    object_ = static_cast<const T&>(**applied);
    exists_ = true;
    return "";
  }

  std::vector<std::string> Managers() const { return Print(object_.metadata().managed_fields()); }
  std::string Text() const {
    T bare = object_;
    bare.mutable_metadata()->clear_managed_fields();
    return api::EncodeJson(bare);
  }
  T& object() { return object_; }
  const Error& error() const { return *last_error_; }
  WallTime Now() const { return WallTime() + std::chrono::seconds(now_); }

 private:
  static T Decoded(std::string_view text) {
    T object;
    Result<> decoded = api::DecodeJson(text, object);
    EXPECT_TRUE(decoded) << text;
    return object;
  }

  const ResourceInfo& info_;
  T object_;
  bool exists_ = false;
  int now_ = 0;
  std::optional<Error> last_error_;
};

using Lines = std::vector<std::string>;
using Map = Subject<corev1::ConfigMap>;

#define CM R"("apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"d"})"

TEST(FieldManagerTest, CreateAndUpdate) {
  Map map(kMaps());
  map.Write("creator",
            R"({"metadata":{"name":"m","uid":"u","resourceVersion":"1"},"data":{"a":"1","b":"1"}})");
  EXPECT_EQ(map.Managers(), Lines{R"(creator Update v1 @1 {"f:data":{".":{},"f:a":{},"f:b":{}}})"});
  // Nothing changes, not even the time.
  map.Update("editor", map.object());
  EXPECT_EQ(map.Managers(), Lines{R"(creator Update v1 @1 {"f:data":{".":{},"f:a":{},"f:b":{}}})"});
  map.object().mutable_metadata()->set_uid("u");
  auto changed = map.object();
  (*changed.mutable_data())["b"] = "2";
  map.Update("editor", changed);
  EXPECT_EQ(map.Managers(), (Lines{R"(creator Update v1 @1 {"f:data":{".":{},"f:a":{}}})",
                                   R"(editor Update v1 @3 {"f:data":{"f:b":{}}})"}));
  // A removed field has no manager, and a manager without fields goes.
  changed = map.object();
  changed.mutable_data()->erase("b");
  map.Update("", changed);
  EXPECT_EQ(map.Managers(), Lines{R"(creator Update v1 @1 {"f:data":{".":{},"f:a":{}}})"});
  changed = map.object();
  (*changed.mutable_data())["c"] = "1";
  map.Update("", changed);
  EXPECT_EQ(map.Managers(), (Lines{R"(creator Update v1 @1 {"f:data":{".":{},"f:a":{}}})",
                                   R"(unknown Update v1 @5 {"f:data":{"f:c":{}}})"}));
}

TEST(FieldManagerTest, ResetAndWhatClientsSay) {
  Map map(kMaps());
  map.Write("creator", R"({"data":{"a":"1"}})");
  auto reset = map.object();
  reset.mutable_metadata()->clear_managed_fields();
  reset.mutable_metadata()->add_managed_fields();
  map.Update("editor", reset);
  EXPECT_EQ(map.Managers(), Lines{});
  // From then on no managers are recorded until somebody applies.
  (*reset.mutable_data())["b"] = "1";
  reset.mutable_metadata()->clear_managed_fields();
  map.Update("editor", reset);
  EXPECT_EQ(map.Managers(), Lines{});
  EXPECT_EQ(map.Apply("me", "{" CM R"(,"data":{"c":"1"}})"), "");
  EXPECT_EQ(map.Managers(),
            (Lines{R"(me Apply v1 @4 {"f:data":{"f:c":{}}})",
                   R"(before-first-apply Update v1 @4 {"f:data":{".":{},"f:a":{},"f:b":{}}})"}));
  // Ignores entries that no server would write, and accepts those that one could.
  auto odd = map.object();
  odd.mutable_metadata()->mutable_managed_fields(0)->set_operation("Other");
  map.Update("me", odd);
  EXPECT_EQ(map.Managers().size(), 2u);
  auto fewer = map.object();
  fewer.mutable_metadata()->mutable_managed_fields()->DeleteSubrange(1, 1);
  map.Update("me", fewer);
  EXPECT_EQ(map.Managers(), Lines{R"(me Apply v1 @4 {"f:data":{"f:c":{}}})"});
}

TEST(FieldManagerTest, OldUpdatesBecomeOne) {
  Map map(kMaps());
  map.Write("m0", R"({"data":{"k0":"v"}})");
  for (int i = 1; i <= 11; ++i) {
    auto next = map.object();
    (*next.mutable_data())[fmt::format("k{}", i)] = "v";
    map.Update(fmt::format("m{}", i), next);
    EXPECT_EQ(map.Managers().size(), std::min<size_t>(i + 1, 10));
  }
  EXPECT_EQ(map.Managers()[0],
            R"(ancient-changes Update v1 @3 {"f:data":{".":{},"f:k0":{},"f:k1":{},"f:k2":{}}})");
  EXPECT_EQ(map.Managers()[1], R"(m3 Update v1 @4 {"f:data":{"f:k3":{}}})");
}

TEST(FieldManagerTest, PartsClaimOnlyTheirs) {
  Subject<appsv1::Deployment> subject(kDeployments());
  const char* spec = R"("spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}}})";
  subject.Write("creator",
                fmt::format(R"({{"metadata":{{"labels":{{"a":"b"}}}},{},"status":{{"replicas":3}}}})", spec));
  subject.object().mutable_status()->clear_replicas();
  const std::string created = R"(creator Update apps/v1 @1 {"f:metadata":{"f:labels":{".":{},"f:a":{}}},)"
                              R"("f:spec":{"f:replicas":{},"f:selector":{}}})";
  EXPECT_EQ(subject.Managers(), Lines{created});
  subject.Write("controller",
                R"({"metadata":{"labels":{"x":"y"}},"spec":{"replicas":7},"status":{"replicas":1}})",
                &Row("apps", "deployments/status"), Part::kStatus);
  EXPECT_EQ(subject.Managers(),
            (Lines{created, R"(controller Update apps/v1/status @2 {"f:status":{"f:replicas":{}}})"}));
}

TEST(FieldManagerTest, Applies) {
  Map map(kMaps());
  EXPECT_EQ(map.Apply("one", "{" CM R"(,"data":{"a":"1","b":"1"}})"), "");
  EXPECT_EQ(map.Managers(), Lines{R"(one Apply v1 @1 {"f:data":{"f:a":{},"f:b":{}}})"});
  // Repeating it changes nothing.
  EXPECT_EQ(map.Apply("one", "{" CM R"(,"data":{"a":"1","b":"1"}})"), "");
  EXPECT_EQ(map.Managers(), Lines{R"(one Apply v1 @1 {"f:data":{"f:a":{},"f:b":{}}})"});
  // Agreeing managers share a field.
  EXPECT_EQ(map.Apply("two", "{" CM R"(,"data":{"b":"1","c":"1"}})"), "");
  EXPECT_EQ(map.Managers(), (Lines{R"(one Apply v1 @1 {"f:data":{"f:a":{},"f:b":{}}})",
                                   R"(two Apply v1 @3 {"f:data":{"f:b":{},"f:c":{}}})"}));
  // A field that one manager drops goes, unless another has it.
  EXPECT_EQ(map.Apply("one", "{" CM "}"), "");
  EXPECT_EQ(map.Text(), R"({"metadata":{"name":"m","namespace":"d"},"data":{"b":"1","c":"1"}})");
  EXPECT_EQ(map.Managers(), Lines{R"(two Apply v1 @3 {"f:data":{"f:b":{},"f:c":{}}})"});
}

TEST(FieldManagerTest, Conflicts) {
  Map map(kMaps());
  EXPECT_EQ(map.Apply("one", "{" CM R"(,"data":{"a":"1","b":"1"}})"), "");
  EXPECT_EQ(map.Apply("two", "{" CM R"(,"data":{"a":"2"}})"),
            "Apply failed with 1 conflict: conflict with \"one\": .data.a");
  EXPECT_EQ(map.error().code(), Code::kConflict);
  ASSERT_EQ(map.error().details()->causes.size(), 1u);
  EXPECT_EQ(map.error().details()->causes[0].reason, "FieldManagerConflict");
  EXPECT_EQ(map.error().details()->causes[0].message, "conflict with \"one\"");
  EXPECT_EQ(map.error().details()->causes[0].field, ".data.a");
  auto edited = map.object();
  (*edited.mutable_data())["c"] = "1";
  map.Update("editor", edited);
  EXPECT_EQ(map.Apply("two", "{" CM R"(,"data":{"a":"2","b":"2","c":"2"}})"),
            "Apply failed with 3 conflicts: conflicts with \"editor\" using v1:\n- .data.c\n"
            "conflicts with \"one\":\n- .data.a\n- .data.b");
  EXPECT_EQ(map.Apply("two", "{" CM R"(,"data":{"a":"2","c":"2"}})", true), "");
  EXPECT_EQ(map.Managers(), (Lines{R"(one Apply v1 @1 {"f:data":{"f:b":{}}})",
                                   R"(two Apply v1 @5 {"f:data":{"f:a":{},"f:c":{}}})"}));
}

TEST(FieldManagerTest, WhatCannotBeApplied) {
  struct {
    const char *config, *message;
    Code code;
  } cases[] = {
      {R"({"apiVersion":"v1","kind":"Secret"})", "invalid object type: /v1, Kind=Secret", Code::kBadRequest},
      {R"({"apiVersion":"apps/v1","kind":"ConfigMap"})", "invalid object type: apps/v1, Kind=ConfigMap",
       Code::kBadRequest},
      {R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","managedFields":[]}})",
       "metadata.managedFields must be nil", Code::kBadRequest},
      {R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"d"},"foo":1})",
       "failed to create typed patch object (d/m; /v1, Kind=ConfigMap): .foo: field not declared in schema",
       Code::kInternal},
      {R"({"apiVersion":"v1","kind":"ConfigMap","data":{"a":1,"b":2}})",
       "failed to create typed patch object (/; /v1, Kind=ConfigMap): errors:\n"
       "  .data.a: expected string, got &value.valueUnstructured{Value:1}\n"
       "  .data.b: expected string, got &value.valueUnstructured{Value:2}",
       Code::kInternal},
  };
  for (const auto& one : cases) {
    Map map(kMaps());
    EXPECT_EQ(map.Apply("me", one.config), one.message);
    EXPECT_EQ(map.error().code(), one.code) << one.config;
  }
}

// An applier that stops applying a field does not remove it if an updater has it.
TEST(FieldManagerTest, PruningLeavesWhatUpdatersHave) {
  Map map(kMaps());
  EXPECT_EQ(map.Apply("one", "{" CM R"(,"data":{"a":"1","b":"1"}})"), "");
  auto edited = map.object();
  (*edited.mutable_data())["a"] = "2";
  map.Update("editor", edited);
  EXPECT_EQ(map.Apply("one", "{" CM R"(,"data":{"b":"1"}})"), "");
  EXPECT_EQ(map.object().data().at("a"), "2");
  EXPECT_EQ(map.Managers(), (Lines{R"(one Apply v1 @1 {"f:data":{"f:b":{}}})",
                                   R"(editor Update v1 @2 {"f:data":{"f:a":{}}})"}));
}

#define DEPLOYMENT R"("apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"n"})"

TEST(FieldManagerTest, ItemsOfLists) {
  Subject<appsv1::Deployment> subject(kDeployments());
  auto config = [](std::string_view containers) {
    return std::string("{" DEPLOYMENT R"(,"spec":{"template":{"spec":{"containers":[)") +
           std::string(containers) + "]}}}}";
  };
  EXPECT_EQ(subject.Apply("one", config(R"({"name":"a","image":"1"},{"name":"b","image":"1"})")), "");
  EXPECT_EQ(subject.Apply("two", config(R"({"name":"c","image":"1"})")), "");
  EXPECT_EQ(subject.Apply("two", config(R"({"name":"a","image":"2"})")),
            "Apply failed with 1 conflict: conflict with \"one\": "
            ".spec.template.spec.containers[name=\"a\"].image");
  EXPECT_EQ(subject.Apply("one", config(R"({"name":"b","image":"1"})")), "");
  const auto& containers = subject.object().spec().template_().spec().containers();
  ASSERT_EQ(containers.size(), 2);
  EXPECT_EQ(containers[0].name(), "b");
  EXPECT_EQ(containers[1].name(), "c");
  EXPECT_EQ(subject.Managers()[0],
            R"(two Apply apps/v1 @2 {"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":)"
            R"({".":{},"f:image":{},"f:name":{}}}}}}})");
}

TEST(FieldManagerTest, FromClientSideApplyAndBack) {
  Map map(kMaps());
  const std::string applied = R"({"apiVersion":"v1","data":{"a":"1","b":"1"},"kind":"ConfigMap",)"
                              R"("metadata":{"annotations":{},"name":"m","namespace":"d"}})"
                              "\n";
  corev1::ConfigMap created;
  ASSERT_TRUE(api::DecodeJson(applied, created));
  (*created.mutable_metadata()->mutable_annotations())["kubectl.kubernetes.io/last-applied-configuration"] =
      applied;
  map.Update("kubectl-client-side-apply", created);
  // Another manager conflicts, kubectl itself does not.
  EXPECT_EQ(map.Apply("other", "{" CM R"(,"data":{"a":"2"}})"),
            "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.a");
  EXPECT_EQ(map.Apply("kubectl", "{" CM R"(,"data":{"a":"2","b":"1"}})"), "");
  EXPECT_EQ(
      map.object().metadata().annotations().at("kubectl.kubernetes.io/last-applied-configuration"),
      R"({"apiVersion":"v1","data":{"a":"2","b":"1"},"kind":"ConfigMap","metadata":{"name":"m","namespace":"d"}})"
      "\n");
  EXPECT_EQ(map.Managers()[0], R"(kubectl Apply v1 @3 {"f:data":{"f:a":{},"f:b":{}}})");
  // A change since the last apply conflicts again.
  auto edited = map.object();
  (*edited.mutable_data())["b"] = "3";
  map.Update("editor", edited);
  EXPECT_EQ(map.Apply("kubectl", "{" CM R"(,"data":{"a":"2","b":"4"}})"),
            "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.b");
}

TEST(FieldManagerTest, SeveralVersions) {
  Subject<autoscalingv1::HorizontalPodAutoscaler> subject(Row("autoscaling", "horizontalpodautoscalers"));
  EXPECT_EQ(subject.Apply("one", R"({"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler",)"
                                 R"("metadata":{"name":"h"},"spec":{"maxReplicas":3,"minReplicas":1,)"
                                 R"("scaleTargetRef":{"kind":"Deployment","name":"d"}}})"),
            "");
  const auto& v2 = Row("autoscaling", "horizontalpodautoscalers", "v2");
  Subject<api::autoscaling::v2::HorizontalPodAutoscaler> later(v2);
  later.Update("", api::autoscaling::v2::HorizontalPodAutoscaler());
  auto& object = later.object();
  *object.mutable_metadata() = subject.object().metadata();
  object.mutable_spec()->set_max_replicas(3);
  object.mutable_spec()->set_min_replicas(1);
  object.mutable_spec()->mutable_scale_target_ref()->set_kind("Deployment");
  object.mutable_spec()->mutable_scale_target_ref()->set_name("d");
  const char* config = R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",)"
                       R"("metadata":{"name":"h"},"spec":{"maxReplicas":5}})";
  EXPECT_EQ(later.Apply("two", config),
            "Apply failed with 1 conflict: conflict with \"one\": .spec.maxReplicas");
  EXPECT_EQ(later.Apply("two", config, true), "");
  EXPECT_EQ(later.Managers(),
            (Lines{R"(one Apply autoscaling/v1 @1 {"f:spec":{"f:minReplicas":{},"f:scaleTargetRef":{}}})",
                   R"(two Apply autoscaling/v2 @3 {"f:spec":{"f:maxReplicas":{}}})"}));
  // The first manager continues at the later version; its entry moves, and fields that it drops go.
  EXPECT_EQ(
      later.Apply("one",
                  R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",)"
                  R"("metadata":{"name":"h"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"}}})"),
      "");
  EXPECT_FALSE(later.object().spec().has_min_replicas());
  EXPECT_EQ(later.object().spec().max_replicas(), 5);
  EXPECT_EQ(later.Managers()[1].substr(0, 25), "one Apply autoscaling/v2 ");
}

TEST(FieldManagerTest, ScaleAndItsParent) {
  ManagedFields::Encoded parent;
  auto add = [](ManagedFields::Encoded& to, const char* manager, const char* operation, const char* version,
                const char* fields, const char* subresource = "") {
    auto& entry = *to.Add();
    entry.set_manager(manager);
    entry.set_operation(operation);
    entry.set_api_version(version);
    entry.set_fields_type("FieldsV1");
    entry.mutable_fields_v1()->set_raw(fields);
    if (*subresource) entry.set_subresource(subresource);
  };
  add(parent, "applier", "Apply", "apps/v1", R"({"f:spec":{"f:replicas":{},"f:selector":{}}})");
  add(parent, "creator", "Update", "apps/v1", R"({"f:spec":{"f:paused":{}}})");
  ManagedFields::Encoded scale = ScaleManagedFields(parent);
  EXPECT_EQ(Print(scale), Lines{R"(applier Apply autoscaling/v1 {"f:spec":{"f:replicas":{}}})"});
  // Unchanged.
  EXPECT_EQ(Print(ParentManagedFields(parent, scale, "apps/v1")), Print(parent));
  // Taken over by a scaler.
  ManagedFields::Encoded taken;
  add(taken, "kubectl", "Update", "autoscaling/v1", R"({"f:spec":{"f:replicas":{}}})", "scale");
  EXPECT_EQ(Print(ParentManagedFields(parent, taken, "apps/v1")),
            (Lines{R"(applier Apply apps/v1 {"f:spec":{"f:selector":{}}})",
                   R"(creator Update apps/v1 {"f:spec":{"f:paused":{}}})",
                   R"(kubectl Update apps/v1/scale {"f:spec":{"f:replicas":{}}})"}));
}

}  // namespace
}  // namespace keelson::registry
