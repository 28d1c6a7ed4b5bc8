#include "lib/api/table/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/apiregistration_v1.pb.h"
#include "lib/api/proto/metrics_v1beta1.pb.h"
#include "lib/api/testing/random_object.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

using testing::HasSubstr;

WallTime At(int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }
constexpr int64_t kNow = 1'767'225'600;

template <typename T>
T Object(const char* json) {
  T object;
  auto done = DecodeJson(json, object);
  EXPECT_TRUE(done) << done.error().message();
  return object;
}

std::string CellsOf(const Message& object) { return RenderCells(TableCells(object), At(kNow)); }

TEST(HumanDuration, AsKubectl) {
  static constexpr std::pair<int64_t, const char*> kCases[] = {
      {-2, "<invalid>"}, {-1, "0s"},       {0, "0s"},          {119, "119s"},     {120, "2m"},
      {150, "2m30s"},    {599, "9m59s"},   {600, "10m"},       {10799, "179m"},   {10800, "3h"},
      {11100, "3h5m"},   {28800, "8h"},    {172799, "47h"},    {172800, "2d"},    {180000, "2d2h"},
      {691200, "8d"},    {63072000, "2y"}, {63158400, "2y1d"}, {252288000, "8y"}, {283824000, "9y"}};
  for (const auto& [seconds, want] : kCases) {
    EXPECT_EQ(HumanDuration(std::chrono::seconds(seconds)), want) << seconds;
  }
}

TEST(Table, PodStatus) {
  static constexpr std::pair<const char*, const char*> kCases[] = {
      {R"({"status":{"phase":"Pending"},"spec":{"containers":[{"name":"a"}]}})", R"("0/1","Pending","0")"},
      {R"({"status":{"phase":"Running","containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}},
          {"name":"b","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}},
           "lastState":{"terminated":{"finishedAt":"2025-12-31T23:55:00Z"}}}]},"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
       R"x("1/2","CrashLoopBackOff","3 (5m ago)")x"},
      {R"({"status":{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}},
          {"name":"j","state":{"running":{}}}]},"spec":{"containers":[{"name":"a"}],"initContainers":[{"name":"i"},{"name":"j"}]}})",
       R"("0/1","Init:1/2","0")"},
      {R"({"status":{"phase":"Pending","initContainerStatuses":[{"name":"i","restartCount":2,
          "state":{"terminated":{"exitCode":3}}}]},"spec":{"containers":[{"name":"a"}],"initContainers":[{"name":"i"}]}})",
       R"("0/1","Init:ExitCode:3","2")"},
      {R"({"status":{"phase":"Running","initContainerStatuses":[{"name":"s","started":true,"ready":true,"state":{"running":{}}}],
          "containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}}]},
          "spec":{"containers":[{"name":"a"}],"initContainers":[{"name":"s","restartPolicy":"Always"}]}})",
       R"("2/2","Running","0")"},
      {R"({"status":{"phase":"Succeeded","containerStatuses":[{"name":"a","state":{"terminated":{"reason":"Completed"}}}]},
          "spec":{"containers":[{"name":"a"}]}})",
       R"("0/1","Completed","0")"},
      {R"({"status":{"phase":"Running","containerStatuses":[{"name":"a","state":{"terminated":{"reason":"Completed"}}},
          {"name":"b","ready":true,"state":{"running":{}}}]},"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
       R"("1/2","NotReady","0")"},
      {R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running"},"spec":{"containers":[{"name":"a"}]}})",
       R"("0/1","Terminating","0")"},
      {R"({"status":{"phase":"Failed","reason":"Evicted"},"spec":{"containers":[{"name":"a"}]}})",
       R"("0/1","Evicted","0")"},
      {R"({"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]},
          "spec":{"containers":[{"name":"a"}]}})",
       R"("0/1","SchedulingGated","0")"},
  };
  for (const auto& [json, want] : kCases) {
    EXPECT_THAT(CellsOf(Object<corev1::Pod>(json)), HasSubstr(want)) << json;
  }
}

