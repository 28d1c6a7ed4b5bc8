#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <sstream>

#include "ctl/host/paths.h"
#include "ctl/host/testing/memory_host.h"
#include "ctl/host/versions.h"
#include "ctl/output.h"
#include "ctl/upgrade/backup.h"
#include "ctl/upgrade/drain.h"
#include "ctl/upgrade/expose_etcd.h"
#include "ctl/upgrade/look.h"
#include "ctl/upgrade/plan.h"
#include "ctl/upgrade/upgrade_run.h"

namespace keelson::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Versions, AreReadAndOrdered) {
  const char* ordered[] = {"v1.35.9", "v1.36.0-alpha.1", "v1.36.0-rc.1",
                           "1.36.0",  "v1.36.2+local",   "v1.40.0"};
  for (size_t i = 0; i + 1 < std::size(ordered); ++i) {
    EXPECT_LT(*ParseVersion(ordered[i]), *ParseVersion(ordered[i + 1])) << ordered[i];
  }
  EXPECT_EQ(*ParseVersion("v1.36.2"), *ParseVersion("1.36.2+build"));
  for (const char* wrong : {"", "v", "1.36", "v1.x.2", "v1.36.2-", "v1.-3.2", "v1.36.2.1"}) {
    EXPECT_EQ(ParseVersion(wrong).error().message(),
              "could not parse \"" + std::string(wrong) + "\" as version");
  }
  MemoryHost host;
  EXPECT_EQ(*InstalledVersion(host, "kubelet"), "v1.36.2");
  host.kubelet_version = "what?";
  EXPECT_TRUE(InstalledVersion(host, "kubelet").error().Is(Code::kInvalid));
}

struct Skew {
  const char *configured, *server, *kubelet, *target;
  const char *mandatory, *skippable;  // a part of the only one; empty: none
};

TEST(UpgradeSkew, FollowsKubernetesPolicy) {
  const Skew cases[] = {
      {"v1.35.4", "v1.35.4", "v1.35.4", "v1.36.2", "", ""},
      {"v1.36.2", "v1.36.2", "v1.33.0", "v1.36.2", "", ""},
      {"v1.37.0", "v1.37.0", "v1.36.0", "v1.36.2", "", ""},
      {"v1.34.1", "v1.35.0", "v1.34.1", "v1.36.2", "is too high; nodectl can upgrade only 1 minor", ""},
      {"v1.38.1", "v1.37.0", "v1.36.1", "v1.36.2", "is too low; nodectl can downgrade only 1 minor", ""},
      {"v1.35.0", "v1.34.0", "v1.35.0", "v1.36.2", "API servers of a cluster are at most one minor apart",
       ""},
      {"v1.35.4", "v1.35.4", "v1.32.9", "v1.36.2", "", "too old that have these versions [n v1.32.9]"},
      {"v1.36.0", "v1.36.0", "v1.37.0", "v1.36.2", "", "newer than the control plane [n v1.37.0]"},
      {"v1.34.1", "v1.35.0", "v1.35.0", "v1.36.0-rc.1", "", "is too high"},
      {"none", "v1.36.0", "v1.36.0", "v1.36.2", "Unable to fetch cluster version", ""},
      {"v1.36.0", "v1.36.0", "odd", "v1.36.2", "", "couldn't parse kubelet version odd of node n"},
  };
  for (const Skew& one : cases) {
    const SkewErrors found =
        CheckUpgradeSkew({one.configured, one.server, {{"n", one.kubelet, false, true}}}, one.target);
    const std::string where = std::string(one.configured) + " " + one.kubelet;
    for (const auto& [errors, expected] :
         {std::pair(&found.mandatory, one.mandatory), std::pair(&found.skippable, one.skippable)}) {
      if (*expected) {
        EXPECT_THAT(*errors, ElementsAre(HasSubstr(expected))) << where;
      } else {
        EXPECT_THAT(*errors, IsEmpty()) << where;
      }
    }
  }
}

