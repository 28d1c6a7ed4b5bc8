#include "lib/k8s/pods/pod_resources.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::k8s {
namespace {

std::string Print(const ResourceList& list) {
  std::string text;
  for (const auto& [name, amount] : list) text += (text.empty() ? "" : " ") + name + "=" + amount.ToString();
  return text;
}

struct Case {
  const char* what;
  const char* pod;
  const char* requests;
  const char* limits;
  PodResourcesOptions options;
};

TEST(PodResources, Table) {
  const Case cases[] = {
      {"containers run beside each other",
       R"({"spec":{"containers":[
         {"name":"a","resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2"}}},
         {"name":"b","resources":{"requests":{"cpu":"500m"},"limits":{"cpu":"1","memory":"2Gi"}}}]}})",
       "cpu=1500m memory=1Gi", "cpu=3 memory=2Gi"},
      {"init containers run one after the other, before them",
       R"({"spec":{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"3"}}},
                                     {"name":"j","resources":{"requests":{"cpu":"2","memory":"4Gi"}}}],
         "containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]}})",
       "cpu=3 memory=4Gi", ""},
      {"sidecars run beside what comes after them",
       R"({"spec":{"initContainers":[
           {"name":"early","resources":{"requests":{"cpu":"3"}}},
           {"name":"side","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
           {"name":"late","resources":{"requests":{"cpu":"3"}}}],
         "containers":[{"name":"a","resources":{"requests":{"cpu":"2"}}}]}})",
       "cpu=4", ""},
      {"overhead comes on top, of limits where there are some",
       R"({"spec":{"overhead":{"cpu":"250m","memory":"64Mi"},"containers":[
           {"name":"a","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}}]}})",
       "cpu=1250m memory=64Mi", "cpu=1250m"},
      {"overhead left out",
       R"({"spec":{"overhead":{"cpu":"250m"},"containers":[
           {"name":"a","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}}]}})",
       "cpu=1",
       "cpu=1",
       {.exclude_overhead = true}},
      {"what the pod as a whole asks for replaces the sum, resource by resource",
       R"({"spec":{"resources":{"requests":{"cpu":"3"},"limits":{"cpu":"4"}},"overhead":{"cpu":"1"},
           "containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]}})",
       "cpu=4 memory=1Gi", "cpu=5"},
      {"unless it is left out",
       R"({"spec":{"resources":{"requests":{"cpu":"3"}},
           "containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]}})",
       "cpu=1",
       "",
       {.exclude_pod_level = true}},
      {"status does not count by itself",
       R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]},
           "status":{"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"2"},
             "resources":{"requests":{"cpu":"3"}}}]}})",
       "cpu=1", ""},
      {"a pod being made smaller has what it had",
       R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}}]},
           "status":{"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"2"},
             "resources":{"requests":{"cpu":"3"},"limits":{"cpu":"4"}}}]}})",
       "cpu=3",
       "cpu=4",
       {.use_status = true}},
      {"a pod that waits to be made larger counts as large",
       R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"5"},"limits":{"cpu":"5"}}}]},
           "status":{"conditions":[{"type":"PodResizePending","status":"True","reason":"Deferred"}],
             "containerStatuses":[{"name":"a","allocatedResources":{"cpu":"2"},
               "resources":{"requests":{"cpu":"2"},"limits":{"cpu":"2"}}}]}})",
       "cpu=5",
       "cpu=5",
       {.use_status = true}},
      {"what the node can never give does not count, overhead and others do",
       R"({"spec":{"overhead":{"cpu":"1"},"containers":[
             {"name":"a","resources":{"requests":{"cpu":"100"},"limits":{"cpu":"100"}}},
             {"name":"new","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}}]},
           "status":{"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}],
             "containerStatuses":[{"name":"a","allocatedResources":{"cpu":"2"},
               "resources":{"requests":{"cpu":"1"},"limits":{"cpu":"3"}}}]}})",
       "cpu=4",
       "cpu=5",
       {.use_status = true}},
      {"so it is with a pod as a whole that becomes smaller",
       R"({"spec":{"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}},"containers":[{"name":"a"}]},
           "status":{"allocatedResources":{"cpu":"2","memory":"1Gi"},
             "resources":{"requests":{"cpu":"3"},"limits":{"cpu":"4"}}}})",
       "cpu=3",
       "cpu=4",
       {.use_status = true}},
      {"and with one that cannot become larger",
       R"({"spec":{"resources":{"requests":{"cpu":"100"},"limits":{"cpu":"100"}},"containers":[{"name":"a"}]},
           "status":{"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}],
             "allocatedResources":{"cpu":"2"},"resources":{"requests":{"cpu":"2"},"limits":{"cpu":"4"}}}})",
       "cpu=2",
       "cpu=4",
       {.use_status = true}},
  };
  for (const Case& c : cases) {
    corev1::Pod pod;
    Result<> parsed = api::DecodeJson(c.pod, pod);
    ASSERT_TRUE(parsed) << c.what << ": " << parsed.error().message();
    EXPECT_EQ(Print(PodRequests(pod, c.options)), c.requests) << c.what;
    EXPECT_EQ(Print(PodLimits(pod, c.options)), c.limits) << c.what;
  }
}

}  // namespace
}  // namespace keelson::k8s
