// Plugins that go by other objects: ranges, classes.
#include <gmock/gmock.h>

#include "controlplane/apiserver/admission/testing/attributes.h"
#include "controlplane/apiserver/admission/testing/object_store.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/proto/node_v1.pb.h"
#include "lib/api/proto/storage_v1.pb.h"

namespace keelson::apiserver {
namespace {

using testing::HasSubstr;
using Claim = corev1::PersistentVolumeClaim;
using api::networking::v1::Ingress;
using api::networking::v1::IngressClass;
using api::node::v1::RuntimeClass;
using api::storage::v1::StorageClass;

class Lookups : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    objects_ = std::make_unique<ObjectStore>();
  }
  storage::Store& store() { return objects_->get(); }
  std::unique_ptr<ObjectStore> objects_;
};

std::string PodOf(const std::string& containers, const std::string& rest = "") {
  return R"({"metadata":{"name":"p"},"spec":{"containers":[)" + containers + "]" + rest + "}}";
}
std::string Container(const std::string& name, const std::string& requests, const std::string& limits) {
  return R"({"name":")" + name + R"(","resources":{"requests":{)" + requests + R"(},"limits":{)" + limits +
         "}}}";
}

TEST_F(Lookups, LimitRangesBoundContainersAndPods) {
  objects_->Put<corev1::LimitRange>(R"({"metadata":{"name":"c","namespace":"default"},"spec":{"limits":[
      {"type":"Container","min":{"cpu":"100m"},"max":{"cpu":"2"},"maxLimitRequestRatio":{"cpu":"4"}}]}})");
  objects_->Put<corev1::LimitRange>(R"({"metadata":{"name":"p","namespace":"pods"},"spec":{"limits":[
      {"type":"Pod","max":{"cpu":"2"}}]}})");
  PluginPtr plugin = NewLimitRanger(store());
  const std::string good = Container("a", R"("cpu":"500m")", R"("cpu":"1")");
  const std::string big = Container("b", R"("cpu":"2500m")", R"("cpu":"3")");
  const std::string sidecar = big.substr(0, big.size() - 1) + R"(,"restartPolicy":"Always"})";
  struct {
    std::string pod, says;
    const char* ns = "default";
  } rows[] = {
      {PodOf(good), ""},
      {PodOf(big), "maximum cpu usage per Container is 2, but limit is 3"},
      {PodOf(Container("a", R"("cpu":"50m")", R"("cpu":"100m")")),
       "minimum cpu usage per Container is 100m, but request is 50m"},
      {PodOf(Container("a", "", "")),
       "[minimum cpu usage per Container is 100m. No request is specified, maximum cpu usage per Container "
       "is 2. "
       "No limit is specified, cpu max limit to request ratio per Container is 4, but no request is "
       "specified or "
       "request is 0]"},
      {PodOf(Container("a", R"("cpu":"100m")", R"("cpu":"1")")),
       "cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000"},
      {PodOf(good, R"(,"initContainers":[)" + big + "]"),
       "maximum cpu usage per Container is 2, but limit is 3"},
      {PodOf(good, R"(,"initContainers":[)" + sidecar + "]"),
       "maximum cpu usage per Container is 2, but limit is 3"},
      // Of a pod: the sum of what runs at once, or the largest of what runs before.
      {PodOf(good + "," + good), "", "pods"},
      {PodOf(good + "," + good + "," + good), "maximum cpu usage per Pod is 2, but limit is 3", "pods"},
      {PodOf(good, R"(,"initContainers":[)" + big + "]"), "maximum cpu usage per Pod is 2, but limit is 3",
       "pods"},
      {PodOf(good, R"(,"initContainers":[)" + sidecar + "]"),
       "maximum cpu usage per Pod is 2, but limit is 4", "pods"},
      {PodOf(good, R"(,"resources":{"limits":{"cpu":"3"},"requests":{"cpu":"3"}})"),
       "maximum cpu usage per Pod is 2, but limit is 3", "pods"},
      {PodOf(big), "", "elsewhere"},
  };
  for (const auto& row : rows) {
    const std::string said = Case<corev1::Pod>(row.pod, row.ns).Try(*plugin);
    EXPECT_EQ(said.empty(), row.says.empty()) << row.pod << ": " << said;
    EXPECT_THAT(said, HasSubstr(row.says)) << row.pod;
  }
}

