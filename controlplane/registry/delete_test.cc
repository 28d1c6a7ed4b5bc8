// The steps of a deletion, and the meaning of its options.
#include <limits>

#include "controlplane/registry/testing/fixture.h"

namespace keelson::registry {
namespace {

using Options = metav1::DeleteOptions;

class DeleteTest : public RegistryTest {
 protected:
  const ResourceInfo& Maps() { return Row<corev1::ConfigMap>(); }
  const ResourceInfo& Pods() { return Row<corev1::Pod>(); }
  void MakeScheduled(const std::string& name) {
    corev1::Pod pod = Pod(name);
    pod.mutable_spec()->set_node_name("n1");
    auto made = Create(pod);
    ASSERT_TRUE(made) << made.error().message();
  }
  static Options Grace(int64_t seconds) {
    Options options;
    options.set_grace_period_seconds(seconds);
    return options;
  }
  std::string Refusal(const Options& options) {
    auto deleted = Delete(Maps(), "m", options);
    return deleted ? "" : deleted.error().message();
  }
};

TEST_F(DeleteTest, OptionsAreChecked) {
  ASSERT_TRUE(Create(ConfigMap("m")));
  Options both;
  both.set_orphan_dependents(true);
  both.set_propagation_policy("Orphan");
  EXPECT_EQ(Refusal(both),
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": "
            "orphanDependents and deletionPropagation cannot be both set");
  Options unknown;
  unknown.set_propagation_policy("Sideways");
  EXPECT_EQ(Refusal(unknown),
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Sideways\": "
            "supported "
            "values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
  Options dry;
  dry.add_dry_run("Some");
  EXPECT_EQ(
      Refusal(dry),
      "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: "
      "\"All\"");
  Options unsafe;
  unsafe.set_ignore_store_read_error_with_cluster_breaking_potential(true);
  unsafe.set_grace_period_seconds(0);
  EXPECT_EQ(
      Refusal(unsafe),
      "DeleteOptions.meta.k8s.io \"\" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid "
      "value: true: cannot be set together with .gracePeriodSeconds");
  Options uid;
  uid.mutable_preconditions()->set_uid("x");
  const std::string stored = Get<corev1::ConfigMap>("m")->metadata().uid();
  EXPECT_EQ(Refusal(uid),
            "Operation cannot be fulfilled on ConfigMap \"m\": the UID in the precondition (x) does not "
            "match the UID in record (" +
                stored + "). The object might have been deleted and then recreated");
  Options version;
  version.mutable_preconditions()->set_resource_version("1");
  EXPECT_NE(
      Refusal(version).find("Operation cannot be fulfilled on ConfigMap \"m\": the ResourceVersion in the "
                            "precondition (1) does not match the ResourceVersion in record"),
      std::string::npos);
  ASSERT_TRUE(Delete(Maps(), "m"));
}

TEST_F(DeleteTest, FinalizersHoldAndLetGo) {
  auto map = ConfigMap("m");
  map.mutable_metadata()->add_finalizers("example.com/hold");
  ASSERT_TRUE(Create(map));
  auto begun = Delete(Maps(), "m");
  ASSERT_TRUE(begun) << begun.error().message();
  EXPECT_FALSE(begun->gone);
  auto held = Get<corev1::ConfigMap>("m");
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->metadata().has_deletion_timestamp());
  EXPECT_TRUE(held->metadata().has_deletion_grace_period_seconds());
  EXPECT_EQ(held->metadata().deletion_grace_period_seconds(), 0);
  // Again: nothing changes, nothing is written.
  auto again = Delete(Maps(), "m");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->object->revision(), begun->object->revision());
  // New finalizers are now refused.
  auto more = *held;
  more.mutable_metadata()->add_finalizers("example.com/late");
  auto refused = Update(more);
  ASSERT_FALSE(refused);
  EXPECT_NE(
      refused.error().message().find("metadata.finalizers: Forbidden: no new finalizers can be added if the "
                                     "object is being deleted, found new finalizers "
                                     "[]string{\"example.com/late\"}"),
      std::string::npos)
      << refused.error().message();
  held->mutable_metadata()->clear_finalizers();
  ASSERT_TRUE(Update(*held));
  EXPECT_FALSE(Get<corev1::ConfigMap>("m"));
}

struct Propagation {
  const char* kind;  // deployments, replicationcontrollers or events
  const char* policy;
  int orphan_dependents;                   // -1: absent
  std::vector<std::string> before, after;  // finalizers; after empty: gone
};

TEST_F(DeleteTest, DependentsGoAsAsked) {
  const Propagation cases[] = {
      {"deployments", "", -1, {}, {}},
      {"deployments", "Background", -1, {}, {}},
      {"deployments", "Foreground", -1, {}, {"foregroundDeletion"}},
      {"deployments", "Orphan", -1, {}, {"orphan"}},
      {"deployments", "", 1, {}, {"orphan"}},
      {"deployments", "", 0, {}, {}},
      {"deployments", "", -1, {"foregroundDeletion"}, {"foregroundDeletion"}},
      {"deployments", "Background", -1, {"foregroundDeletion"}, {}},
      {"deployments", "Orphan", -1, {"example.com/a"}, {"example.com/a", "orphan"}},
      {"replicationcontrollers", "", -1, {}, {"orphan"}},
      {"replicationcontrollers", "Background", -1, {}, {}},
      {"events", "Orphan", -1, {}, {}},
  };
  int i = 0;
  for (const Propagation& c : cases) {
    const std::string name = "o" + std::to_string(i++);
    auto add = [&](metav1::ObjectMeta& meta) {
      for (const std::string& finalizer : c.before) meta.add_finalizers(finalizer);
    };
    const ResourceInfo* info = &Row<appsv1::Deployment>();
    if (std::string(c.kind) == "deployments") {
      auto object = Deployment(name);
      add(*object.mutable_metadata());
      ASSERT_TRUE(Create(object));
    } else if (std::string(c.kind) == "events") {
      corev1::Event event;
      event.mutable_metadata()->set_name(name);
      event.mutable_metadata()->set_namespace_("default");
      event.mutable_involved_object()->set_namespace_("default");
      auto made = Create(event);
      ASSERT_TRUE(made) << made.error().message();
      info = &Row<corev1::Event>();
    } else {
      corev1::ReplicationController rc;
      rc.mutable_metadata()->set_name(name);
      (*rc.mutable_spec()->mutable_selector())["a"] = "b";
      auto& pod = *rc.mutable_spec()->mutable_template_();
      *pod.mutable_spec() = Pod("x").spec();
      (*pod.mutable_metadata()->mutable_labels())["a"] = "b";
      auto made = Create(rc);
      ASSERT_TRUE(made) << made.error().message();
      info = &Row<corev1::ReplicationController>();
    }
    Options options;
    if (*c.policy) options.set_propagation_policy(c.policy);
    if (c.orphan_dependents >= 0) options.set_orphan_dependents(c.orphan_dependents == 1);
    auto deleted = Delete(*info, name, options);
    ASSERT_TRUE(deleted) << deleted.error().message();
    EXPECT_EQ(deleted->gone, c.after.empty()) << c.kind << " " << c.policy << " " << c.orphan_dependents;
    auto left = (*plane_)->Get(*info, "default", name);
    std::vector<std::string> finalizers;
    if (left) {
      auto message = (*left)->Decode();
      const metav1::ObjectMeta& meta = api::Meta(*message);
      finalizers.assign(meta.finalizers().begin(), meta.finalizers().end());
      if (info->resource == "deployments") {
        EXPECT_EQ(meta.generation(), 2);
      }
    }
    EXPECT_EQ(finalizers, c.after) << c.kind << " " << c.policy;
  }
}

TEST_F(DeleteTest, GraceWithoutEnd) {
  MakeScheduled("p");
  const int64_t now = api::ToTime(Clock::Real().Now()).seconds();
  ASSERT_TRUE(Delete(Pods(), "p", Grace(std::numeric_limits<int64_t>::max())));
  EXPECT_GT(Get<corev1::Pod>("p")->metadata().deletion_timestamp().seconds(), now);
  ASSERT_TRUE(Delete(Pods(), "p", Grace(10)));
  const int64_t ends = Get<corev1::Pod>("p")->metadata().deletion_timestamp().seconds();
  EXPECT_GE(ends, now + 10);
  EXPECT_LT(ends, now + 60);
}

TEST_F(DeleteTest, GraceOfPods) {
  MakeScheduled("p");
  auto begun = Delete(Pods(), "p");
  ASSERT_TRUE(begun) << begun.error().message();
  EXPECT_FALSE(begun->gone);
  auto pod = *Get<corev1::Pod>("p");
  EXPECT_EQ(pod.metadata().deletion_grace_period_seconds(), 30);
  EXPECT_EQ(pod.metadata().generation(), 2);
  const int64_t ends = pod.metadata().deletion_timestamp().seconds();
  // The grace period never grows.
  ASSERT_TRUE(Delete(Pods(), "p", Grace(60)));
  EXPECT_EQ(Get<corev1::Pod>("p")->metadata().deletion_grace_period_seconds(), 30);
  ASSERT_TRUE(Delete(Pods(), "p"));
  EXPECT_EQ(Get<corev1::Pod>("p")->metadata().resource_version(), pod.metadata().resource_version());
  // It may become shorter, counted from the same start.
  ASSERT_TRUE(Delete(Pods(), "p", Grace(10)));
  pod = *Get<corev1::Pod>("p");
  EXPECT_EQ(pod.metadata().deletion_grace_period_seconds(), 10);
  EXPECT_EQ(pod.metadata().deletion_timestamp().seconds(), ends - 20);
  EXPECT_EQ(pod.metadata().generation(), 2);
  // A negative one means one second.
  ASSERT_TRUE(Delete(Pods(), "p", Grace(-5)));
  EXPECT_EQ(Get<corev1::Pod>("p")->metadata().deletion_grace_period_seconds(), 1);
  auto gone = Delete(Pods(), "p", Grace(0));
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->gone);
  EXPECT_FALSE(Get<corev1::Pod>("p"));
}

