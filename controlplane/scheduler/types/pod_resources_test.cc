#include "controlplane/scheduler/types/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/scheduler/testing/objects.h"
#include "lib/metrics/conformance.h"

namespace keelson::scheduler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PodList Pods(std::initializer_list<corev1::Pod> pods) {
  PodList out;
  for (const corev1::Pod& pod : pods) out.push_back(std::make_shared<const corev1::Pod>(pod));
  return out;
}

TEST(PodResources, AreTold) {
  corev1::Pod pod = testing::MakePod("p", "250m", "1Gi");
  pod.mutable_spec()->set_node_name("n");
  pod.mutable_spec()->set_priority(7);
  auto& limits = *pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits();
  limits["cpu"].set_string("1");
  limits["example.com/gpu"].set_string("2");
  limits["ephemeral-storage"].set_string("0");
  corev1::Pod ended = testing::MakePod("ended", "1");
  ended.mutable_spec()->set_node_name("n");
  ended.mutable_status()->set_phase("Succeeded");
  const std::string text = PrintPodResources(Pods({pod, ended, testing::MakePod("waits", "1")}));
  const std::string labels =
      "{namespace=\"default\",pod=\"p\",node=\"n\",scheduler=\"default-scheduler\",priority=\"7\",resource=";
  EXPECT_THAT(text, HasSubstr("# HELP kube_pod_resource_request [STABLE] Resources requested"));
  EXPECT_THAT(text, HasSubstr("kube_pod_resource_request" + labels + "\"cpu\",unit=\"cores\"} 0.25\n"));
  EXPECT_THAT(text,
              HasSubstr("kube_pod_resource_request" + labels + "\"memory\",unit=\"bytes\"} 1073741824\n"));
  EXPECT_THAT(text, HasSubstr("kube_pod_resource_limit" + labels + "\"cpu\",unit=\"cores\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("kube_pod_resource_limit" + labels + "\"example.com/gpu\",unit=\"\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("pod=\"waits\",node=\"\""));
  EXPECT_THAT(text, Not(HasSubstr("ephemeral-storage"))) << "nothing of it";
  EXPECT_THAT(text, Not(HasSubstr("pod=\"ended\"")));
  for (const metrics::Description& one : metrics::Describe(text)) {
    const metrics::KubernetesMetric* known = metrics::FindKubernetesMetric(one.name);
    ASSERT_TRUE(known) << one.name;
    std::vector<std::string> sorted = one.labels;
    std::sort(sorted.begin(), sorted.end());
    std::string joined;
    for (const std::string& label : sorted) joined += (joined.empty() ? "" : ",") + label;
    EXPECT_EQ(joined, known->labels) << one.name;
  }
}

TEST(PodResources, ThePageIsEmptyWithoutAScheduler) {
  PodResourcesPage page;
  EXPECT_EQ(page.Print(), "");
  page.Set([] { return Pods({testing::MakePod("p", "1")}); });
  EXPECT_THAT(page.Print(), HasSubstr("pod=\"p\""));
  page.Set(nullptr);
  EXPECT_EQ(page.Print(), "");
}

}  // namespace
}  // namespace keelson::scheduler