TEST_F(Lookups, LimitRangesFillInAndBoundClaims) {
  objects_->Put<corev1::LimitRange>(R"({"metadata":{"name":"d","namespace":"default"},"spec":{"limits":[
      {"type":"Container","default":{"cpu":"1","memory":"1Gi"},"defaultRequest":{"cpu":"100m"}},
      {"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"10Gi"}}]}})");
  PluginPtr plugin = NewLimitRanger(store());
  Case<corev1::Pod> pod(PodOf(Container("a", "", R"("cpu":"2")"), R"(,"initContainers":[{"name":"i"}])"));
  EXPECT_EQ(pod.Try(*plugin), "");
  EXPECT_EQ(
      pod.object.metadata().annotations().at("kubernetes.io/limit-ranger"),
      "LimitRanger plugin set: cpu request for container a; memory limit for container a; cpu request for "
      "init container i; cpu, memory limit for init container i");
  EXPECT_EQ(pod.object.spec().containers(0).resources().limits().at("cpu").string(), "2");
  auto claim = [&](const std::string& size) {
    return Case<Claim>(R"({"metadata":{"name":"c"},"spec":{"resources":{"requests":{"storage":")" + size +
                       R"("}}}})")
        .Try(*plugin);
  };
  EXPECT_EQ(claim("5Gi"), "");
  EXPECT_THAT(claim("500Mi"),
              HasSubstr("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"));
  EXPECT_THAT(claim("11Gi"),
              HasSubstr("maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi"));
}

TEST_F(Lookups, DefaultClasses) {
  PluginPtr storage = NewDefaultStorageClass(store()), ingress = NewDefaultIngressClass(store());
  auto class_of = [&](const char* spec) {
    Case<Claim> claim(spec);
    EXPECT_EQ(claim.Try(*storage), "");
    return claim.object.spec().has_storage_class_name() ? claim.object.spec().storage_class_name() : "none";
  };
  EXPECT_EQ(class_of("{}"), "none");
  objects_->Put<StorageClass>(R"({"metadata":{"name":"plain"},"provisioner":"p"})");
  EXPECT_EQ(class_of("{}"), "none");
  const char* annotated =
      R"({"metadata":{"name":"%","creationTimestamp":"2026-01-0#T00:00:00Z","annotations":
      {"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"p"})";
  auto put = [&](char name, char day) {
    std::string text = annotated;
    text[text.find('%')] = name;
    text[text.find('#')] = day;
    objects_->Put<StorageClass>(text);
  };
  put('b', '1');
  EXPECT_EQ(class_of("{}"), "b");
  put('c', '2');
  EXPECT_EQ(class_of("{}"), "c");  // the youngest
  put('a', '2');
  EXPECT_EQ(class_of("{}"), "a");  // by name among equals
  EXPECT_EQ(class_of(R"({"spec":{"storageClassName":"plain"}})"), "plain");
  EXPECT_EQ(class_of(R"({"spec":{"storageClassName":""}})"), "");
  EXPECT_EQ(class_of(R"({"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"x"}}})"),
            "none");

  objects_->Put<IngressClass>(R"({"metadata":{"name":"i","annotations":
      {"ingressclass.kubernetes.io/is-default-class":"true"}},"spec":{"controller":"x/y"}})");
  struct {
    const char *spec, *name;
  } rows[] = {{"{}", "i"},
              {R"({"spec":{"ingressClassName":"own"}})", "own"},
              {R"({"metadata":{"annotations":{"kubernetes.io/ingress.class":"old"}}})", ""}};
  for (const auto& row : rows) {
    Case<Ingress> one(row.spec);
    EXPECT_EQ(one.Try(*ingress), "");
    EXPECT_EQ(one.object.spec().ingress_class_name(), row.name) << row.spec;
  }
}

