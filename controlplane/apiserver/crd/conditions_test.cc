#include "controlplane/apiserver/crd/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace keelson::apiserver {
namespace {

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

CustomResourceDefinition Definition(const std::string& group = "example.com") {
  CustomResourceDefinition crd;
  crd.mutable_metadata()->set_name("foos." + group);
  crd.mutable_metadata()->set_generation(3);
  crd.mutable_spec()->set_group(group);
  auto& names = *crd.mutable_spec()->mutable_names();
  names.set_plural("foos");
  names.set_singular("foo");
  names.set_kind("Foo");
  names.set_list_kind("FooList");
  names.add_short_names("fo");
  names.add_categories("all");
  return crd;
}

// type=status/reason: message, one a line.
std::string Text(const DefinitionStatus& status) {
  std::string out;
  for (const auto& one : status.conditions()) {
    out += fmt::format("{}={}/{}: {}\n", one.type(), one.status(), one.reason(), one.message());
  }
  return out;
}

TEST(Conditions, OfADefinitionWithoutConflicts) {
  const DefinitionStatus status = StatusOf(Definition(), {}, kNow);
  EXPECT_EQ(Text(status),
            "NamesAccepted=True/NoConflicts: no conflicts found\n"
            "Established=True/InitialNamesAccepted: the initial names have been accepted\n");
  EXPECT_EQ(status.accepted_names().kind(), "Foo");
  EXPECT_EQ(status.accepted_names().categories(0), "all");
  EXPECT_EQ(status.conditions(0).observed_generation(), 3);
  EXPECT_EQ(status.conditions(0).last_transition_time().seconds(), 1'800'000'000);
}

TEST(Conditions, AreStable) {
  CustomResourceDefinition crd = Definition();
  *crd.mutable_status() = StatusOf(crd, {}, kNow);
  const UsedNames own = AcceptedNamesOf({crd});
  EXPECT_EQ(StatusOf(crd, own, kNow + std::chrono::hours(1)).SerializeAsString(),
            crd.status().SerializeAsString());
}

TEST(Conditions, OfSchemasAreLookedAtOncePerGeneration) {
  CustomResourceDefinition crd = Definition();
  auto& version = *crd.mutable_spec()->add_versions();
  version.set_name("v1");
  auto& schema = *version.mutable_schema()->mutable_open_apiv3_schema();
  schema.set_type("object");
  (*schema.mutable_properties())["a"].set_ref("#/x");
  *crd.mutable_status() = StatusOf(crd, {}, kNow);
  EXPECT_THAT(Text(crd.status()), testing::HasSubstr("NonStructuralSchema=True/Violations"));
  // Not what the API server would let happen: the same generation with another schema.
  schema.clear_properties();
  EXPECT_THAT(Text(StatusOf(crd, {}, kNow)), testing::HasSubstr("NonStructuralSchema=True"));
  crd.mutable_metadata()->set_generation(4);
  EXPECT_THAT(Text(StatusOf(crd, {}, kNow)), testing::Not(testing::HasSubstr("NonStructuralSchema")));
}

TEST(Conditions, OfNamesThatAreTaken) {
  struct Case {
    UsedNames used;
    const char *reason, *message;
  };
  for (const Case& one : {Case{{{"foos"}, {}}, "PluralConflict", "\"foos\" is already in use"},
                          Case{{{"foo"}, {}}, "SingularConflict", "\"foo\" is already in use"},
                          Case{{{"fo"}, {}}, "ShortNamesConflict", "\"fo\" is already in use"},
                          Case{{{}, {"Foo"}}, "KindConflict", "\"Foo\" is already in use"},
                          Case{{{}, {"FooList"}}, "ListKindConflict", "\"FooList\" is already in use"}}) {
    const DefinitionStatus status = StatusOf(Definition(), one.used, kNow);
    EXPECT_EQ(Text(status), fmt::format("NamesAccepted=False/{}: {}\n"
                                        "Established=False/NotAccepted: not all names are accepted\n",
                                        one.reason, one.message));
  }
}

TEST(Conditions, EstablishedStays) {
  CustomResourceDefinition crd = Definition();
  *crd.mutable_status() = StatusOf(crd, {}, kNow);
  crd.mutable_spec()->mutable_names()->set_kind("Bar");
  const DefinitionStatus status = StatusOf(crd, {{}, {"Bar"}}, kNow);
  EXPECT_THAT(Text(status), testing::HasSubstr("NamesAccepted=False/KindConflict"));
  EXPECT_THAT(Text(status), testing::HasSubstr("Established=True/InitialNamesAccepted"));
  EXPECT_EQ(status.accepted_names().kind(), "Foo");
}

TEST(Conditions, OfProtectedGroups) {
  struct Case {
    const char *annotation, *text;
  };
  for (const Case& one : {Case{"", "=False/MissingAnnotation"},
                          Case{"https://github.com/a/b/pull/1", "=True/ApprovedAnnotation: approved in"},
                          Case{"unapproved, for a test",
                               "=False/UnapprovedAnnotation: not approved: \"unapproved, for a test\""},
                          Case{"yes", "=False/InvalidAnnotation"}}) {
    CustomResourceDefinition crd = Definition("sigs.k8s.io");
    if (*one.annotation) {
      (*crd.mutable_metadata()->mutable_annotations())["api-approved.kubernetes.io"] = one.annotation;
    }
    EXPECT_THAT(Text(StatusOf(crd, {}, kNow)),
                testing::HasSubstr(std::string("KubernetesAPIApprovalPolicyConformant") + one.text));
  }
}

TEST(Conditions, OfAWebhookWithoutUsableCertificates) {
  CustomResourceDefinition crd = Definition();
  crd.mutable_spec()->mutable_conversion()->set_strategy("Webhook");
  crd.mutable_spec()->mutable_conversion()->mutable_webhook()->mutable_client_config()->set_ca_bundle(
      "no PEM");
  EXPECT_THAT(Text(StatusOf(crd, {}, kNow)), testing::HasSubstr("Established=False/InvalidCABundle"));
}

}  // namespace
}  // namespace keelson::apiserver