TEST_F(DeleteTest, PodsThatNobodyRunsGoAtOnce) {
  ASSERT_TRUE(Create(Pod("p")));
  auto gone = Delete(Pods(), "p");
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->gone);
  EXPECT_TRUE(gone->return_object);
  auto message = gone->object->Decode();
  EXPECT_TRUE(api::Meta(*message).has_deletion_timestamp()) << "those who watch see that it was deleted";
  EXPECT_EQ(api::Meta(*message).generation(), 2);
  EXPECT_FALSE(Get<corev1::Pod>("p"));
}

TEST_F(DeleteTest, HeldPodsKeepTheirGrace) {
  corev1::Pod pod = Pod("p");
  pod.mutable_spec()->set_node_name("n1");
  pod.mutable_metadata()->add_finalizers("example.com/hold");
  ASSERT_TRUE(Create(pod));
  ASSERT_TRUE(Delete(Pods(), "p"));
  EXPECT_EQ(Get<corev1::Pod>("p")->metadata().deletion_grace_period_seconds(), 30);
  auto zero = Delete(Pods(), "p", Grace(0));
  ASSERT_TRUE(zero);
  EXPECT_FALSE(zero->gone);
  auto held = *Get<corev1::Pod>("p");
  EXPECT_EQ(held.metadata().deletion_grace_period_seconds(), 0);
  held.mutable_metadata()->clear_finalizers();
  ASSERT_TRUE(Update(held));
  EXPECT_FALSE(Get<corev1::Pod>("p"));
}