TEST_F(Lookups, ClaimsGrowWhereTheirClassLetsThem) {
  objects_->Put<StorageClass>(
      R"({"metadata":{"name":"grows"},"provisioner":"p","allowVolumeExpansion":true})");
  objects_->Put<StorageClass>(R"({"metadata":{"name":"fixed"},"provisioner":"p"})");
  PluginPtr plugin = NewClaimResize(store());
  auto claim = [](const std::string& size, const std::string& name, const std::string& phase = "Bound") {
    return R"({"metadata":{"name":"c"},"spec":{"storageClassName":")" + name +
           R"(","resources":{"requests":{"storage":")" + size + R"("}}},"status":{"phase":")" + phase +
           R"("}})";
  };
  const std::string refused =
      "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
      "support "
      "resize";
  struct {
    std::string before, now, says;
  } rows[] = {
      {claim("1Gi", "grows"), claim("2Gi", "grows"), ""},
      {claim("1Gi", "grows"), claim("1024Mi", "grows"), ""},
      {claim("2Gi", "fixed"), claim("1Gi", "fixed"), ""},  // validation's matter
      {claim("1Gi", "fixed"), claim("2Gi", "fixed"), refused},
      {claim("1Gi", "gone"), claim("2Gi", "gone"), refused},
      {claim("1Gi", ""), claim("2Gi", ""), refused},
      {claim("1Gi", "grows", "Pending"), claim("2Gi", "grows", "Pending"),
       "Only bound persistent volume claims can be expanded"},
  };
  for (const auto& row : rows) {
    const std::string said = Case<Claim>(row.now).Was(row.before).Try(*plugin);
    EXPECT_EQ(said.empty(), row.says.empty()) << said;
    EXPECT_THAT(said, HasSubstr(row.says));
  }
}

TEST_F(Lookups, RuntimeClasses) {
  objects_->Put<RuntimeClass>(
      R"({"metadata":{"name":"heavy"},"handler":"h","overhead":{"podFixed":{"cpu":"250m"}},
      "scheduling":{"nodeSelector":{"runtime":"heavy"},"tolerations":[{"key":"heavy","operator":"Exists"}]}})");
  objects_->Put<RuntimeClass>(R"({"metadata":{"name":"light"},"handler":"l"})");
  PluginPtr plugin = NewRuntimeClass(store());
  struct {
    const char *rest, *says;
  } rows[] = {
      {"", ""},
      {R"(,"runtimeClassName":"light")", ""},
      {R"(,"runtimeClassName":"heavy","overhead":{"cpu":"0.25"})", ""},
      {R"(,"runtimeClassName":"heavy","overhead":{"cpu":"1"})",
       "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"},
      {R"(,"runtimeClassName":"light","overhead":{"cpu":"1"})",
       "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"},
      {R"(,"overhead":{"cpu":"1"})",
       "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"},
      {R"(,"runtimeClassName":"gone")", "pod rejected: RuntimeClass \"gone\" not found"},
      {R"(,"runtimeClassName":"heavy","nodeSelector":{"runtime":"other"})",
       "conflict: runtimeClass.scheduling.nodeSelector[runtime] = heavy; pod.spec.nodeSelector[runtime] = "
       "other"},
  };
  for (const auto& row : rows) {
    const std::string said = Case<corev1::Pod>(PodOf(R"({"name":"c"})", row.rest)).Try(*plugin);
    EXPECT_EQ(said.empty(), *row.says == 0) << said;
    EXPECT_THAT(said, HasSubstr(row.says));
  }
  Case<corev1::Pod> pod(PodOf(R"({"name":"c"})", R"(,"runtimeClassName":"heavy","nodeSelector":{"a":"b"})"));
  EXPECT_EQ(pod.Try(*plugin), "");
  EXPECT_EQ(pod.object.spec().overhead().at("cpu").string(), "250m");
  EXPECT_EQ(pod.object.spec().node_selector().at("runtime"), "heavy");
  EXPECT_EQ(pod.object.spec().tolerations_size(), 1);
}