TEST(UpgradeSkew, NodesComeAfterTheControlPlane) {
  const ClusterVersions old{"v1.35.4", "v1.35.4", {}}, current{"v1.36.2", "v1.36.2", {}};
  EXPECT_TRUE(CheckNodeSkew(current, "v1.36.2", "v1.36.2"));
  EXPECT_TRUE(CheckNodeSkew(current, "v1.33.0", "v1.36.2"));
  EXPECT_THAT(CheckNodeSkew(old, "v1.35.4", "v1.36.2").error().message(),
              HasSubstr("upgrade the control plane first, by 'nodectl upgrade apply'"));
  EXPECT_THAT(CheckNodeSkew(old, "v1.36.2", "v1.35.4").error().message(),
              HasSubstr("newer than the API server"));
  EXPECT_THAT(CheckNodeSkew(current, "v1.32.9", "v1.36.2").error().message(),
              HasSubstr("install a newer keelson-kubelet first"));
}

TEST(UpgradePlan, ShowsWhatChanges) {
  const ClusterVersions running{
      "v1.35.4", "v1.35.4", {{"one", "v1.35.4", true, true}, {"two", "v1.36.2", false, true}}};
  const InstalledPrograms installed{{{"kube-controlplane", "v1.35.4"}, {"kubelet", "v1.36.2"}}, "0.9.1"};
  const UpgradePlan plan = PlanUpgrade(running, installed, "one", "v1.36.2");
  EXPECT_FALSE(plan.current);
  EXPECT_THAT(plan.packages, ElementsAre("keelson-controlplane=0.9.1"));
  const std::string table = UpgradePlanTable(plan);
  EXPECT_THAT(table,
              AllOf(HasSubstr("COMPONENT   NODE   CURRENT   TARGET\nkubelet     one    v1.35.4   v1.36.2\n"),
                    HasSubstr("kube-apiserver             v1.35.4   v1.36.2\n"),
                    HasSubstr("\tapt-get install keelson-controlplane=0.9.1\n"),
                    HasSubstr("\tnodectl upgrade apply v1.36.2\n")));
  const std::string document = ToJson(UpgradePlanDocument(plan));
  EXPECT_THAT(document, AllOf(HasSubstr("\"kind\": \"UpgradePlan\""), HasSubstr("\"nodeName\": \"two\""),
                              HasSubstr("\"description\": \"version in the v1.36 series\"")));
  const UpgradePlan far = PlanUpgrade({"v1.33.0", "v1.33.0", {}}, installed, "one", "v1.36.2");
  EXPECT_THAT(UpgradePlanTable(far), Not(HasSubstr("You can now apply")));
  EXPECT_EQ(UpgradePlanDocument(far).at("availableUpgrades").as_array().size(), 0u);
  const UpgradePlan none = PlanUpgrade({"v1.36.2", "v1.36.2", {}}, {}, "", "v1.36.2");
  EXPECT_TRUE(none.current);
  EXPECT_THAT(UpgradePlanTable(none), HasSubstr("Everything is v1.36.2 already"));
}

class Backup : public testing::Test {
 protected:
  Backup() {
    host_.files["/etc/kubernetes/pki/ca.key"] = {"key", 0600, ""};
    host_.files["/etc/kubernetes/pki/etcd/ca.crt"] = {"etcd", 0644, ""};
    host_.files[paths::kAdminConf] = {"admin", 0600, ""};
    host_.files["/var/lib/kubelet/config.yaml"] = {"config", 0644, ""};
    host_.files["/var/lib/kubelet/pods/x"] = {"no matter of a backup", 0644, ""};
  }
  BackupPlan Plan(const std::optional<ClusterConfiguration>& cluster) {
    return PlanBackup("/etc/kubernetes/tmp/b", cluster, host_);
  }

  MemoryHost host_;
  std::ostringstream out_;
};

