// The common behaviour of creates, updates and patches: names, versions, owners, errors of patches.
#include "controlplane/registry/testing/fixture.h"

namespace keelson::registry {
namespace {

class WriteTest : public RegistryTest {
 protected:
  std::string UpdateError(const corev1::ConfigMap& map, std::string_view name = "m") {
    auto written = (*plane_)->Update(Row<corev1::ConfigMap>(), "default", name,
                                     std::make_unique<corev1::ConfigMap>(map), {});
    return written ? "" : written.error().message();
  }
  std::string PatchError(PatchType type, const std::string& patch, Code* code = nullptr,
                         FieldValidation validation = FieldValidation::kStrict) {
    WriteOptions options;
    options.field_validation = validation;
    auto written = (*plane_)->Patch(Row<corev1::ConfigMap>(), "default", "m", type, patch, options);
    if (written) return "";
    if (code) *code = written.error().code();
    return written.error().message();
  }
};

TEST_F(WriteTest, BodiesMustFitTheUrl) {
  auto made = *Create(ConfigMap("m"));
  auto other = made;
  other.mutable_metadata()->set_name("other");
  EXPECT_EQ(UpdateError(other), "the name of the object (other) does not match the name on the URL (m)");
  other.mutable_metadata()->clear_name();
  EXPECT_EQ(UpdateError(other),
            "the name of the object (m based on URL) was undeterminable: name must be provided");
  other = made;
  other.mutable_metadata()->set_namespace_("elsewhere");
  EXPECT_EQ(UpdateError(other),
            "the namespace of the provided object does not match the namespace sent on the request");
  other = made;
  other.mutable_metadata()->set_uid("another");
  EXPECT_EQ(
      UpdateError(other),
      "Operation cannot be fulfilled on configmaps \"m\": StorageError: invalid object, Code: 4, Key: "
      "/registry/configmaps/default/m, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
      "precondition: another, UID in object meta: " +
          made.metadata().uid());
  other = made;
  other.mutable_metadata()->set_resource_version("abc");
  EXPECT_EQ(UpdateError(other), "strconv.ParseUint: parsing \"abc\": invalid syntax");
  EXPECT_EQ(UpdateError(ConfigMap("none"), "none"), "configmaps \"none\" not found");
}

TEST_F(WriteTest, WhatTheServerSetsStays) {
  auto made = *Create(ConfigMap("m"));
  auto changed = made;
  changed.mutable_metadata()->mutable_creation_timestamp()->set_seconds(5);
  changed.mutable_metadata()->clear_uid();
  changed.mutable_metadata()->set_generation(7);
  auto updated = Update(changed);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_EQ(updated->metadata().resource_version(), made.metadata().resource_version())
      << "nothing has changed";
  changed.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(5);
  EXPECT_EQ(UpdateError(changed),
            "ConfigMap \"m\" is invalid: metadata.deletionTimestamp: Invalid value: "
            "\"1970-01-01T00:00:05Z\": field is "
            "immutable");
}

TEST_F(WriteTest, SomeKindsAreCreatedByUpdates) {
  rbacv1::Role role;
  role.mutable_metadata()->set_name("r");
  auto written =
      (*plane_)->Update(Row<rbacv1::Role>(), "default", "r", std::make_unique<rbacv1::Role>(role), {});
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_TRUE(written->created);
  auto service = (*plane_)->Update(Row<corev1::Service>(), "default", "s",
                                   std::make_unique<corev1::Service>(Service("s")), {});
  ASSERT_TRUE(service) << service.error().message();
  EXPECT_TRUE(service->created);
  EXPECT_NE(Get<corev1::Service>("s")->spec().cluster_ip(), "");
}

TEST_F(WriteTest, SomeKindsWantTheVersion) {
  coordinationv1::Lease lease;
  lease.mutable_metadata()->set_name("l");
  ASSERT_TRUE(Create(lease));
  lease.mutable_metadata()->set_namespace_("default");
  auto blind = Update(lease);
  ASSERT_FALSE(blind);
  EXPECT_EQ(blind.error().message(),
            "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must "
            "be specified "
            "for an update");
}

TEST_F(WriteTest, GeneratedNamesThatExistSaySo) {
  auto map = ConfigMap("m");
  map.mutable_metadata()->set_generate_name("m");
  ASSERT_TRUE(Create(map));
  auto again = Create(map);
  ASSERT_FALSE(again);
  EXPECT_EQ(
      again.error().message(),
      "configmaps \"m\" already exists, the server was not able to generate a unique name for the object");
  EXPECT_EQ(again.error().details()->retry_after_seconds, 1);
}

TEST_F(WriteTest, OwnersAreNamedOnce) {
  auto map = ConfigMap("m");
  for (int i = 0; i < 2; ++i) {
    metav1::OwnerReference& owner = *map.mutable_metadata()->add_owner_references();
    owner.set_api_version("v1");
    owner.set_kind("ConfigMap");
    owner.set_name("o");
    owner.set_uid("u");
  }
  auto written = (*plane_)->Create(Row<corev1::ConfigMap>(), "default", "",
                                   std::make_unique<corev1::ConfigMap>(map), {});
  ASSERT_TRUE(written) << written.error().message();
  auto message = written->object->Decode();
  EXPECT_EQ(api::Meta(*message).owner_references_size(), 1);
  ASSERT_EQ(written->warnings.size(), 1u);
  EXPECT_EQ(
      written->warnings[0],
      ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
      "and "
      "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: [u]");
}

TEST_F(WriteTest, FinalizersAreQualifiedOrKnown) {
  auto map = ConfigMap("m");
  map.mutable_metadata()->add_finalizers("mine");
  auto refused = Create(map);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "ConfigMap \"m\" is invalid: metadata.finalizers[0]: Invalid value: \"mine\": name is neither a "
            "standard "
            "finalizer name nor is it fully qualified");
  map.mutable_metadata()->set_finalizers(0, "orphan");
  EXPECT_TRUE(Create(map));
}

TEST_F(WriteTest, PatchesThatDoNotApplySayWhatUpstreamSays) {
  ASSERT_TRUE(Create(ConfigMap("m")));
  constexpr char kRejected[] = "the server rejected our request due to an error in our request";
  Code code = Code::kInternal;
  EXPECT_EQ(PatchError(PatchType::kJson, R"([{"op":"remove","path":"/data/none"}])", &code), kRejected);
  EXPECT_EQ(code, Code::kInvalid);
  EXPECT_EQ(PatchError(PatchType::kJson, R"([{"op":"test","path":"/data/a","value":"2"}])"), kRejected);
  EXPECT_EQ(PatchError(PatchType::kJson, R"([{"op":"jump","path":"/data/a"}])"), kRejected);
  EXPECT_EQ(PatchError(PatchType::kJson, R"({"op":"add"})", &code),
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  EXPECT_EQ(code, Code::kBadRequest);
  std::string many = "[";
  for (int i = 0; i <= 10000; ++i) {
    many += std::string(i ? "," : "") + R"({"op":"test","path":"/data/a","value":"1"})";
  }
  EXPECT_EQ(PatchError(PatchType::kJson, many + "]", &code),
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001");
  EXPECT_EQ(code, Code::kTooLarge);
  EXPECT_EQ(
      PatchError(PatchType::kMerge, "[]"),
      "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}");
  EXPECT_EQ(PatchError(PatchType::kStrategicMerge, "7"),
            "json: cannot unmarshal number into Go value of type map[string]interface {}");
  EXPECT_EQ(PatchError(PatchType::kStrategicMerge, R"({"data":{"$patch":"jump"}})"),
            "unknown patch type: jump in map: map[$patch:jump]");
  EXPECT_NE(PatchError(PatchType::kStrategicMerge, R"({"data":{"b":[1,null]}})")
                .find("patch: Invalid value: \"map[data:map[b:[1 <nil>]]]\": "),
            std::string::npos);
}

TEST_F(WriteTest, PatchesKeepIdentity) {
  auto made = *Create(ConfigMap("m"));
  EXPECT_EQ(PatchError(PatchType::kMerge, R"({"metadata":{"name":"x"}})"),
            "the name of the object (x) does not match the name on the URL (m)");
  Code code = Code::kInternal;
  EXPECT_EQ(PatchError(PatchType::kMerge, R"({"metadata":{"uid":"x"}})", &code),
            "ConfigMap \"m\" is invalid: metadata.uid: Invalid value: \"x\": field is immutable");
  EXPECT_EQ(code, Code::kInvalid);
  EXPECT_EQ(PatchError(PatchType::kMerge, R"({"metadata":{"resourceVersion":"1"}})", &code),
            "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please apply "
            "your changes "
            "to the latest version and try again");
  EXPECT_EQ(code, Code::kConflict);
  auto same = Patch<corev1::ConfigMap>("m", PatchType::kMerge, R"({"data":{"a":"1"}})");
  ASSERT_TRUE(same);
  EXPECT_EQ(same->metadata().resource_version(), made.metadata().resource_version());
}

TEST_F(WriteTest, PatchesThatNameAFieldTwiceAreNoticed) {
  ASSERT_TRUE(Create(ConfigMap("m")));
  const std::string patch = R"({"immutable":false,"immutable":false,"bogus":1})";
  std::string error = PatchError(PatchType::kMerge, patch);
  EXPECT_NE(error.find("strict decoding error: duplicate field \"immutable\", unknown field \"bogus\""),
            std::string::npos)
      << error;
  WriteOptions warn;
  auto written =
      (*plane_)->Patch(Row<corev1::ConfigMap>(), "default", "m", PatchType::kStrategicMerge, patch, warn);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->warnings,
            (std::vector<std::string>{"duplicate field \"immutable\"", "unknown field \"bogus\""}));
}

TEST_F(WriteTest, BindsAsUpstream) {
  corev1::Node node;
  node.mutable_metadata()->set_name("n1");
  ASSERT_TRUE(Create(node, ""));
  auto pod = *Create(Pod("p"));
  pod.mutable_status()->set_nominated_node_name("n2");
  ASSERT_TRUE(
      (*plane_)->Update(Row("", "pods/status"), "default", "p", std::make_unique<corev1::Pod>(pod), {}));
  ASSERT_EQ(Get<corev1::Pod>("p")->status().nominated_node_name(), "n2");
  corev1::Binding binding;
  binding.mutable_metadata()->set_name("p");
  (*binding.mutable_metadata()->mutable_annotations())["why"] = "because";
  (*binding.mutable_metadata()->mutable_labels())["topology.kubernetes.io/zone"] = "z";
  binding.mutable_target()->set_name("n1");
  auto bind = [&](const corev1::Binding& body) {
    return (*plane_)->Create(Row("", "pods/binding"), "default", "p", std::make_unique<corev1::Binding>(body),
                             {});
  };
  auto wrong = binding;
  wrong.mutable_metadata()->set_uid("another");
  EXPECT_EQ(bind(wrong).error().code(), Code::kConflict);
  wrong = binding;
  wrong.mutable_target()->clear_name();
  EXPECT_EQ(bind(wrong).error().message(), "target.name: Required value");
  wrong = binding;
  wrong.mutable_metadata()->set_name("q");
  EXPECT_EQ(bind(wrong).error().message(), "name in URL does not match name in Binding object");
  ASSERT_TRUE(bind(binding));
  auto bound = *Get<corev1::Pod>("p");
  EXPECT_EQ(bound.spec().node_name(), "n1");
  EXPECT_EQ(bound.metadata().annotations().at("why"), "because");
  EXPECT_EQ(bound.metadata().labels().at("topology.kubernetes.io/zone"), "z");
  EXPECT_EQ(bound.metadata().generation(), pod.metadata().generation());
  EXPECT_EQ(bound.status().nominated_node_name(), "");
  EXPECT_EQ(bind(binding).error().message(),
            "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"");
}

TEST_F(WriteTest, ScalesSayWhatTheyAre) {
  ASSERT_TRUE(Create(Deployment("d")));
  const ResourceInfo& row = Row("apps", "deployments/scale");
  auto read = (*plane_)->Get(row, "default", "d");
  ASSERT_TRUE(read);
  auto scale = static_cast<const autoscalingv1::Scale&>(*(*read)->Decode());
  auto put = [&](const autoscalingv1::Scale& body) {
    auto written = (*plane_)->Update(row, "default", "d", std::make_unique<autoscalingv1::Scale>(body), {});
    return written ? std::string() : written.error().message();
  };
  auto wrong = scale;
  wrong.mutable_spec()->set_replicas(-1);
  EXPECT_EQ(put(wrong),
            "Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or "
            "equal to 0");
  wrong = scale;
  wrong.mutable_metadata()->set_uid("x");
  EXPECT_EQ(put(wrong),
            "Operation cannot be fulfilled on deployments/scale.apps \"d\": Precondition failed: UID in "
            "precondition: x, UID in object meta: " +
                scale.metadata().uid());
  scale.mutable_spec()->set_replicas(3);
  EXPECT_EQ(put(scale), "");
  scale.mutable_spec()->set_replicas(4);
  EXPECT_EQ(put(scale),
            "Operation cannot be fulfilled on deployments.apps \"d\": the object has been modified; please "
            "apply your "
            "changes to the latest version and try again");
  EXPECT_EQ(Get<appsv1::Deployment>("d")->spec().replicas(), 3);
}

}  // namespace
}  // namespace keelson::registry
