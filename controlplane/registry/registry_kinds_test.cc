// Kinds with special behaviour: pods, namespaces, services, events, secrets, jobs.
#include "controlplane/registry/testing/fixture.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/proto/networking_v1.pb.h"

namespace keelson::registry {
namespace {

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
  // Get() read from etcd, so wait for the cache through a list.
  ASSERT_TRUE((*plane_)->List(Row<corev1::Namespace>(), "", {}));
  auto refused = Create(ConfigMap("m"), "team");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kForbidden);
  EXPECT_EQ(
      refused.error().message(),
      "configmaps \"m\" is forbidden: unable to create new content in namespace team because it is being "
      "terminated");

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

}  // namespace
}  // namespace keelson::registry