TEST_F(DeleteTest, CollectionsGoBySelectorAndAreShown) {
  for (const char* name : {"a", "b", "c"}) {
    auto map = ConfigMap(name);
    (*map.mutable_metadata()->mutable_labels())["x"] = name[0] == 'c' ? "no" : "yes";
    ASSERT_TRUE(Create(map));
  }
  ListOptions list;
  list.label_selector = "x=yes";
  WriteOptions dry;
  dry.dry_run = true;
  auto shown = (*plane_)->DeleteCollection(Maps(), "default", list, {}, dry);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->items.size(), 2u);
  EXPECT_TRUE(Get<corev1::ConfigMap>("a"));
  auto deleted = (*plane_)->DeleteCollection(Maps(), "default", list, {}, {});
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->items.size(), 2u);
  EXPECT_FALSE(Get<corev1::ConfigMap>("a"));
  EXPECT_TRUE(Get<corev1::ConfigMap>("c"));
}

TEST_F(DeleteTest, NamespacesEndInTwoSteps) {
  corev1::Namespace ns;
  ns.mutable_metadata()->set_name("team");
  ASSERT_TRUE(Create(ns, ""));
  auto begun = Delete(Row<corev1::Namespace>(), "team", {}, "");
  ASSERT_TRUE(begun);
  EXPECT_FALSE(begun->gone);
  auto ending = *Get<corev1::Namespace>("team", "");
  EXPECT_EQ(ending.status().phase(), "Terminating");
  EXPECT_FALSE(ending.metadata().has_deletion_grace_period_seconds());
  auto again = Delete(Row<corev1::Namespace>(), "team", {}, "");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->object->revision(), begun->object->revision());
  auto immortal = Delete(Row<corev1::Namespace>(), "kube-system", {}, "");
  ASSERT_FALSE(immortal);
  EXPECT_EQ(immortal.error().message(),
            "namespaces \"kube-system\" is forbidden: this namespace may not be deleted");
}

}  // namespace
}  // namespace keelson::registry
