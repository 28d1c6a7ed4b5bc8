// Permissions for admin access to devices, and for each part of a claim's status.
#include <gmock/gmock.h>

#include "controlplane/apiserver/admission/testing/attributes.h"
#include "controlplane/apiserver/admission/testing/object_store.h"
#include "lib/api/proto/resource_v1.pb.h"

namespace keelson::apiserver {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Claim = api::resource::v1::ResourceClaim;
using Template = api::resource::v1::ResourceClaimTemplate;

// Allows a list of requests, as "VERB RESOURCE [NS/]NAME", and records each question.
class Grants : public Authorizer {
 public:
  Decision Authorize(const Attributes& attributes) const override {
    const RequestInfo& request = attributes.request;
    asked.push_back(request.verb + " " + request.FullResource() + " " +
                    (request.ns.empty() ? "" : request.ns + "/") + request.name);
    Decision decision;
    decision.allowed = std::find(allowed.begin(), allowed.end(), asked.back()) != allowed.end();
    if (!decision.allowed) decision.reason = "no rule";
    return decision;
  }
  UserRules RulesFor(const User&, std::string_view) const override { return {}; }

  std::vector<std::string> allowed;
  mutable std::vector<std::string> asked;
};

bool Granular(std::string_view gate) { return gate == "DRAResourceClaimGranularStatusAuthorization"; }

constexpr char kBinding[] = "update resourceclaims/binding ";
constexpr char kAnywhere[] = "arbitrary-node:update resourceclaims/driver default/d.io";
constexpr char kHere[] = "associated-node:update resourceclaims/driver default/d.io";

class DeviceClaimsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    objects_ = std::make_unique<ObjectStore>();
    objects_->Put<corev1::Namespace>(R"({"metadata":{"name":"default"}})");
    objects_->Put<corev1::Namespace>(
        R"({"metadata":{"name":"admins","labels":{"resource.kubernetes.io/admin-access":"true"}}})");
    objects_->Put<corev1::Namespace>(
        R"({"metadata":{"name":"nearly","labels":{"resource.kubernetes.io/admin-access":"True"}}})");
    grants_ = std::make_shared<Grants>();
    plugin_ = NewDeviceClaims(grants_, objects_->get(), Granular);
  }

  std::string Change(const std::string& before, const std::string& now,
                     const User& user = {"u", "", {}, {}}) {
    grants_->asked.clear();
    return Case<Claim>(StatusOf(now)).Was(StatusOf(before)).Try(*plugin_, user, "resourceclaims/status");
  }
  static std::string StatusOf(const std::string& status) {
    return R"({"metadata":{"name":"c","namespace":"default"},"status":{)" + status + "}}";
  }
  static std::string Allocated(const std::string& node = "n1", const std::string& device = "a") {
    return R"("allocation":{"devices":{"results":[{"request":"r","driver":"d.io","pool":"p","device":")" +
           device +
           R"("}]},"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[)"
           R"({"key":"metadata.name","operator":"In","values":[")" +
           node + R"("]}]}]}})";
  }
  static std::string Devices(const std::string& driver = "d.io", const std::string& rest = "") {
    return R"(,"devices":[{"driver":")" + driver + R"(","pool":"p","device":"a")" + rest + "}]";
  }
  static User Account(const std::string& node) {
    return {"system:serviceaccount:a:driver", "", {}, {{"authentication.kubernetes.io/node-name", {node}}}};
  }

  std::unique_ptr<ObjectStore> objects_;
  std::shared_ptr<Grants> grants_;
  PluginPtr plugin_;
};

TEST_F(DeviceClaimsTest, AdminAccessNeedsTheNamespacesLabel) {
  const std::string devices =
      R"("devices":{"requests":[{"name":"a","firstAvailable":[{"name":"s"}]},{"name":"r","exactly":{"deviceClassName":"c","adminAccess":ADMIN}}]})";
  const auto with = [&](const char* admin) {
    std::string text = devices;
    return text.replace(text.find("ADMIN"), 5, admin);
  };
  const std::string refused =
      "is invalid: spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the "
      "`resource.kubernetes.io/admin-access: true` label on the containing namespace";
  struct {
    const char *ns, *admin;
    std::string says;
  } const rows[] = {
      {"default", "false", ""},
      {"default", "true", refused},
      {"nearly", "true", refused},
      {"admins", "true", ""},
      {"nowhere", "true",
       "adminAccess: Internal error: could not retrieve namespace to verify admin access: namespaces "
       "\"nowhere\" "
       "not found"},
  };
  for (const auto& row : rows) {
    const std::string claim = R"({"metadata":{"name":"c"},"spec":{)" + with(row.admin) + "}}";
    const std::string from = R"({"metadata":{"name":"c"},"spec":{"spec":{)" + with(row.admin) + "}}}";
    for (const std::string& said :
         {Case<Claim>(claim, row.ns).Try(*plugin_), Case<Template>(from, row.ns).Try(*plugin_)}) {
      EXPECT_EQ(said.empty(), row.says.empty()) << row.ns << ": " << said;
      EXPECT_THAT(said, HasSubstr(row.says)) << row.ns;
    }
  }
}