TEST_F(Lookups, QuotasHoldForResizes) {
  objects_->Put<corev1::ResourceQuota>(R"({"metadata":{"name":"q","namespace":"default"},
      "spec":{"hard":{"cpu":"800m"}},"status":{"hard":{"cpu":"800m"},"used":{"cpu":"600m"}}})");
  PluginPtr plugin = NewResourceQuota(store(), {});
  auto resize = [&](const char* from, const char* to) {
    return PodCase(PodOf(Container("a", to, "")))
        .Was(PodOf(Container("a", from, "")))
        .Try(*plugin, {}, "pods/resize");
  };
  EXPECT_THAT(resize(R"("cpu":"300m")", R"("cpu":"600m")"),
              HasSubstr("exceeded quota: q, requested: cpu=300m, used: cpu=600m, limited: cpu=800m"));
  EXPECT_EQ(resize(R"("cpu":"300m")", R"("cpu":"500m")"), "");
  EXPECT_THAT(resize(R"("cpu":"300m")", R"("cpu":"301m")"), HasSubstr("used: cpu=800m")) << "it was charged";
}

// A pod of one container on a node.
std::string PodOn(const char* node, const std::string& container, int generation,
                  const std::string& rest = "") {
  return R"({"metadata":{"name":"p","generation":)" + std::to_string(generation) +
         R"(},"spec":{"nodeName":")" + node + R"(","containers":[)" + container + "]" + rest +
         R"(},"status":{"qosClass":"Guaranteed"}})";
}

TEST_F(Lookups, ResizesThatANodeCouldNeverMeet) {
  objects_->Put<corev1::Node>(R"({"metadata":{"name":"n","labels":{"kubernetes.io/os":"linux"}},
      "status":{"allocatable":{"cpu":"2","memory":"1Gi"}}})");
  objects_->Put<corev1::Node>(R"({"metadata":{"name":"w","labels":{"kubernetes.io/os":"windows"}},
      "status":{"allocatable":{"cpu":"2","memory":"1Gi"}}})");
  PluginPtr plugin = NewPodResize(store());
  auto wants = [](const char* requests) { return Container("c", requests, ""); };
  struct {
    const char *node, *requests;
    int generation;
    const char *says, *cause;
  } rows[] = {
      {"n", R"("cpu":"2","memory":"1Gi")", 2, "", ""},
      {"n", R"("cpu":"2500m")", 2,
       "node didn't have enough allocatable resources: cpu, requested: 2500, allocatable: 2000",
       "NodeCapacity"},
      {"n", R"("cpu":"3","memory":"2Gi")", 2,
       "cpu, requested: 3000, allocatable: 2000; memory, requested: 2147483648, allocatable: 1073741824",
       "NodeCapacity"},
      {"n", R"("cpu":"3")", 1, "", ""},  // it changes nothing
      {"", R"("cpu":"3")", 2, "", ""},   // the scheduler has the say
      {"w", R"("cpu":"1")", 2, "pod resize is only supported on linux nodes, node \"w\" is \"windows\"",
       "UnsupportedPlatform"},
      {"gone", R"("cpu":"1")", 2, "node \"gone\" not found", ""},
  };
  for (const auto& row : rows) {
    PodCase resize(PodOn(row.node, wants(row.requests), row.generation));
    resize.Was(PodOn(row.node, wants(R"("cpu":"100m")"), 1));
    EXPECT_EQ(PodCase(resize).Try(*plugin), "") << "an update that is no resize";
    const std::string said = resize.Try(*plugin, {"u", "", {}, {}}, "pods/resize");
    EXPECT_EQ(said.empty(), *row.says == 0) << said;
    EXPECT_THAT(said, HasSubstr(row.says));
    EXPECT_EQ(resize.cause, row.cause);
    if (*row.says) {
      EXPECT_EQ(resize.code, Code::kForbidden);
    }
  }
}

