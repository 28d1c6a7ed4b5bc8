#include <gmock/gmock.h>

#include "ctl/config/complete.h"
#include "ctl/config/read.h"
#include "ctl/config/write.h"
#include "lib/base/version.h"

namespace keelson::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const MachineFacts kMachine{"node-1", "192.0.2.10", {"/var/run/containerd/containerd.sock"}};

Result<InitConfiguration> Init(const std::string& text, std::vector<std::string>& warnings) {
  KEELSON_ASSIGN_OR_RETURN(const ConfigDocuments documents, SplitDocuments(text));
  warnings.insert(warnings.end(), documents.warnings.begin(), documents.warnings.end());
  KEELSON_ASSIGN_OR_RETURN(InitConfiguration config, ReadInit(documents, warnings));
  KEELSON_RETURN_IF_ERROR(Complete(config, kMachine, warnings));
  return config;
}
std::string InitError(const std::string& text) {
  std::vector<std::string> warnings;
  const auto config = Init(text, warnings);
  return config ? "" : config.error().message();
}
std::string Cluster(const std::string& fields) {
  return "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n" + fields;
}

TEST(Config, ReadsAllDocumentsOfAFile) {
  std::vector<std::string> warnings;
  const auto config = Init(R"(# of a machine
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
- {token: abcdef.0123456789abcdef, ttl: 0s, usages: [signing], groups: ["system:bootstrappers:a"]}
nodeRegistration:
  name: Control-1
  criSocket: unix:///run/crio/crio.sock
  taints: []
  kubeletExtraArgs: [{name: v, value: "4"}]
localAPIEndpoint: {advertiseAddress: 192.0.2.20, bindPort: 7443}
skipPhases: [addon/kube-cni]
timeouts: {controlPlaneComponentHealthCheck: 30s}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
networking: {serviceSubnet: "10.96.0.0/16,fd00:96::/112", podSubnet: "10.1.0.0/16", dnsDomain: example.local}
controlPlaneEndpoint: api.example.com
apiServer:
  certSANs: [api.example.com, "*.example.net", 198.51.100.7]
  extraArgs: [{name: audit-log-maxage, value: "30"}]
encryptionAlgorithm: ECDSA-P256
certificateValidityPeriod: 24h
dns: {disabled: true}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 42
---
apiVersion: example.com/v1
kind: Other
)",
                           warnings);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->node.name, "control-1");
  EXPECT_EQ(config->node.cri_socket, "unix:///run/crio/crio.sock");
  EXPECT_THAT(*config->node.taints, IsEmpty());
  EXPECT_THAT(config->node.kubelet_extra_args, ElementsAre(Argument{"v", "4"}));
  EXPECT_EQ(config->bootstrap_tokens.at(0).ttl, std::chrono::seconds(0));
  EXPECT_EQ(config->bind_port, 7443);
  EXPECT_EQ(config->timeouts.control_plane, std::chrono::seconds(30));
  EXPECT_EQ(*ApiEndpoint(*config), "api.example.com:7443");
  EXPECT_EQ(*ServiceAddress(config->cluster, 1), "10.96.0.1");
  EXPECT_EQ(*DnsAddresses(config->cluster), "10.96.0.10,fd00:96::a");
  EXPECT_EQ(config->cluster.certificate_validity, std::chrono::hours(24));
  EXPECT_TRUE(config->cluster.dns_disabled);
  EXPECT_EQ(config->kubelet.at("maxPods").as_int64(), 42);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("Ignored configuration document with GroupVersionKind "
                                              "schema.GroupVersionKind{Group:\"example.com\"")));
}

TEST(Config, FillsInWhatIsNotSaid) {
  std::vector<std::string> warnings;
  const auto config = Init("", warnings);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->node.name, "node-1");
  EXPECT_EQ(config->advertise_address, "192.0.2.10");
  EXPECT_EQ(*ApiEndpoint(*config), "192.0.2.10:6443");
  EXPECT_EQ(config->cluster.service_subnet, "10.96.0.0/12");
  EXPECT_EQ(config->cluster.kubernetes_version, kGitVersion);
  EXPECT_THAT(*config->node.taints,
              ElementsAre(Taint{"node-role.kubernetes.io/control-plane", "", "NoSchedule"}));
  const BootstrapToken& token = config->bootstrap_tokens.at(0);
  EXPECT_EQ(token.ttl, std::chrono::hours(24));
  EXPECT_THAT(token.usages, ElementsAre("signing", "authentication"));
  EXPECT_THAT(token.groups, ElementsAre("system:bootstrappers:kubeadm:default-node-token"));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Config, RefusesFieldsThatDoNotExist) {
  EXPECT_EQ(InitError(Cluster("networking: {serviceSubnett: x}\nfoo: 1\n")),
            "error unmarshaling configuration schema.GroupVersionKind{Group:\"kubeadm.k8s.io\", "
            "Version:\"v1beta4\", Kind:\"ClusterConfiguration\"}: strict decoding error: unknown field "
            "\"networking.serviceSubnett\", unknown field \"foo\"");
  EXPECT_THAT(InitError(Cluster("clusterName: a\nclusterName: b\n")), HasSubstr("strict decoding error"));
  EXPECT_THAT(InitError(Cluster("networking: {serviceSubnet: 5}\n")), HasSubstr("cannot unmarshal"));
  EXPECT_THAT(InitError("apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterConfiguration\n"),
              HasSubstr("your configuration file uses an old API spec: \"kubeadm.k8s.io/v1beta2\""));
  EXPECT_THAT(InitError(Cluster("") + "---\n" + Cluster("")), HasSubstr("is specified twice in YAML file"));
  EXPECT_THAT(InitError("kind: ClusterConfiguration\n"),
              HasSubstr("kind and apiVersion is mandatory information that must be specified"));
}

