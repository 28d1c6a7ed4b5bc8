// The levels and schemas that are made at start, against what Kubernetes 1.36 makes.
#include "controlplane/apiserver/flowcontrol/bootstrap.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controlplane/registry/testing/fixture.h"

namespace keelson::apiserver::flowcontrol {
namespace {

using Lines = std::vector<std::string>;

constexpr char kAutoUpdate[] = "apf.kubernetes.io/autoupdate-spec";

template <typename T>
void ExpectKeptUp(const T& object) {
  EXPECT_EQ(object.metadata().annotations().at(kAutoUpdate), "true") << object.metadata().name();
}

// "NAME TYPE SHARES/LENDABLE% RESPONSE [QUEUESxLENGTH hand HAND]"
std::string Show(const flowcontrolv1::PriorityLevelConfiguration& level) {
  ExpectKeptUp(level);
  const auto& spec = level.spec();
  const std::string& name = level.metadata().name();
  if (spec.type() == "Exempt") {
    return fmt::format("{} Exempt {}/{}%", name, spec.exempt().nominal_concurrency_shares(),
                       spec.exempt().lendable_percent());
  }
  EXPECT_FALSE(spec.limited().has_borrowing_limit_percent()) << name;
  const auto& response = spec.limited().limit_response();
  std::string out =
      fmt::format("{} {} {}/{}% {}", name, spec.type(), spec.limited().nominal_concurrency_shares(),
                  spec.limited().lendable_percent(), response.type());
  if (response.has_queuing()) {
    out += fmt::format(" {}x{} hand {}", response.queuing().queues(), response.queuing().queue_length_limit(),
                       response.queuing().hand_size());
  }
  return out;
}

std::string Show(const flowcontrolv1::Subject& subject) {
  if (subject.kind() == "User") return "User:" + subject.user().name();
  if (subject.kind() == "Group") return "Group:" + subject.group().name();
  return "ServiceAccount:" + subject.service_account().namespace_() + "/" + subject.service_account().name();
}

// "NAME LEVEL PRECEDENCE DISTINGUISHER SUBJECTS: RULES"
std::string Show(const flowcontrolv1::FlowSchema& schema) {
  ExpectKeptUp(schema);
  const auto& spec = schema.spec();
  EXPECT_EQ(spec.rules_size(), 1) << schema.metadata().name();
  Lines subjects, rules;
  for (const auto& subject : spec.rules(0).subjects()) subjects.push_back(Show(subject));
  for (const auto& rule : spec.rules(0).resource_rules()) {
    rules.push_back(fmt::format("{} \"{}\" {} in {}{}", fmt::join(rule.verbs(), ","),
                                fmt::join(rule.api_groups(), ","), fmt::join(rule.resources(), ","),
                                fmt::join(rule.namespaces(), ","),
                                rule.cluster_scope() ? " and cluster" : ""));
  }
  for (const auto& rule : spec.rules(0).non_resource_rules()) {
    rules.push_back(
        fmt::format("{} {}", fmt::join(rule.verbs(), ","), fmt::join(rule.non_resource_urls(), ",")));
  }
  return fmt::format("{} {} {} {} {}: {}", schema.metadata().name(),
                     spec.priority_level_configuration().name(), spec.matching_precedence(),
                     spec.has_distinguisher_method() ? spec.distinguisher_method().type() : "-",
                     fmt::join(subjects, ","), fmt::join(rules, "; "));
}

template <typename List>
Lines ShowAll(const List& list) {
  Lines out;
  for (const auto& one : list) out.push_back(Show(one));
  return out;
}

constexpr char kAll[] = R"(* "*" * in * and cluster; * *)";

TEST(FlowControlBootstrap, Levels) {
  EXPECT_EQ(ShowAll(Bootstrap().mandatory_levels),
            (Lines{"exempt Exempt 0/0%", "catch-all Limited 5/0% Reject"}));
  EXPECT_EQ(ShowAll(Bootstrap().suggested_levels),
            (Lines{"system Limited 30/33% Queue 64x50 hand 6", "node-high Limited 40/25% Queue 64x50 hand 6",
                   "leader-election Limited 10/0% Queue 16x50 hand 4",
                   "workload-high Limited 40/50% Queue 128x50 hand 6",
                   "workload-low Limited 100/90% Queue 128x50 hand 6",
                   "global-default Limited 20/50% Queue 128x50 hand 6"}));
}

TEST(FlowControlBootstrap, Schemas) {
  const std::string all = kAll;
  const std::string everybody = "Group:system:unauthenticated,Group:system:authenticated: ";
  EXPECT_EQ(ShowAll(Bootstrap().mandatory_schemas),
            (Lines{"exempt exempt 1 - Group:system:masters: " + all,
                   "catch-all catch-all 10000 ByUser " + everybody + all}));
  EXPECT_EQ(
      ShowAll(Bootstrap().suggested_schemas),
      (Lines{
          "probes exempt 2 - " + everybody + "get /healthz,/readyz,/livez",
          "system-leader-election leader-election 100 ByUser User:system:kube-controller-manager,"
          "User:system:kube-scheduler,ServiceAccount:kube-system/*: get,create,update "
          "\"coordination.k8s.io\" leases in *",
          "system-node-high node-high 400 ByUser Group:system:nodes: * \"\" nodes,nodes/status in * and "
          "cluster; * \"coordination.k8s.io\" leases in *",
          "system-nodes system 500 ByUser Group:system:nodes: " + all,
          "kube-controller-manager workload-high 800 ByNamespace User:system:kube-controller-manager: " + all,
          "kube-scheduler workload-high 800 ByNamespace User:system:kube-scheduler: " + all,
          "kube-system-service-accounts workload-high 900 ByNamespace ServiceAccount:kube-system/*: " + all,
          "service-accounts workload-low 9000 ByUser Group:system:serviceaccounts: " + all,
          "global-default global-default 9900 ByUser " + everybody + all}));
}

class FlowControlObjects : public registry::RegistryTest {
 protected:
  flowcontrolv1::FlowSchema SchemaOf(const std::string& name, const char* automatic) {
    flowcontrolv1::FlowSchema schema = Bootstrap().suggested_schemas.back();
    schema.mutable_metadata()->Clear();
    schema.mutable_metadata()->set_name(name);
    if (automatic) (*schema.mutable_metadata()->mutable_annotations())[kAutoUpdate] = automatic;
    return schema;
  }
};

// The server deletes schemas of other versions that no user has changed.
TEST_F(FlowControlObjects, WhatIsNoLongerMadeGoes) {
  ASSERT_TRUE(Create(SchemaOf("workload-leader-election", "true"), ""));
  ASSERT_TRUE(Create(SchemaOf("kept", "false"), ""));
  ASSERT_TRUE(Create(SchemaOf("mine", nullptr), ""));
  ASSERT_TRUE(EnsureBootstrapObjects(**plane_, {}));
  EXPECT_FALSE(Get<flowcontrolv1::FlowSchema>("workload-leader-election", ""));
  for (const char* name : {"kept", "mine", "probes", "catch-all"}) {
    EXPECT_TRUE(Get<flowcontrolv1::FlowSchema>(name, "")) << name;
  }
}

}  // namespace
}  // namespace keelson::apiserver::flowcontrol
