#include <gmock/gmock.h>

#include "ctl/why/service/service_judge.h"
#include "ctl/why/testing/objects.h"

namespace keelson::ctl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ServiceHealthView ServiceOf(const std::string& spec, const std::string& more = "") {
  ServiceHealthView view;
  view.service = Parse<corev1::Service>(
      R"({"metadata":{"namespace":"default","name":"web"},"spec":{"clusterIP":"10.0.0.1",
      "ports":[{"name":"http","port":80,"targetPort":8080}])" +
      spec + "}" + more + "}");
  view.has_dns = true;
  view.nodes = {"n1", "n2"};
  return view;
}
void AddPod(ServiceHealthView& view, const std::string& labels, bool ready,
            const std::string& ports = R"({"name":"http","containerPort":8080})") {
  view.pods.push_back(Parse<corev1::Pod>(
      R"({"metadata":{"namespace":"default","name":"p)" + std::to_string(view.pods.size()) +
      R"(","labels":{)" + labels + R"(}},"spec":{"nodeName":"n1","containers":[{"name":"c","ports":[)" +
      ports + R"(]}]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":")" +
      (ready ? "True" : "False") + R"(","message":"containers with unready status: [c]"}]}})"));
}
void AddEndpoint(ServiceHealthView& view, const std::string& node) {
  view.slices.push_back(Parse<discoveryv1::EndpointSlice>(
      R"({"metadata":{"name":"s"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.0.1"],"conditions":{"ready":true},"nodeName":")" +
      node + R"("}],"ports":[{"name":"http","port":8080}]})"));
}
ServiceHealthView InOrder(const std::string& spec = "", const std::string& more = "") {
  ServiceHealthView view = ServiceOf(R"(,"selector":{"app":"web"})" + spec, more);
  AddPod(view, R"("app":"web")", true);
  AddEndpoint(view, "n1");
  return view;
}
void AddPolicy(ServiceHealthView& view, const std::string& ingress) {
  view.policies.push_back(Parse<networkingv1::NetworkPolicy>(
      R"({"metadata":{"name":"np"},"spec":{"podSelector":{"matchLabels":{"app":"web"}},"policyTypes":["Ingress"],"ingress":[)" +
      ingress + "]}}"));
}
std::vector<std::string> Reasons(const ServiceHealthView& view) { return ReasonsOf(JudgeService(view)); }

TEST(WhyService, AServiceInOrderHasNoProblem) {
  const WhyReport report = JudgeService(InOrder());
  EXPECT_THAT(ReasonsOf(report), IsEmpty());
  EXPECT_EQ(report.headline, "ClusterIP Service default/web at 10.0.0.1 has 1 ready endpoints");
  EXPECT_THAT(report.notes, Contains("DNS name: web.default.svc"));
  EXPECT_THAT(report.notes, Contains(HasSubstr("nodectl trace service default/web")));
}

TEST(WhyService, SelectorsMatchNothing) {
  EXPECT_THAT(Reasons(ServiceOf("")), ElementsAre("NoSelector"));
  ServiceHealthView view = ServiceOf("");
  AddEndpoint(view, "");
  EXPECT_THAT(Reasons(view), IsEmpty());
  view = ServiceOf(R"(,"selector":{"app":"web","tier":"a"})");
  AddPod(view, R"("app":"web","tier":"b")", true);
  AddPod(view, R"("app":"db")", true);
  const WhyReport report = JudgeService(view);
  EXPECT_THAT(ReasonsOf(report), ElementsAre("SelectorMatchesNothing"));
  EXPECT_THAT(report.problems[0].message, HasSubstr("app=web,tier=a"));
  EXPECT_THAT(report.problems[0].evidence, ElementsAre("pod p0 has tier=b, not a"));
}

TEST(WhyService, PodsAreNotReady) {
  ServiceHealthView view = ServiceOf(R"(,"selector":{"app":"web"})");
  AddPod(view, R"("app":"web")", false);
  WhyReport report = JudgeService(view);
  EXPECT_THAT(ReasonsOf(report), ElementsAre("PodsNotReady"));
  EXPECT_TRUE(Shows(report, "containers with unready status"));
  EXPECT_TRUE(Advises(report, "nodectl why pod default/p0"));
  view.service.mutable_spec()->set_publish_not_ready_addresses(true);
  EXPECT_THAT(Reasons(view), IsEmpty());
  AddPod(view, R"("app":"web")", true);
  EXPECT_THAT(Reasons(view), ElementsAre("NoEndpoints"));
}