TEST(Config, NamesFieldsWithoutEffect) {
  std::vector<std::string> warnings;
  const auto config = Init(Cluster(R"(imageRepository: example.com
kubernetesVersion: v1.35.0
etcd: {local: {dataDir: /data, extraArgs: [{name: a, value: b}]}}
apiServer: {extraVolumes: [{name: v}]}
scheduler: {extraArgs: [{name: bind-address, value: 0.0.0.0}, {name: v, value: "3"}]}
)"),
                           warnings);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("etcd.local.dataDir has no effect"),
                                    HasSubstr("etcd.local.extraArgs has no effect"),
                                    HasSubstr("apiServer.extraVolumes has no effect"),
                                    HasSubstr("imageRepository has no effect"),
                                    HasSubstr("kubernetesVersion v1.35.0 has no effect"),
                                    HasSubstr("scheduler.extraArgs bind-address has no effect")));
  EXPECT_THAT(config->cluster.scheduler_args, ElementsAre(Argument{"v", "3"}));
}

TEST(Config, RefusesValuesInKubeadmsWords) {
  const std::pair<const char*, const char*> cases[] = {
      {"networking: {serviceSubnet: x}",
       "networking.serviceSubnet: Invalid value: \"x\": couldn't parse subnet"},
      {"networking: {serviceSubnet: 10.0.0.0/30}", "subnet is too small"},
      {"networking: {dnsDomain: A_b}", "networking.dnsDomain: Invalid value: \"A_b\""},
      {"certificatesDir: pki", "certificatesDir: Invalid value: \"pki\": path is not absolute"},
      {"encryptionAlgorithm: DSA",
       "algorithm type not supported. Must be one of [ECDSA-P256 ECDSA-P384 RSA-2048 RSA-3072 RSA-4096]"},
      {"controlPlaneEndpoint: a:0", "port 0 is not a valid TCP port in the range 1-65535"},
      {"apiServer: {certSANs: [a_b]}", "altname is not a valid IP address, DNS label"},
      {"apiServer: {extraArgs: [{name: a, value: 'b c'}]}", "apiServer.extraArgs: Invalid value: \"b c\""},
      {"etcd: {external: {endpoints: []}}", "at least one endpoint must be set"},
      {"etcd: {local: {}, external: {endpoints: [x]}}", "mutually exclusive"},
  };
  for (const auto& [fields, words] : cases) {
    EXPECT_THAT(InitError(Cluster(fields)), HasSubstr(words)) << fields;
  }
  const std::string init = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n";
  EXPECT_THAT(InitError(init + "localAPIEndpoint: {advertiseAddress: 127.0.0.1}"),
              HasSubstr("cannot use \"127.0.0.1\" as the bind address for the API Server"));
  EXPECT_THAT(InitError(init + "bootstrapTokens: [{token: x}]"), HasSubstr("bootstrapTokens[0].token"));
  EXPECT_THAT(InitError(init + "nodeRegistration: {criSocket: tcp://x}"),
              HasSubstr("nodeRegistration.criSocket"));
}

TEST(Config, JoiningNeedsADiscoveryThatCanBeTrusted) {
  const auto error = [](JoinConfiguration config) {
    std::vector<std::string> warnings;
    const auto done = Complete(config, kMachine, warnings);
    return done ? "" : done.error().message();
  };
  JoinConfiguration config;
  EXPECT_THAT(error(config), HasSubstr("discovery: Invalid value: \"\": bootstrapToken or file must be set"));
  config.token = "abcdef.0123456789abcdef";
  config.api_server_endpoint = "192.0.2.1:6443";
  EXPECT_THAT(error(config), HasSubstr("using token-based discovery without caCertHashes can be unsafe"));
  config.ca_hashes = {"sha256:00"};
  EXPECT_EQ(error(config), "");
  config.discovery_file = "/f";
  EXPECT_THAT(error(config), HasSubstr("bootstrapToken and file cannot both be set"));
}

