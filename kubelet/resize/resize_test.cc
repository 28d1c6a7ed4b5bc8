#include <gtest/gtest.h>

#include "kubelet/container/labels.h"
#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/resize/resizer.h"
#include "kubelet/resize/testing/allocations_test.h"
#include "lib/base/file.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {
namespace {

TEST_F(AllocationsTest, AWishIsNotGrantedByItself) {
  Allocations allocations(paths_);
  auto pod = MakePod({Resources("100m/1Mi", "200m/2Mi")});
  EXPECT_EQ(allocations.Granted(pod), pod);  // unknown yet
  allocations.Restore(*pod, {});
  EXPECT_EQ(allocations.Granted(pod), pod);
  EXPECT_FALSE(PathExists(paths_.Pod("uid") + "/resources.json"));  // nothing to remember
  auto wish = MakePod({Resources("300m/1024Ki", "400m/2Mi")});
  auto granted = allocations.Granted(wish);
  ASSERT_NE(granted, wish);
  EXPECT_TRUE(
      SameResources(granted->spec().containers(0).resources(), pod->spec().containers(0).resources()));
  ASSERT_TRUE(allocations.Grant(*wish));
  EXPECT_EQ(allocations.Granted(wish), wish);
  EXPECT_TRUE(SameResources(allocations.Granted(pod)->spec().containers(0).resources(),
                            wish->spec().containers(0).resources()));
}

TEST_F(AllocationsTest, WhatWasGrantedSurvivesARestart) {
  auto pod = MakePod({Resources("100m/1Mi", "/"), Resources("1/", "/")});
  auto wish = MakePod({Resources("300m/1Mi", "/"), Resources("2/", "/")});
  PodRuntimeStatus status;
  status.containers = {Record("c1", "id1", ResourcesText(Resources("100m/1Mi", "/"))),
                       Record("c2", "id2", "")};
  {
    Allocations first(paths_);  // the request arrived while no kubelet ran
    first.Restore(*wish, status);
    auto granted = first.Granted(wish);
    EXPECT_TRUE(SameResources(granted->spec().containers(0).resources(), Resources("100m/1Mi", "/")));
    EXPECT_TRUE(
        SameResources(granted->spec().containers(1).resources(), Resources("2/", "/")));  // nothing is known
    EXPECT_TRUE(SameResources(*first.Actual("uid", status.containers[0]), Resources("100m/1Mi", "/")));
    EXPECT_FALSE(first.Actual("uid", status.containers[1]));
    ASSERT_TRUE(first.Grant(*wish));
    ASSERT_TRUE(first.SetActual("uid", "id1", Resources("200m/1Mi", "/")));
  }
  Allocations second(paths_);
  second.Restore(*pod, status);
  EXPECT_TRUE(
      SameResources(second.Granted(pod)->spec().containers(0).resources(), Resources("300m/1Mi", "/")));
  EXPECT_TRUE(SameResources(*second.Actual("uid", status.containers[0]), Resources("200m/1Mi", "/")));
  second.Forget("uid");
  EXPECT_EQ(second.Granted(pod), pod);
}

TEST_F(AllocationsTest, ThePodAsAWholeToo) {
  auto pod = MakePod({Resources("100m/1Mi", "/")});
  *pod->mutable_spec()->mutable_resources() = Resources("200m/", "300m/");
  (*pod->mutable_spec()->mutable_resources()->mutable_limits())["hugepages-2Mi"].set_string("2Mi");
  auto wish = std::make_shared<corev1::Pod>(*pod);
  SetResizable(Resources("400m/", "500m/"), *wish->mutable_spec()->mutable_resources());
  PodRuntimeStatus status;
  status.containers = {Record("c1", "id1", ResourcesText(Resources("100m/1Mi", "/")))};
  status.containers[0].annotations[kPodResourcesAnnotation] = ResourcesText(Resources("200m/", "300m/"));
  {
    Allocations first(paths_);  // the request arrived while no kubelet ran
    first.Restore(*wish, status);
    auto granted = first.Granted(wish);
    EXPECT_TRUE(SameResources(granted->spec().resources(), Resources("200m/", "300m/")));
    EXPECT_EQ(granted->spec().resources().limits().count("hugepages-2Mi"), 1u);
    EXPECT_TRUE(SameResources(*first.ActualOfPod("uid", status), Resources("200m/", "300m/")));
    ASSERT_TRUE(first.Grant(*wish));
    EXPECT_EQ(first.Granted(wish), wish);
    ASSERT_TRUE(first.SetActual("uid", "", wish->spec().resources()));
    ASSERT_TRUE(first.SetActual("uid", "id1", Resources("100m/1Mi", "/"), &wish->spec().resources()));
  }
  Allocations second(paths_);
  second.Restore(*wish, status);
  EXPECT_EQ(second.Granted(wish), wish);
  EXPECT_TRUE(SameResources(*second.ActualOfPod("uid", status), Resources("400m/", "500m/")));
  EXPECT_TRUE(SameResources(*second.ActualOfPod("uid", status.containers[0]), Resources("400m/", "500m/")));
  // Without a word of the pod there was nothing to say; of another kubelet's container nothing is known.
  status.containers = {Record("c1", "id2", ResourcesText({})), Record("c2", "id3", "")};
  EXPECT_TRUE(SameResources(*second.ActualOfPod("uid", status.containers[0]), {}));
  EXPECT_FALSE(second.ActualOfPod("uid", status.containers[1]));
}

TEST_F(AllocationsTest, RubbishInTheFileIsLeft) {
  ASSERT_TRUE(WriteFile(paths_.Pod("uid") + "/resources.json", "{\"granted\":"));
  Allocations allocations(paths_);
  auto pod = MakePod({Resources("100m/1Mi", "/")});
  allocations.Restore(*pod, {});
  EXPECT_EQ(allocations.Granted(pod), pod);
}

TEST(RefuseResize, Table) {
  NodeRoom room;
  room.allocatable["cpu"] = *api::Amount::Parse("2");
  room.allocatable["memory"] = *api::Amount::Parse("1Gi");
  room.used_by_others["cpu"] = *api::Amount::Parse("500m");
  room.used_by_others["pods"] = api::Amount::FromInt(3);
  NodeRoom fixed = room;
  fixed.static_cpus = fixed.static_memory = true;
  auto small = MakePod({Resources("100m/1Mi", "100m/1Mi")});
  auto of_file = MakePod({Resources("1/1Mi", "/")});
  auto init = [](const std::string& cpu) {
    auto pod = MakePod({Resources("100m/1Mi", "100m/1Mi")});
    *pod->mutable_spec()->add_init_containers()->mutable_resources() = Resources(cpu + "/1Mi", cpu + "/1Mi");
    return pod;
  };
  (*of_file->mutable_metadata()->mutable_annotations())["kubernetes.io/config.source"] = "file";
  const struct {
    const char* name;
    std::shared_ptr<corev1::Pod> wish;
    const NodeRoom& room;
    std::string reason, message;
    std::shared_ptr<corev1::Pod> granted = nullptr;  // small
  } kCases[] = {
      {"fits", MakePod({Resources("1500m/1Gi", "/")}), room, "", ""},
      {"others are in the way", MakePod({Resources("1/1Mi", "/"), Resources("600m/1Mi", "/")}), room,
       "Deferred", "Node didn't have enough resource: cpu, requested: 1600, used: 500, capacity: 2000"},
      {"too large for the node", MakePod({Resources("2500m/1Mi", "/")}), room, "Infeasible",
       "Node didn't have enough capacity: cpu, requested: 2500, capacity: 2000"},
      {"memory is told first", MakePod({Resources("3/2Gi", "/")}), room, "Infeasible",
       "Node didn't have enough capacity: memory, requested: 2147483648, capacity: 1073741824"},
      {"CPUs of its own", MakePod({Resources("200m/1Mi", "200m/1Mi")}), fixed, "Infeasible",
       "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy"},
      {"memory of its own", MakePod({Resources("100m/2Mi", "100m/2Mi")}), fixed, "Infeasible",
       "Resize is infeasible for Guaranteed Pods alongside Memory Manager static policy"},
      {"burstable pods share", MakePod({Resources("200m/1Mi", "/")}), fixed, "", ""},
      {"also of init containers", init("200m"), fixed, "Infeasible",
       "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy", init("100m")},
      {"static pod", of_file, room, "Infeasible", "In-place resize of static-pods is not supported"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    auto refusal = RefuseResize(*test.wish, test.granted ? *test.granted : *small, test.room);
    EXPECT_EQ(refusal ? refusal->reason : "", test.reason);
    EXPECT_EQ(refusal ? refusal->message : "", test.message);
  }
}

TEST(PlanResize, UpdatesInPlaceUnlessThePolicyWantsARestart) {
  auto pod = MakePod({Resources("200m/1Mi", "/"), Resources("100m/2Mi", "/4Mi"), Resources("1/", "/"),
                      Resources("1/", "/")});
  for (auto& container : *pod->mutable_spec()->mutable_containers()) {
    auto& policy = *container.add_resize_policy();
    policy.set_resource_name("memory");
    policy.set_restart_policy("RestartContainer");
  }
  PodRuntimeStatus status;
  status.containers = {Record("c1", "1", ""), Record("c2", "2", ""), Record("c3", "3", ""),
                       Record("c4", "4", "")};
  status.containers[3].state = cri::ContainerState::kExited;
  std::map<std::string, corev1::ResourceRequirements> actual = {{"1", Resources("100m/1Mi", "/")},
                                                                {"2", Resources("100m/2Mi", "/2Mi")},
                                                                {"3", Resources("1000m/", "/")},
                                                                {"4", Resources("9/", "/")}};
  ResizePlan plan = PlanResize(
      *pod, status, [&](const ContainerRecord& record) { return std::optional(actual.at(record.id)); });
  ASSERT_EQ(plan.update.size(), 1u);
  EXPECT_EQ(plan.update[0].container + plan.update[0].id, "c11");
  EXPECT_TRUE(SameResources(plan.update[0].to, Resources("200m/1Mi", "/")));
  EXPECT_EQ(plan.restart, (std::set<std::string>{"c2"}));
  EXPECT_TRUE(PlanResize(*pod, status, [](const ContainerRecord&) { return std::nullopt; }).empty());
}

TEST(PlanResize, InitContainersWhileTheyRun) {
  auto pod = MakePod({Resources("1/", "/")});
  for (const char* name : {"done", "runs", "side"}) {
    corev1::Container& container = *pod->mutable_spec()->add_init_containers();
    container.set_name(name);
    *container.mutable_resources() = Resources("200m/", "/");
  }
  pod->mutable_spec()->mutable_init_containers(2)->set_restart_policy("Always");
  PodRuntimeStatus status;
  for (const char* name : {"done", "runs", "side"}) status.containers.push_back(Record(name, name, ""));
  status.containers[0].state = cri::ContainerState::kExited;
  ResizePlan plan =
      PlanResize(*pod, status, [](const ContainerRecord&) { return std::optional(Resources("100m/", "/")); });
  std::vector<std::string> names;
  for (const ContainerResize& resize : plan.update) names.push_back(resize.container);
  EXPECT_EQ(names, (std::vector<std::string>{"runs", "side"}));
  EXPECT_TRUE(plan.restart.empty());
}

TEST(PlanResize, LimitsOfThePodAreThoseOfContainersWithoutTheirOwn) {
  auto pod = MakePod({Resources("/", "/"), Resources("/", "/"), Resources("100m/1Mi", "100m/1Mi")});
  *pod->mutable_spec()->mutable_resources() = Resources("500m/8Mi", "1/8Mi");
  corev1::ContainerResizePolicy& policy = *pod->mutable_spec()->mutable_containers(1)->add_resize_policy();
  policy.set_resource_name("memory");
  policy.set_restart_policy("RestartContainer");
  PodRuntimeStatus status;
  for (const char* name : {"c1", "c2", "c3"}) status.containers.push_back(Record(name, name, ""));
  const struct {
    std::string what;
    corev1::ResourceRequirements cgroup, told;
    std::string update, restart;
  } cases[] = {
      {"all is as it should be", Resources("500m/8Mi", "1/8Mi"), Resources("500m/8Mi", "1/8Mi"), "", ""},
      {"requests are the cgroup's alone", Resources("1/8Mi", "1/8Mi"), Resources("1/8Mi", "1/8Mi"), "|", ""},
      {"a limit", Resources("500m/8Mi", "2/8Mi"), Resources("500m/8Mi", "2/8Mi"), "|c1|c2|", ""},
      {"of which a policy speaks", Resources("500m/8Mi", "1/9Mi"), Resources("500m/8Mi", "1/9Mi"), "|c1|",
       "c2|"},
      {"the cgroup is done", Resources("500m/8Mi", "1/8Mi"), Resources("500m/8Mi", "2/8Mi"), "c1|c2|", ""}};
  for (const auto& c : cases) {
    ResizePlan plan = PlanResize(
        *pod, status,
        [&](const ContainerRecord& record) {
          return std::optional(Resizable(k8s::FindContainer(pod->spec(), record.name)->resources()));
        },
        {c.cgroup, [&](const ContainerRecord&) { return std::optional(c.told); }});
    std::string update, restart;
    for (const ContainerResize& resize : plan.update) update += resize.container + "|";
    for (const std::string& name : plan.restart) restart += name + "|";
    EXPECT_EQ(update, c.update) << c.what;
    EXPECT_EQ(restart, c.restart) << c.what;
  }
}

TEST(SetResizeConditions, TellsWhatIsPending) {
  auto pod = MakePod({});
  metav1::Time before, now;
  before.set_seconds(100);
  now.set_seconds(200);
  corev1::PodCondition& old = *pod->mutable_status()->add_conditions();
  old.set_type("PodResizePending");
  old.set_status("True");
  old.set_reason("Deferred");
  *old.mutable_last_transition_time() = before;
  corev1::PodStatus status = pod->status();
  SetResizeConditions(*pod, {"Deferred", "no room", true, "runtime says no"}, now, status);
  ASSERT_EQ(status.conditions_size(), 2);
  EXPECT_EQ(status.conditions(0).message(), "no room");
  EXPECT_EQ(status.conditions(0).observed_generation(), 3);
  EXPECT_EQ(status.conditions(0).last_transition_time().seconds(), 100);
  EXPECT_EQ(status.conditions(1).type() + status.conditions(1).reason(), "PodResizeInProgressError");
  EXPECT_EQ(status.conditions(1).last_transition_time().seconds(), 200);
  SetResizeConditions(*pod, {}, now, status);
  EXPECT_EQ(status.conditions_size(), 0);
}

class FakeCgroups : public PodCgroups {
 public:
  std::vector<std::string> limits;  // memory of all containers, at each Ensure
  Result<> Start(const NodeContext&) override { return {}; }
  Result<> Ensure(const corev1::Pod& pod, const NodeContext&) override {
    limits.push_back(std::to_string(k8s::AmountOf(k8s::PodLimits(pod), "memory").Value()));
    return {};
  }
  std::string Parent(const corev1::Pod&) const override { return ""; }
  Result<> Remove(const std::string&) override { return {}; }
  std::set<std::string> Uids() const override { return {}; }
  uint64_t used = 0;
  linux::CgroupUsage Usage(const corev1::Pod&) const override {
    linux::CgroupUsage usage;
    usage.memory_bytes = used;
    return usage;
  }
};

class BusyRuntime : public cri::FakeRuntime {
 public:
  uint64_t usage = 0;
  Result<std::vector<cri::ContainerStats>> ListContainerStats(const cri::Filter& filter,
                                                              std::stop_token) override {
    cri::ContainerStats stats;
    stats.id = filter.id;
    stats.memory_usage_bytes = usage;
    return std::vector<cri::ContainerStats>{stats};
  }
};

class ResizerTest : public AllocationsTest {
 protected:
  void SetUp() override {
    runtime_.AddImage("image");
    cri::SandboxConfig sandbox;
    sandbox.metadata.uid = "uid";
    sandbox_ = *runtime_.RunPodSandbox(sandbox, "", {});
    for (const char* name : {"c1", "c2"}) {
      cri::ContainerConfig config;
      config.name = name;
      config.image = "image";
      auto id = runtime_.CreateContainer(sandbox_, config, sandbox, {});
      ASSERT_TRUE(id) << id.error().message();
      ids_.push_back(*id);
    }
  }
  BusyRuntime runtime_;
  FakeCgroups cgroups_;
  Allocations allocations_{paths_};
  Resizer resizer_{runtime_, cgroups_, allocations_};
  std::string sandbox_;
  std::vector<std::string> ids_;
  NodeContext node_;
};

TEST_F(ResizerTest, ThePodsCgroupIsWideWhileContainersChange) {
  auto granted = MakePod({Resources("200m/1Mi", "300m/8Mi"), Resources("100m/1Mi", "/2Mi")});
  std::vector<ContainerResize> resizes = {
      {"c1", ids_[0], Resources("100m/1Mi", "100m/4Mi"), granted->spec().containers(0).resources()},
      {"c2", ids_[1], Resources("100m/1Mi", "/6Mi"), granted->spec().containers(1).resources()}};
  runtime_.usage = 1 << 20;
  ASSERT_TRUE(resizer_.Apply(*granted, resizes, node_, {}));
  EXPECT_EQ(cgroups_.limits, (std::vector<std::string>{std::to_string(14 << 20), std::to_string(10 << 20)}));
  EXPECT_EQ(runtime_.LastConfig("c1").resources.memory_limit_bytes, 8 << 20);
  EXPECT_EQ(runtime_.LastConfig("c1").resources.cpu_quota, 30000);
  EXPECT_EQ(runtime_.LastConfig("c2").resources.cpu_quota, -1);
  EXPECT_TRUE(
      SameResources(*allocations_.Actual("uid", Record("c2", ids_[1], "")), Resources("100m/1Mi", "/2Mi")));
}

TEST_F(ResizerTest, OneThatCannotShrinkHoldsUpNoOther) {
  auto granted = MakePod({Resources("100m/1Mi", "/2Mi"), Resources("200m/1Mi", "/4Mi")});
  std::vector<ContainerResize> resizes = {
      {"c1", ids_[0], Resources("100m/1Mi", "/4Mi"), granted->spec().containers(0).resources()},
      {"c2", ids_[1], Resources("100m/1Mi", "/4Mi"), granted->spec().containers(1).resources()}};
  runtime_.usage = 3 << 20;
  auto applied = resizer_.Apply(*granted, resizes, node_, {});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().message(),
            "attempting to set container \"c1\" memory limit (2097152) below current usage (3145728)");
  EXPECT_EQ(cgroups_.limits, (std::vector<std::string>{std::to_string(8 << 20)}));  // not narrow yet
  EXPECT_FALSE(allocations_.Actual("uid", Record("c1", ids_[0], "")));
  EXPECT_TRUE(allocations_.Actual("uid", Record("c2", ids_[1], "")));
}

TEST_F(ResizerTest, APodDoesNotShrinkBelowWhatItUses) {
  auto granted = MakePod({Resources("/", "/")});
  *granted->mutable_spec()->mutable_resources() = Resources("/", "/2Mi");
  std::vector<ContainerResize> resizes = {{"", "", Resources("/", "/4Mi"), Resources("/", "/2Mi")},
                                          {"c1", ids_[0], {}, {}}};
  cgroups_.used = 3 << 20;
  auto applied = resizer_.Apply(*granted, resizes, node_, {});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().message(),
            "attempting to set pod memory limit (2097152) below current usage (3145728)");
  EXPECT_TRUE(cgroups_.limits.empty());
  cgroups_.used = 1 << 20;
  ASSERT_TRUE(resizer_.Apply(*granted, resizes, node_, {}));
  EXPECT_EQ(cgroups_.limits, (std::vector<std::string>{std::to_string(4 << 20), std::to_string(2 << 20)}));
  EXPECT_EQ(runtime_.LastConfig("c1").resources.memory_limit_bytes, 2 << 20);
  EXPECT_TRUE(SameResources(*allocations_.ActualOfPod("uid", PodRuntimeStatus()), Resources("/", "/2Mi")));
  EXPECT_TRUE(
      SameResources(*allocations_.ActualOfPod("uid", Record("c1", ids_[0], "")), Resources("/", "/2Mi")));
}

}  // namespace
}  // namespace keelson::kubelet