TEST(Table, CommonKinds) {
  EXPECT_EQ(
      CellsOf(Object<corev1::Service>(
          R"({"metadata":{"name":"s","creationTimestamp":"2025-12-31T00:00:00Z"},"spec":{"type":"NodePort",
                "clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"selector":{"b":"2","a":"1"},
                "ports":[{"port":80,"nodePort":30080,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}})")),
      R"(["s","NodePort","10.0.0.1","\u003cnone\u003e","80:30080/TCP,53/UDP","24h","a=1,b=2"])");
  EXPECT_EQ(CellsOf(Object<appsv1::Deployment>(
                R"({"metadata":{"name":"d"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"x"}},
                "template":{"spec":{"containers":[{"name":"c","image":"i"}]}}},
                "status":{"readyReplicas":2,"updatedReplicas":1,"availableReplicas":2}})")),
            R"(["d","2/3",1,2,"\u003cunknown\u003e","c","i","app=x"])");
  EXPECT_EQ(
      CellsOf(Object<corev1::Node>(
          R"({"metadata":{"name":"n","labels":{"node-role.kubernetes.io/control-plane":""},
                "creationTimestamp":"2025-12-30T22:00:00Z"},"spec":{"unschedulable":true},"status":{"conditions":[
                {"type":"Ready","status":"True"}],"addresses":[{"type":"InternalIP","address":"1.2.3.4"}],
                "nodeInfo":{"kubeletVersion":"v1.36.0","osImage":"Debian"}}})")),
      R"(["n","Ready,SchedulingDisabled","control-plane","26h","v1.36.0","1.2.3.4","\u003cnone\u003e","Debian",)"
      R"("\u003cunknown\u003e","\u003cunknown\u003e"])");
  EXPECT_EQ(
      CellsOf(Object<corev1::Event>(
          R"({"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p"},"type":"Warning","reason":"BackOff",
                "message":" again\n","source":{"component":"kubelet","host":"n"},"firstTimestamp":"2025-12-31T23:00:00Z",
                "lastTimestamp":"2025-12-31T23:59:00Z","count":4})")),
      R"(["60s","Warning","BackOff","pod/p","","kubelet, n","again","60m",4,"e"])");
  EXPECT_EQ(
      CellsOf(Object<corev1::PersistentVolumeClaim>(
          R"({"metadata":{"name":"c"},"spec":{"volumeName":"v","storageClassName":"fast","volumeMode":"Filesystem"},
                "status":{"phase":"Bound","capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]}})")),
      R"(["c","Bound","v","1Gi","RWO","fast","\u003cunset\u003e","\u003cunknown\u003e","Filesystem"])");
  EXPECT_EQ(CellsOf(Object<corev1::Endpoints>(
                R"({"metadata":{"name":"e"},"subsets":[{"addresses":[{"ip":"1.1.1.1"},{"ip":"1.1.1.2"}],
                "ports":[{"port":80},{"port":81}]}]})")),
            R"(["e","1.1.1.1:80,1.1.1.2:80,1.1.1.1:81 + 1 more...","\u003cunknown\u003e"])");
  EXPECT_EQ(
      CellsOf(Object<rbacv1::RoleBinding>(
          R"({"metadata":{"name":"b"},"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},
                {"kind":"ServiceAccount","name":"s","namespace":"n"}]})")),
      R"(["b","Role/r","\u003cunknown\u003e","u","","n/s"])");
  EXPECT_EQ(CellsOf(Object<rbacv1::Role>(
                R"({"metadata":{"name":"r","creationTimestamp":"2026-01-01T00:00:00Z"}})")),
            R"(["r","2026-01-01T00:00:00Z"])");
}

TEST(Table, Addresses) {
  EXPECT_EQ(CellsOf(Object<corev1::Endpoints>(
                R"({"metadata":{"name":"e"},"subsets":[{"addresses":[{"ip":"fd00::1"}]},
                {"addresses":[{"ip":"fd00::1"}],"ports":[{"port":80}]}]})")),
            R"(["e","fd00::1,[fd00::1]:80","\u003cunknown\u003e"])");
  EXPECT_EQ(CellsOf(Object<discoveryv1::EndpointSlice>(
                R"({"metadata":{"name":"e"},"addressType":"IPv4","ports":[{"name":"web"},{"port":80},{}]})")),
            R"(["e","IPv4","web,80,*","\u003cunset\u003e","\u003cunknown\u003e"])");
  EXPECT_THAT(CellsOf(Object<corev1::Service>(
                  R"({"metadata":{"name":"s"},"spec":{"type":"LoadBalancer","externalIPs":["9.9.9.9"]},
                  "status":{"loadBalancer":{"ingress":[{"ip":"2.2.2.2"},{"hostname":"a"},{"ip":"2.2.2.2"},{}]}}})")),
              HasSubstr(R"("\u003cnone\u003e","2.2.2.2,a,9.9.9.9","\u003cnone\u003e")"));
}