TEST(Config, AFurtherControlPlaneHasAnAddressAndATaint) {
  const auto documents = SplitDocuments(R"(apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {file: {kubeConfigPath: /f}}
controlPlane: {localAPIEndpoint: {bindPort: 7443}, certificateKey: 00ff}
timeouts: {etcdAPICall: 30s}
)");
  ASSERT_TRUE(documents);
  std::vector<std::string> warnings;
  auto config = ReadJoin(*documents, warnings);
  ASSERT_TRUE(config) << config.error().message();
  ASSERT_TRUE(config->control_plane);
  EXPECT_EQ(config->control_plane->bind_port, 7443);
  EXPECT_EQ(config->timeouts.etcd_api_call, std::chrono::seconds(30));
  const auto short_key = Complete(*config, kMachine, warnings);
  ASSERT_FALSE(short_key);
  EXPECT_THAT(short_key.error().message(),
              AllOf(HasSubstr("controlPlane.certificateKey"), Not(HasSubstr("00ff"))));
  config->control_plane->certificate_key = std::string(64, 'a');
  const auto complete = Complete(*config, kMachine, warnings);
  ASSERT_TRUE(complete) << complete.error().message();
  EXPECT_EQ(config->control_plane->advertise_address, kMachine.default_address);
  EXPECT_THAT(*config->node.taints, ElementsAre(Taint{kControlPlaneRole, "", "NoSchedule"}));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Config, AsksWhichOfSeveralRuntimesIsMeant) {
  InitConfiguration config;
  std::vector<std::string> warnings;
  const auto done = Complete(config, {"n", "192.0.2.1", {"/a.sock", "/b.sock"}}, warnings);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("found multiple CRI endpoints on the host"));
}

TEST(Config, ReadsWhatItPrints) {
  std::vector<std::string> warnings;
  const auto init = Init(InitDefaults(), warnings);
  ASSERT_TRUE(init) << init.error().message();
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_EQ(init->bootstrap_tokens.at(0).token, "abcdef.0123456789abcdef");
  EXPECT_EQ(init->advertise_address, "1.2.3.4");
  const auto again = ReadCluster(ClusterDocument(init->cluster), warnings);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->pod_subnet, init->cluster.pod_subnet);
  const auto join = SplitDocuments(JoinDefaults()), reset = SplitDocuments(ResetDefaults());
  ASSERT_TRUE(join && reset);
  EXPECT_TRUE(ReadJoin(*join, warnings));
  EXPECT_TRUE(ReadReset(*reset, warnings));
  const auto upgrade = SplitDocuments(UpgradeDefaults());
  ASSERT_TRUE(upgrade && upgrade->upgrade);
  EXPECT_TRUE(ReadUpgrade(*upgrade, warnings));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Config, OfAnUpgradeHasASectionForEachVerb) {
  const auto documents = SplitDocuments(R"(apiVersion: kubeadm.k8s.io/v1beta4
kind: UpgradeConfiguration
apply:
  kubernetesVersion: v1.36.2
  allowRCUpgrades: true
  certificateRenewal: false
  etcdUpgrade: true
  forceUpgrade: true
  ignorePreflightErrors: [Packages]
  imagePullSerial: true
  patches: {directory: /patches}
  skipPhases: [addon/coredns]
node:
  dryRun: true
  patches: {directory: /others}
  skipPhases: [drain]
plan: {kubernetesVersion: v1.36.2, printConfig: true}
diff: {contextLines: 5}
timeouts: {kubernetesAPICall: 5s, upgradeManifests: 1m}
)");
  ASSERT_TRUE(documents && documents->upgrade);
  std::vector<std::string> warnings;
  const auto config = ReadUpgrade(*documents, warnings);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->apply.version, "v1.36.2");
  EXPECT_FALSE(config->apply.renew_certificates);
  EXPECT_TRUE(config->apply.force);
  EXPECT_THAT(config->apply.ignore_preflight_errors, ElementsAre("Packages"));
  EXPECT_EQ(config->apply.patches_dir, "/patches");
  EXPECT_THAT(config->apply.skip_phases, ElementsAre("addon/coredns"));
  EXPECT_TRUE(config->node.dry_run);
  EXPECT_TRUE(config->node.renew_certificates);
  EXPECT_EQ(config->node.patches_dir, "/others");
  EXPECT_EQ(config->plan.version, "v1.36.2");
  EXPECT_EQ(config->timeouts.api_call, std::chrono::seconds(5));
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("apply.etcdUpgrade has no effect"),
                          HasSubstr("apply.allowRCUpgrades has no effect"),
                          HasSubstr("apply.imagePullSerial has no effect"),
                          HasSubstr("plan.printConfig has no effect"), HasSubstr("diff has no effect")));
  const auto wrong = SplitDocuments(
      "apiVersion: kubeadm.k8s.io/v1beta4\nkind: UpgradeConfiguration\nnode: {forceUpgrade: true}\n");
  ASSERT_TRUE(wrong);
  EXPECT_THAT(ReadUpgrade(*wrong, warnings).error().message(),
              HasSubstr("strict decoding error: unknown field \"node.forceUpgrade\""));
}

TEST(Config, PatchesAreADirectory) {
  std::vector<std::string> warnings;
  const auto init = Init(
      "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\npatches: {directory: /p}\n", warnings);
  ASSERT_TRUE(init) << init.error().message();
  EXPECT_EQ(init->patches_dir, "/p");
  EXPECT_THAT(warnings, IsEmpty());
}

}  // namespace
}  // namespace keelson::ctl