TEST(WhyService, PortsLeadNowhere) {
  ServiceHealthView view = ServiceOf(R"(,"selector":{"app":"web"})");
  view.service.mutable_spec()->mutable_ports(0)->mutable_target_port()->set_type(1);
  view.service.mutable_spec()->mutable_ports(0)->mutable_target_port()->set_str_val("web");
  AddPod(view, R"("app":"web")", true);
  WhyReport report = JudgeService(view);
  EXPECT_THAT(ReasonsOf(report), ElementsAre("NamedPortMissing"));
  EXPECT_TRUE(Shows(report, "http=8080/TCP"));
  view = InOrder();
  view.pods.clear();
  AddPod(view, R"("app":"web")", true, R"({"containerPort":80})");
  EXPECT_THAT(Reasons(view), ElementsAre("TargetPortUndeclared"));
  view.pods.clear();
  AddPod(view, R"("app":"web")", true, R"({"containerPort":8080,"protocol":"UDP"})");
  EXPECT_THAT(Reasons(view), ElementsAre("TargetPortUndeclared"));
  view.pods.clear();
  AddPod(view, R"("app":"web")", true, "");
  EXPECT_THAT(Reasons(view), IsEmpty());
}

TEST(WhyService, PoliciesDeny) {
  ServiceHealthView view = InOrder();
  AddPolicy(view, "");
  EXPECT_THAT(Reasons(view), ElementsAre("PolicyDenies"));
  EXPECT_TRUE(Advises(JudgeService(view), "default/p0:8080"));
  AddPolicy(view, R"({"ports":[{"port":9090}]})");
  EXPECT_THAT(Reasons(view), ElementsAre("PolicyDenies"));
  AddPolicy(view, R"({"ports":[{"port":8000,"endPort":8100}],"from":[{"podSelector":{}}]})");
  WhyReport report = JudgeService(view);
  EXPECT_THAT(ReasonsOf(report), IsEmpty());
  EXPECT_THAT(report.notes, Contains(HasSubstr("admits only some clients")));
  AddPolicy(view, R"({"ports":[{"port":"http"}]})");
  report = JudgeService(view);
  EXPECT_THAT(report.notes, ::testing::Not(Contains(HasSubstr("admits only"))));
}

TEST(WhyService, TrafficStaysLocal) {
  EXPECT_THAT(Reasons(InOrder(R"(,"internalTrafficPolicy":"Local")")), ElementsAre("NoLocalEndpoints"));
  const WhyReport report = JudgeService(InOrder(R"(,"type":"NodePort","externalTrafficPolicy":"Local")"));
  EXPECT_THAT(ReasonsOf(report), ElementsAre("NoLocalEndpoints"));
  EXPECT_THAT(report.problems[0].message, HasSubstr("node n2"));
  EXPECT_TRUE(Shows(report, "n1"));
  const WhyReport balanced =
      JudgeService(InOrder(R"(,"type":"LoadBalancer","externalTrafficPolicy":"Local")",
                           R"(,"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}})"));
  EXPECT_THAT(ReasonsOf(balanced), IsEmpty());
  EXPECT_THAT(balanced.notes, Contains(HasSubstr("health checks")));
}

TEST(WhyService, LoadBalancersAndNamesAreMissing) {
  EXPECT_THAT(Reasons(InOrder(R"(,"type":"LoadBalancer")")), ElementsAre("NoLoadBalancer"));
  WhyReport report = JudgeService(ServiceOf(R"(,"type":"ExternalName","externalName":"db.example.com")"));
  EXPECT_THAT(ReasonsOf(report), IsEmpty());
  EXPECT_THAT(report.notes, Contains(HasSubstr("db.example.com")));
  EXPECT_THAT(Reasons(ServiceOf(R"(,"type":"ExternalName","externalName":"192.0.2.1")")),
              ElementsAre("ExternalNameIsAddress"));
  ServiceHealthView view =
      InOrder(R"(,"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":60}})");
  view.has_dns = false;
  report = JudgeService(view);
  EXPECT_THAT(report.notes, Contains(HasSubstr("for 60 s")));
  EXPECT_THAT(report.notes, Contains(HasSubstr("kube-dns")));
  view.service.mutable_metadata()->mutable_deletion_timestamp();
  view.service.mutable_metadata()->add_finalizers("a");
  EXPECT_THAT(Reasons(view), ElementsAre("Finalizer"));
}

}  // namespace
}  // namespace keelson::ctl