TEST(Table, KindsBetweenGroups) {
  EXPECT_EQ(CellsOf(Object<autoscalingv1::Scale>(
                R"({"metadata":{"name":"d"},"spec":{"replicas":3},"status":{"replicas":2}})")),
            R"(["d",3,2,"\u003cunknown\u003e"])");
  EXPECT_EQ(TableColumns(autoscalingv1::Scale::descriptor())[0].format, "");
  EXPECT_EQ(TableColumns(corev1::Pod::descriptor())[0].format, "name");
  EXPECT_EQ(
      CellsOf(Object<apiregistration::v1::APIService>(
          R"({"metadata":{"name":"v1.a"},"spec":{"service":{"namespace":"n","name":"s"}},"status":{"conditions":[
                {"type":"Available","status":"False","reason":"Down"}]}})")),
      R"x(["v1.a","n/s","False (Down)","\u003cunknown\u003e"])x");
  EXPECT_EQ(CellsOf(Object<apiregistration::v1::APIService>(R"({"metadata":{"name":"v1."}})")),
            R"(["v1.","Local","Unknown","\u003cunknown\u003e"])");
  EXPECT_EQ(CellsOf(Object<metrics::v1beta1::NodeMetrics>(
                R"({"metadata":{"name":"n"},"window":"15.5s","usage":{"cpu":"12345678n","memory":"64Mi"}})")),
            R"(["n","12345678n","64Mi","15.5s"])");
  EXPECT_EQ(CellsOf(Object<metrics::v1beta1::PodMetrics>(
                R"({"metadata":{"name":"p"},"window":"15s","containers":[
                {"name":"a","usage":{"cpu":"0","memory":"1Mi"}},{"name":"b","usage":{"cpu":"5m","memory":"1536Ki"}}]})")),
            R"(["p","5m","2560Ki","15s"])");
}

TEST(Table, RowsAndColumns) {
  auto pod = Object<corev1::Pod>(R"({"metadata":{"name":"p"},"status":{"phase":"Succeeded"}})");
  std::vector<const Message*> rows{&pod};
  std::string json = TableJson(corev1::Pod::descriptor(), R"({"resourceVersion":"7"})", rows, At(kNow));
  EXPECT_THAT(json,
              HasSubstr(R"({"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},)"
                        R"("columnDefinitions":[{"name":"Name","type":"string","format":"name",)"));
  EXPECT_THAT(json, HasSubstr(R"("conditions":[{"type":"Completed","status":"True","reason":"Succeeded")"));
  EXPECT_THAT(
      json,
      HasSubstr(
          R"("object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"p"}}})"));
  EXPECT_THAT(TableRow(pod, At(kNow), IncludeObject::kNone), HasSubstr(R"("object":null})"));
  EXPECT_THAT(TableRow(pod, At(kNow), IncludeObject::kObject),
              HasSubstr(R"("object":{"kind":"Pod","apiVersion":"v1",)"));
}

// Every kind has as many cells as columns, whatever the object holds.
TEST(Table, CellsFitColumns) {
  for (const ResourceInfo& info : Resources()) {
    if (info.IsSubresource()) continue;
    for (uint32_t seed = 0; seed < 5; ++seed) {
      std::mt19937 random(seed);
      auto object = NewObject(info.descriptor());
      if (seed > 0) FillRandom(*object, random);
      boost::json::error_code error;
      auto cells = boost::json::parse(CellsOf(*object), error);
      ASSERT_FALSE(error) << CellsOf(*object);
      EXPECT_EQ(cells.as_array().size(), TableColumns(info.descriptor()).size()) << info.kind;
    }
    boost::json::error_code error;
    boost::json::parse(TableColumnsJson(info.descriptor()), error);
    EXPECT_FALSE(error);
  }
}

}  // namespace
}  // namespace keelson::api
