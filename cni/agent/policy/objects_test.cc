#include "cni/agent/policy/objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/types.h"

namespace keelson::cni::agent {
namespace {

namespace networkingv1 = api::networking::v1;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Op = policy::Selector::Op;

policy::Policy Parse(const networkingv1::NetworkPolicy& object) {
  auto parsed = ParsePolicy(object.SerializeAsString());
  EXPECT_TRUE(parsed.has_value());
  return parsed ? parsed->value : policy::Policy();
}

TEST(PolicyObjects, Pods) {
  corev1::Pod pod;
  auto* metadata = pod.mutable_metadata();
  metadata->set_name("web-1");
  metadata->set_namespace_("shop");
  metadata->set_uid("u1");
  metadata->set_resource_version("17");
  metadata->mutable_creation_timestamp()->set_seconds(1700000000);
  (*metadata->mutable_labels())["app"] = "web";
  (*metadata->mutable_annotations())["kubernetes.io/config.mirror"] = "from-a-file";
  pod.mutable_spec()->set_node_name("n1");
  auto* port = pod.mutable_spec()->add_containers()->add_ports();
  port->set_name("http");
  port->set_container_port(8080);
  pod.mutable_spec()->mutable_containers(0)->add_ports()->set_container_port(9);  // without a name
  auto* sidecar = pod.mutable_spec()->add_init_containers();
  sidecar->set_restart_policy("Always");
  auto* dns = sidecar->add_ports();
  dns->set_name("dns");
  dns->set_container_port(53);
  dns->set_protocol("UDP");
  auto* once = pod.mutable_spec()->add_init_containers()->add_ports();
  once->set_name("once");
  once->set_container_port(1);
  pod.mutable_status()->set_phase("Running");
  pod.mutable_status()->add_pod_ips()->set_ip("10.244.1.2");
  pod.mutable_status()->add_pod_ips()->set_ip("fd44:1::2");
  auto parsed = ParsePod(pod.SerializeAsString());
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->key, "shop/web-1");
  EXPECT_EQ(parsed->resource_version, "17");
  policy::Pod expected{.ns = "shop", .name = "web-1", .uid = "u1", .node = "n1", .static_uid = "from-a-file"};
  expected.labels = {{"app", "web"}};
  expected.ports = {{"http", 6, 8080}, {"dns", 17, 53}};
  expected.addresses = {*IpAddress::Parse("10.244.1.2"), *IpAddress::Parse("fd44:1::2")};
  expected.created = 1700000000;
  EXPECT_EQ(parsed->value, expected);
  pod.mutable_spec()->set_host_network(true);
  pod.mutable_status()->set_phase("Failed");
  metadata->mutable_deletion_timestamp()->set_seconds(1700000001);
  policy::Pod later = ParsePod(pod.SerializeAsString())->value;
  EXPECT_TRUE(later.host_network && later.finished && later.terminating);
  EXPECT_FALSE(ParsePod("\x0a\x05"
                        "cut")
                   .has_value());
}

TEST(PolicyObjects, PoliciesWithEverything) {
  networkingv1::NetworkPolicy object;
  object.mutable_metadata()->set_name("p");
  object.mutable_metadata()->set_namespace_("shop");
  auto* wanted = object.mutable_spec()->mutable_pod_selector()->add_match_expressions();
  wanted->set_key("app");
  wanted->set_operator_("NotIn");
  wanted->add_values("a");
  object.mutable_spec()->add_policy_types("Egress");
  auto* rule = object.mutable_spec()->add_egress();
  auto* range = rule->add_ports();
  range->set_protocol("UDP");
  range->mutable_port()->set_type(0);
  range->mutable_port()->set_int_val(8000);
  range->set_end_port(8010);
  auto* named = rule->add_ports();
  named->mutable_port()->set_type(1);
  named->mutable_port()->set_str_val("http");
  rule->add_ports()->set_protocol("SCTP");
  auto* block = rule->add_to()->mutable_ip_block();
  block->set_cidr("10.0.0.7/8");
  block->add_except("10.1.0.0/16");
  (*rule->add_to()->mutable_namespace_selector()->mutable_match_labels())["team"] = "blue";
  rule->add_to()->mutable_pod_selector();
  policy::Policy parsed = Parse(object);
  EXPECT_THAT(parsed.problems, IsEmpty());
  EXPECT_FALSE(parsed.isolates_ingress);
  EXPECT_TRUE(parsed.isolates_egress);
  EXPECT_THAT(parsed.pods.requirements, ElementsAre(policy::Selector::Requirement{"app", Op::kNotIn, {"a"}}));
  ASSERT_THAT(parsed.egress, SizeIs(1));
  EXPECT_THAT(parsed.egress[0].ports,
              ElementsAre(policy::Port{17, "", 8000, 8010}, policy::Port{6, "http"}, policy::Port{132}));
  ASSERT_THAT(parsed.egress[0].peers, SizeIs(3));
  EXPECT_EQ(parsed.egress[0].peers[0].block->cidr.ToString(), "10.0.0.0/8");
  EXPECT_EQ(parsed.egress[0].peers[0].block->except[0].ToString(), "10.1.0.0/16");
  EXPECT_FALSE(parsed.egress[0].peers[1].pods.has_value());
  EXPECT_EQ(parsed.egress[0].peers[1].namespaces->requirements[0].values, std::vector<std::string>{"blue"});
  EXPECT_EQ(parsed.egress[0].peers[2].pods, policy::Selector());
  EXPECT_FALSE(parsed.egress[0].peers[2].namespaces.has_value());
}

TEST(PolicyObjects, PolicyTypesFollowFromTheRules) {
  networkingv1::NetworkPolicy object;
  object.mutable_spec()->mutable_pod_selector();
  EXPECT_TRUE(Parse(object).isolates_ingress);
  EXPECT_FALSE(Parse(object).isolates_egress);
  object.mutable_spec()->add_egress();
  EXPECT_TRUE(Parse(object).isolates_ingress);
  EXPECT_TRUE(Parse(object).isolates_egress);
}

TEST(PolicyObjects, WhatCannotBeUnderstoodPermitsNothing) {
  networkingv1::NetworkPolicy object;
  auto* spec = object.mutable_spec();
  spec->add_ingress()->add_ports()->set_protocol("DCCP");
  spec->add_ingress()->add_from();
  spec->add_ingress()->add_from()->mutable_ip_block()->set_cidr("10.0.0/8");
  auto* odd = spec->add_ingress()->add_from()->mutable_pod_selector()->add_match_expressions();
  odd->set_key("app");
  odd->set_operator_("Like");
  auto* reversed = spec->add_ingress()->add_ports();
  reversed->mutable_port()->set_int_val(80);
  reversed->set_end_port(79);
  policy::Policy parsed = Parse(object);
  EXPECT_TRUE(parsed.isolates_ingress);
  EXPECT_THAT(parsed.ingress, IsEmpty());
  EXPECT_THAT(parsed.problems, SizeIs(5));
  EXPECT_THAT(parsed.problems[0], HasSubstr("DCCP"));
  // A selector of the policy itself must not select fewer pods.
  *spec->mutable_pod_selector()->add_match_expressions() = *odd;
  EXPECT_TRUE(Parse(object).pods.Matches({{"app", "web"}}));
}

}  // namespace
}  // namespace keelson::cni::agent
