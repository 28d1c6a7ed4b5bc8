// Requests, limits, resize policies and claims of containers and of whole pods.
#include <gtest/gtest.h>

#include "lib/k8s/testing/rules.h"

namespace keelson::k8s {
namespace {

std::string With(const std::string& resources) { return PodWith(R"("resources":{)" + resources + "}"); }

TEST(ValidateResources, OfContainers) {
  ExpectErrors(
      "v1", "Pod",
      {
          {With(R"("requests":{"cpu":"1","example.com/gpu":"1"},"limits":{"cpu":"2","example.com/gpu":"1"})"),
           {}},
          {With(R"("limits":{"gpu":"1"})"),
           {R"(spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource )"
            "type or fully qualified",
            R"(spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource )"
            "for containers",
            R"(spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource )"
            "type or fully qualified",
            R"(spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource )"
            "for containers"}},
          {With(R"("requests":{"example.com/gpu":"1"})"),
           {"spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable "
            "resources"}},
          {With(R"("requests":{"example.com/gpu":"1"},"limits":{"example.com/gpu":"2"})"),
           {R"(spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/gpu )"
            "limit of 2"}},
          {With(R"("limits":{"example.com/gpu":"500m"})"),
           {R"(spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer)",
            R"(spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "500m": must be an )"
            "integer"}},
          {With(R"("limits":{"hugepages-2Mi":"2Mi"})"),
           {"spec.containers[0].resources: Forbidden: HugePages require cpu or memory"}},
          {With(R"("limits":{"cpu":"1","hugepages-2Mi":"3Mi"})"),
           {R"(spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not )"
            "positive integer multiple of hugepages-2Mi",
            R"(spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not )"
            "positive integer multiple of hugepages-2Mi"}},
      });
}

TEST(ValidateResources, Claims) {
  ExpectErrors("v1", "Pod",
               {
                   {Pod(R"("resourceClaims":[{"name":"a","resourceClaimName":"x"}],)"
                        R"("containers":[{"name":"c","image":"i","resources":{"claims":[{"name":"a"}]}}])"),
                    {}},
                   {With(R"("claims":[{"name":"a"}])"),
                    {R"(spec.containers[0].resources.claims[0]: Not found: "a": must be one of the names in )"
                     "pod.spec.resourceClaims which is empty"}},
                   {PodAnd(R"("resourceClaims":[{"name":"a"}])"),
                    {R"(spec.resourceClaims[0]: Invalid value: {"name":"a"}: must specify one of: )"
                     "`resourceClaimName`, `resourceClaimTemplateName`"}},
                   {PodAnd(R"("resourceClaims":[{"name":"a","resourceClaimName":"x"},)"
                           R"({"name":"a","resourceClaimName":"y"}])"),
                    {R"(spec.resourceClaims[1].name: Duplicate value: "a")"}},
               });
}

TEST(ValidateResources, ResizePolicies) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodWith(R"("resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}])"), {}},
          {PodWith(R"("resizePolicy":[{"resourceName":"disk","restartPolicy":"NotRequired"}])"),
           {R"(spec.containers[0].resizePolicy: Unsupported value: "disk": supported values: "cpu", )"
            R"("memory")"}},
          {PodWith(R"("resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"},)"
                   R"({"resourceName":"cpu","restartPolicy":"NotRequired"}])"),
           {R"(spec.containers[0].resizePolicy[1]: Duplicate value: "cpu")"}},
      });
}

TEST(ValidateResources, OfPods) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodAnd(R"("resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}})"), {}},
          {PodAnd(R"("resources":{"requests":{"example.com/gpu":"1"}})"),
           {R"(spec.resources.requests[example.com/gpu]: Unsupported value: "example.com/gpu": supported )"
            R"(values: "cpu", "hugepages-", "memory")",
            "spec.resources.limits: Required value: Limit must be set for non overcommitable resources"}},
          {Pod(R"("resources":{"requests":{"cpu":"1"}},"containers":[{"name":"c","image":"i",)"
               R"("resources":{"requests":{"cpu":"2"}}}])"),
           {R"(spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate )"
            "container requests of 2"}},
      });
}

}  // namespace
}  // namespace keelson::k8s