TEST_F(Backup, CopiesFilesAndASnapshot) {
  ASSERT_TRUE(BackUp(host_, Plan(ClusterConfiguration()), out_));
  EXPECT_EQ(host_.files.at("/etc/kubernetes/tmp/b/etc/kubernetes/pki/ca.key").text, "key");
  EXPECT_EQ(host_.files.at("/etc/kubernetes/tmp/b/etc/kubernetes/pki/etcd/ca.crt").text, "etcd");
  EXPECT_EQ(host_.files.at("/etc/kubernetes/tmp/b/etc/kubernetes/pki/etcd/ca.crt").mode, 0600u);
  EXPECT_EQ(host_.directories.at("/etc/kubernetes/tmp/b"), 0700u);
  EXPECT_FALSE(host_.Exists("/etc/kubernetes/tmp/b/var/lib/kubelet/pods"));
  EXPECT_THAT(host_.commands,
              ElementsAre("kube-controlplane etcd snapshot save /etc/kubernetes/tmp/b/etcd.db "
                          "--data-dir=/var/lib/keelson/controlplane"));
  EXPECT_THAT(host_.files.at("/etc/kubernetes/tmp/b/nodectl-backup.txt").text,
              AllOf(HasSubstr("/etc/kubernetes/admin.conf\n"), HasSubstr("etcd.db\n")));
}

TEST_F(Backup, ANodeHasNoEtcdAndAnExternalOneIsAskedByItsFlags) {
  EXPECT_THAT(Plan(std::nullopt).snapshot, IsEmpty());
  ClusterConfiguration cluster;
  cluster.external_etcd = {{"https://a:2379", "https://b:2379"}, "/ca.crt", "/c.crt", "/c.key"};
  EXPECT_THAT(Plan(cluster).snapshot,
              ElementsAre("kube-controlplane", "etcd", "snapshot", "save", "/etc/kubernetes/tmp/b/etcd.db",
                          "--etcd-servers=https://a:2379,https://b:2379", "--etcd-cafile=/ca.crt",
                          "--etcd-certfile=/c.crt", "--etcd-keyfile=/c.key"));
}

TEST_F(Backup, OneThatWasKilledIsMadeAnewAndACompleteOneIsKept) {
  const auto begin = host_.files;
  bool complete = false;
  for (int effects = 0; !complete; ++effects) {
    host_.files = begin;
    host_.effects_left = effects;
    complete = BackUp(host_, Plan(ClusterConfiguration()), out_).has_value();
    host_.effects_left = -1;
    host_.files[paths::kAdminConf].text = "newer";  // what the rest of an upgrade does
    ASSERT_TRUE(BackUp(host_, Plan(ClusterConfiguration()), out_)) << effects;
    EXPECT_EQ(host_.files.at("/etc/kubernetes/tmp/b/etc/kubernetes/admin.conf").text,
              complete ? "admin" : "newer")
        << effects;
  }
}