TEST_F(DeviceClaimsTest, AdminAccessInAStatusNeedsItToo) {
  grants_->allowed = {kBinding};
  const auto status = [](const char* admin) {
    return std::string(R"("allocation":{"devices":{"results":[{"request":"r","driver":"d.io","pool":"p",)") +
           R"("device":"a","adminAccess":)" + admin + "}]}}";
  };
  EXPECT_EQ(Change("", status("false")), "");
  EXPECT_THAT(
      Change("", status("true")),
      HasSubstr("status.allocation.devices.results[0].adminAccess: Forbidden: admin access to devices"));
  // A claim with admin access may be reserved and released.
  EXPECT_EQ(
      Change(status("true"), status("true") + R"(,"reservedFor":[{"resource":"pods","name":"p","uid":"u"}])"),
      "");
  EXPECT_EQ(Change(status("true"), ""), "");
}

TEST_F(DeviceClaimsTest, AllocationsAndReservationsNeedBinding) {
  const std::string reserved = R"(,"reservedFor":[{"resource":"pods","name":"p","uid":"u"}])";
  const struct {
    std::string before, now;
  } rows[] = {{"", Allocated()}, {Allocated(), Allocated() + reserved}, {Allocated() + reserved, ""}};
  for (const auto& row : rows) {
    grants_->allowed = {};
    EXPECT_THAT(
        Change(row.before, row.now),
        HasSubstr("status: Forbidden: changing status.allocation or status.reservedFor requires "
                  "resource=\"resourceclaims/binding\", verb=\"update\" permission: "
                  "resourceclaims.resource.k8s.io is forbidden: User \"u\" cannot update resource "
                  "\"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster scope: no "
                  "rule"));
    // For the whole cluster: it is no matter of one namespace.
    EXPECT_THAT(grants_->asked, ElementsAre(kBinding));
    grants_->allowed = {kBinding};
    EXPECT_EQ(Change(row.before, row.now), "");
  }
  grants_->allowed = {};
  EXPECT_EQ(Change(Allocated(), Allocated()), "");
  EXPECT_THAT(grants_->asked, IsEmpty());
}

TEST_F(DeviceClaimsTest, EachDriverWritesOfItsOwnDevices) {
  const std::string before = Allocated(), now = Allocated() + Devices();
  grants_->allowed = {kAnywhere};
  EXPECT_EQ(Change(before, now), "");
  EXPECT_EQ(Change(now, Allocated() + Devices("d.io", R"(,"data":{"a":1})")), "");
  EXPECT_EQ(Change(now, before), "");
  EXPECT_THAT(
      Change(before, Allocated() + Devices("e.io")),
      AllOf(HasSubstr("status.devices: Forbidden: changing status.devices requires "
                      "resource=\"resourceclaims/driver\", verb=\"[arbitrary-node:update]\" permission: "),
            HasSubstr("\"e.io\" is forbidden: User \"u\" cannot arbitrary-node:update resource "
                      "\"resourceclaims/driver\" in API group \"resource.k8s.io\" in the namespace "
                      "\"default\": no rule")));
  // Binding alone does not do.
  grants_->allowed = {kBinding};
  EXPECT_THAT(Change(before, now), HasSubstr("changing status.devices"));
  // One driver's right does not let another's entry go.
  grants_->allowed = {kAnywhere};
  EXPECT_THAT(Change(Allocated() + Devices("e.io"), Allocated()), HasSubstr("changing status.devices"));
  // What goes with its allocation is the binder's.
  grants_->allowed = {kBinding};
  EXPECT_EQ(Change(now, ""), "");
  EXPECT_EQ(Change(now, Allocated("n1", "b")), "");
}

TEST_F(DeviceClaimsTest, OnTheClaimsNodeLessIsNeeded) {
  const std::string before = Allocated(), now = Allocated() + Devices();
  grants_->allowed = {kHere};
  EXPECT_EQ(Change(before, now, Account("n1")), "");
  EXPECT_THAT(grants_->asked, ElementsAre(kHere));
  EXPECT_THAT(Change(before, now, Account("n2")), HasSubstr("verb=\"[arbitrary-node:update]\""));
  // No ServiceAccount; bound to two nodes; a claim for more than one node, or none yet.
  EXPECT_NE(Change(before, now, {"system:node:n1", "", {}, Account("n1").extra}), "");
  User two = Account("n1");
  two.extra.begin()->second.push_back("n2");
  EXPECT_NE(Change(before, now, two), "");
  EXPECT_NE(Change(Allocated("n1\",\"n2"), Allocated("n1\",\"n2") + Devices(), Account("n1")), "");
  grants_->allowed = {kBinding, kHere};
  EXPECT_EQ(Change("", now, Account("n1")), "");
  grants_->allowed = {};
  EXPECT_THAT(Change(before, now, Account("n1")),
              AllOf(HasSubstr("verb=\"[associated-node:update arbitrary-node:update]\""),
                    HasSubstr("cannot associated-node:update resource")));
  EXPECT_THAT(grants_->asked, ElementsAre(kHere, kAnywhere));
}

TEST_F(DeviceClaimsTest, TheGateTurnsStatusAuthorizationOffAndNoMore) {
  plugin_ = NewDeviceClaims(grants_, objects_->get(), NoGate);
  EXPECT_EQ(Change("", Allocated() + Devices()), "");
  EXPECT_THAT(grants_->asked, IsEmpty());
  EXPECT_THAT(Case<Claim>(R"({"metadata":{"name":"c"},"spec":{"devices":{"requests":[
                  {"name":"r","exactly":{"deviceClassName":"c","adminAccess":true}}]}}})")
                  .Try(*plugin_),
              HasSubstr("admin access"));
}

}  // namespace
}  // namespace keelson::apiserver