TEST_F(Lookups, ChangesThatANodeDeclaresToFollow) {
  objects_->Put<corev1::Node>(R"({"metadata":{"name":"all"},"status":{"declaredFeatures":[
      "GuaranteedQoSPodCPUResize","InPlacePodLevelResourcesVerticalScaling","InPlacePodVerticalScalingInitContainers"]}})");
  objects_->Put<corev1::Node>(R"({"metadata":{"name":"old"}})");
  PluginPtr plugin = NewNodeDeclaredFeatures(store());
  const std::string small = Container("c", R"("cpu":"1")", ""), same = Container("c", R"("cpu":"1000m")", ""),
                    more = Container("c", R"("cpu":"2")", ""),
                    memory = Container("c", R"("cpu":"1","memory":"1")", "");
  auto init = [](const char* cpu, const char* rest = "") {
    return R"(,"initContainers":[{"name":"i","resources":{"requests":{"cpu":")" + std::string(cpu) +
           R"("}})" + rest + "}]";
  };
  const char *sidecar = R"(,"restartPolicy":"Always")",
             *pod_level = R"(,"resources":{"requests":{"cpu":"3"}})";
  struct {
    std::string before, now, old_rest, rest, needs;
  } rows[] = {
      {small, same, "", "", ""},
      {small, more, "", "", "GuaranteedQoSPodCPUResize"},
      {small, memory, "", "", ""},
      {small, small, init("1"), init("2"), "InPlacePodVerticalScalingInitContainers"},
      {small, small, init("1", sidecar), init("2", sidecar), ""},
      {small, more, "", pod_level, "GuaranteedQoSPodCPUResize, InPlacePodLevelResourcesVerticalScaling"},
      {small, small, pod_level, pod_level, ""},
  };
  for (const auto& row : rows) {
    for (const char* node : {"all", "old"}) {
      PodCase change(PodOn(node, row.now, 2, row.rest));
      const std::string said =
          change.Was(PodOn(node, row.before, 1, row.old_rest)).Try(*plugin, {"u", "", {}, {}}, "pods/resize");
      if (row.needs.empty() || node == std::string("all")) {
        EXPECT_EQ(said, "");
      } else {
        EXPECT_THAT(said, HasSubstr("pod update requires features " + row.needs +
                                    " which are not available on node \"old\""));
      }
    }
  }
  // Labels are no change that a node has to follow.
  PodCase label(PodOn("old", more, 1));
  EXPECT_EQ(label.Was(PodOn("old", small, 1)).Try(*plugin), "");
}

TEST_F(Lookups, PodsAreToldTheZoneAndRegionOfTheirNode) {
  objects_->Put<corev1::Node>(R"({"metadata":{"name":"n1","labels":{"topology.kubernetes.io/zone":"z",
      "topology.kubernetes.io/region":"r","other":"o"}}})");
  PluginPtr plugin = NewPodTopologyLabels(store());
  const auto labels = [](const auto& object) {
    std::map<std::string, std::string> out(object.metadata().labels().begin(),
                                           object.metadata().labels().end());
    return out;
  };
  const std::map<std::string, std::string> both = {{"topology.kubernetes.io/region", "r"},
                                                   {"topology.kubernetes.io/zone", "z"}};
  Case<corev1::Binding> binding(R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})");
  const api::ResourceInfo& row = *api::FindResource("", "v1", "pods/binding");
  const User user;
  const AdmissionRequest request{
      registry::Operation::kCreate, row, "default", "p", &binding.object, nullptr, user};
  ASSERT_TRUE(plugin->Mutate(request));
  EXPECT_EQ(labels(binding.object), both);
  Case<corev1::Pod> pod(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})");
  EXPECT_EQ(pod.Try(*plugin), "");
  EXPECT_EQ(labels(pod.object), both);
  for (const char* elsewhere : {R"({"spec":{"nodeName":"n2"}})", R"({"spec":{}})"}) {
    Case<corev1::Pod> other(elsewhere);
    EXPECT_EQ(other.Try(*plugin), "");
    EXPECT_TRUE(other.object.metadata().labels().empty()) << elsewhere;
  }
}

}  // namespace
}  // namespace keelson::apiserver