TEST(BackupDirectory, HasTheTime) {
  EXPECT_EQ(BackupDirectory(WallTime(std::chrono::seconds(1'795'825'800))),
            "/etc/kubernetes/tmp/nodectl-backup-2026-11-28-00-30-00");
}

corev1::Pod PodOf(const std::string& name, const std::string& controller) {
  corev1::Pod out;
  out.mutable_metadata()->set_namespace_("a");
  out.mutable_metadata()->set_name(name);
  out.mutable_metadata()->set_uid("uid-" + name);
  if (!controller.empty()) {
    metav1::OwnerReference& owner = *out.mutable_metadata()->add_owner_references();
    owner.set_kind(controller);
    owner.set_controller(true);
  }
  return out;
}

TEST(DrainPlan, ProtectsWhatKubectlProtects) {
  corev1::Pod mirror = PodOf("mirror", "");
  (*mirror.mutable_metadata()->mutable_annotations())["kubernetes.io/config.mirror"] = "x";
  corev1::Pod local = PodOf("local", "ReplicaSet");
  local.mutable_spec()->add_volumes()->mutable_volume_source()->mutable_empty_dir();
  corev1::Pod done = PodOf("done", "");
  done.mutable_status()->set_phase("Succeeded");
  const std::vector<corev1::Pod> pods = {
      mirror, local, done, PodOf("alone", ""), PodOf("daemon", "DaemonSet"), PodOf("web", "ReplicaSet")};
  const DrainPlan refused = PlanDrain(pods, {});
  EXPECT_THAT(
      refused.errors,
      ElementsAre("cannot delete Pods that declare no controller (use --drain-force to override): a/alone",
                  "cannot delete Pods with local storage (use --delete-emptydir-data to override): a/local"));
  EXPECT_THAT(refused.warnings, ElementsAre("ignoring DaemonSet-managed Pods: a/daemon"));
  const DrainPlan forced = PlanDrain(pods, {.force = true, .delete_empty_dirs = true});
  EXPECT_THAT(forced.errors, IsEmpty());
  std::vector<std::string> names;
  for (const EvictedPod& pod : forced.evicted) names.push_back(pod.name);
  EXPECT_THAT(names, ElementsAre("local", "done", "alone", "web"));
}

TEST(UpgradeRun, SaysWhatAMachineIsNot) {
  MemoryHost host;
  std::ostringstream out, err;
  const UpgradeOptions apply{.ignored_checks = {"all"}};
  EXPECT_THAT(UpgradeRun(host, apply, out, err).Run("").error().message(),
              HasSubstr("this machine is no node of a cluster"));
  EXPECT_EQ(UpgradeRun(host, apply, out, err).Run("drain").error().message(), "invalid phase name: drain");
  const UpgradeOptions other{.version = "v1.37.0", .ignored_checks = {"all"}};
  EXPECT_THAT(UpgradeRun(host, other, out, err).Run("").error().message(),
              HasSubstr("Specified version to upgrade to \"v1.37.0\" is not nodectl's"));
  EXPECT_THAT(host.files, IsEmpty());
  host.files[paths::kUnfinished] = {"upgrade-node\n", 0600, ""};
  EXPECT_THAT(UpgradeRun(host, apply, out, err).Run("").error().message(),
              HasSubstr("is of another verb, which has not ended"));
}

TEST(ExposeEtcd, TheEndpointOfAClusterStays) {
  EXPECT_EQ(*ChooseEndpoint("", "api.example.com:6443"), "api.example.com:6443");
  EXPECT_EQ(*ChooseEndpoint("api.example.com:6443", ""), "api.example.com:6443");
  EXPECT_TRUE(ChooseEndpoint("api.example.com:6443", "api.example.com:6443"));
  EXPECT_THAT(ChooseEndpoint("", "").error().message(), HasSubstr("--control-plane-endpoint is missing"));
  EXPECT_THAT(ChooseEndpoint("a:1", "b:1").error().message(), HasSubstr("does not become b:1"));
}

TEST(ExposeEtcd, ACertificateGetsTheNamesThatItLacks) {
  const crypto::CertificateSubject present{"kube-apiserver", {}, {"cp-1", "extra"}, {"192.0.2.1"}};
  const auto more = WithNames(present, {"kube-apiserver", {}, {"cp-1", "api.example.com"}, {"192.0.2.9"}});
  EXPECT_THAT(more.dns_names, ElementsAre("cp-1", "extra", "api.example.com"));
  EXPECT_THAT(more.ip_addresses, ElementsAre("192.0.2.1", "192.0.2.9"));
  EXPECT_EQ(WithNames(present, {"", {}, {"cp-1"}, {}}), present);
}

TEST(ExposeEtcd, AnEtcdElsewhereIsLeftAlone) {
  MemoryHost host;
  std::ostringstream out, err;
  host.files[paths::kControlPlaneEnv] = {"KUBE_CONTROLPLANE_CLUSTER_ARGS=\"--etcd-servers=https://a:2379\"\n",
                                         0644, ""};
  const auto refused = ExposeEtcd(host, {.ignored_checks = {"all"}}, out, err);
  EXPECT_THAT(refused.error().message(), HasSubstr("uses an etcd elsewhere"));
}

}  // namespace
}  // namespace keelson::ctl
