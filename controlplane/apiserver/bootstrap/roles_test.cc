// Bootstrap roles on a real etcd: missing ones are added, and earlier versions' additions to upstream's are
// removed once.
#include <gmock/gmock.h>

#include "controlplane/apiserver/authz/policy_tables.h"
#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "controlplane/registry/testing/fixture.h"

namespace keelson::apiserver {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

constexpr char kExpand[] = "system:controller:expand-controller";

class BootstrapRolesTest : public registry::RegistryTest {
 protected:
  void SetUp() override {
    RegistryTest::SetUp();
    if (!IsSkipped()) {
      ASSERT_TRUE(EnsureSystemNamespaces(**plane_, {}));
    }
  }
  void Ensure(const GateOn& on = NoGate) {
    const Result<> done = EnsureBootstrapRoles(**plane_, on, {});
    ASSERT_TRUE(done) << done.error().message();
  }
  template <typename T>
  void Change(const std::string& name, const std::function<void(T&)>& change, std::string_view ns = "") {
    auto done = (*plane_)->Modify(registry::Row<T>(), ns, name,
                                  [&](api::Message& object) -> Result<> {
                                    change(static_cast<T&>(object));
                                    return {};
                                  },
                                  {});
    ASSERT_TRUE(done) << done.error().message();
  }
  // As an earlier version had left it: with grants of its own, and without this version's roles.
  void MakeOld() {
    Ensure();
    Change<rbacv1::ClusterRole>(kExpand, [](auto& role) {
      *role.add_rules() = ToProto({"get", "", "services", "", ""});
      *role.add_rules() = ToProto({"get", "", "services", "mine", ""});
    });
    Change<rbacv1::ClusterRoleBinding>(kExpand, [](auto& binding) {
      for (const char* user : {"system:kube-controller-manager", "jane"}) {
        rbacv1::Subject& subject = *binding.add_subjects();
        subject.set_kind("User");
        subject.set_api_group("rbac.authorization.k8s.io");
        subject.set_name(user);
      }
    });
    Change<rbacv1::Role>(
        "system::leader-locking-kube-scheduler",
        [](auto& role) {
          *role.add_rules() = ToProto({"watch", "", "configmaps", "", ""});
          *role.add_rules() = ToProto({"get,update", "", "configmaps", "kube-scheduler", ""});
        },
        "kube-system");
    rbacv1::ClusterRole reader;
    reader.mutable_metadata()->set_name("system:aggregated-metrics-reader");
    (*reader.mutable_metadata()->mutable_labels())["kubernetes.io/bootstrapping"] = "rbac-defaults";
    *reader.add_rules() = ToProto({kRead, "metrics.k8s.io", "nodes,pods", "", ""});
    ASSERT_TRUE(Create(reader, ""));
    for (const char* own : {"keelson:kube-controller-manager", "keelson:aggregated-metrics-reader"}) {
      ASSERT_TRUE((*plane_)->Delete(registry::Row<rbacv1::ClusterRole>(), "", own, {}, {}));
    }
  }
  std::vector<std::string> Subjects() {
    std::vector<std::string> names;
    const auto binding = *Get<rbacv1::ClusterRoleBinding>(kExpand, "");
    for (const auto& subject : binding.subjects()) names.push_back(subject.name());
    return names;
  }
  template <typename Role>
  static std::vector<std::string> Rules(const Role& role) {
    std::vector<std::string> out;
    for (const auto& rule : role.rules()) out.push_back(api::EncodeRaw(rule));
    return out;
  }
  static std::string Rule(const RuleRow& row) { return api::EncodeRaw(ToProto(row)); }
};

TEST_F(BootstrapRolesTest, TakesOutWhatEarlierVersionsAdded) {
  MakeOld();
  Ensure();
  const auto rules = Rules(*Get<rbacv1::ClusterRole>(kExpand, ""));
  EXPECT_THAT(rules, Not(Contains(Rule({"get", "", "services", "", ""}))));
  // Similar rules that a user added.
  EXPECT_THAT(rules, Contains(Rule({"get", "", "services", "mine", ""})));
  EXPECT_THAT(Subjects(), ElementsAre("expand-controller", "jane"));
  const auto locking = Rules(*Get<rbacv1::Role>("system::leader-locking-kube-scheduler", "kube-system"));
  EXPECT_EQ(locking.size(), 2u);
  EXPECT_FALSE(Get<rbacv1::ClusterRole>("system:aggregated-metrics-reader", ""));
  EXPECT_TRUE(Get<rbacv1::ClusterRole>("keelson:aggregated-metrics-reader", ""));
  EXPECT_TRUE(Get<rbacv1::ClusterRoleBinding>("keelson:kube-controller-manager", ""));
}

TEST_F(BootstrapRolesTest, LeavesAloneWhatIsAddedLaterOrNotKeptByThisServer) {
  MakeOld();
  Change<rbacv1::ClusterRoleBinding>(kExpand, [](auto& binding) {
    (*binding.mutable_metadata()->mutable_annotations())[kAutoupdate] = "false";
  });
  Ensure();
  EXPECT_THAT(Subjects(), ElementsAre("expand-controller", "system:kube-controller-manager", "jane"));
  // Grants that a user adds afterwards stay.
  Change<rbacv1::ClusterRole>(kExpand, [](auto& role) {
    *role.add_rules() = ToProto({"get", "", "services", "", ""});
  });
  Ensure();
  EXPECT_THAT(Rules(*Get<rbacv1::ClusterRole>(kExpand, "")), Contains(Rule({"get", "", "services", "", ""})));
}

TEST_F(BootstrapRolesTest, RulesOfAFeatureComeWithItsGate) {
  const RuleRow rule = {"create,get,list,watch", "certificates.k8s.io", "podcertificaterequests", "", ""};
  Ensure();
  EXPECT_THAT(Rules(*Get<rbacv1::ClusterRole>("system:node", "")), Not(Contains(Rule(rule))));
  EXPECT_FALSE(Get<rbacv1::ClusterRole>("system:controller:podcertificaterequestcleaner", ""));
  Ensure([](std::string_view gate) { return gate == "PodCertificateRequest"; });
  EXPECT_THAT(Rules(*Get<rbacv1::ClusterRole>("system:node", "")), Contains(Rule(rule)));
  EXPECT_TRUE(Get<rbacv1::ClusterRoleBinding>("system:controller:podcertificaterequestcleaner", ""));
}

}  // namespace
}  // namespace keelson::apiserver
