// What the verbs of clusters print for programs: with -o json and -o yaml standard output is one document, whatever the end; and what
// they leave alone with --dry-run. Verbs that need a cluster have this in the other tests of this directory.
#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "lib/base/file.h"
#include "tests/nodectl/machine.h"

namespace keelson::ctl {
namespace {

using apiserver::Output;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class Reports : public testing::Test {
 protected:
  Output Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--rootfs", machine_.Path("")});
    return machine_.Nodectl(std::move(arguments));
  }
  // Standard output as one JSON document of that kind.
  static boost::json::object Document(const Output& output, const std::string& kind) {
    boost::system::error_code failed;
    const boost::json::value read = boost::json::parse(output.out, failed);
    EXPECT_FALSE(failed) << output.out << output.err;
    if (failed || !read.is_object()) return {};
    EXPECT_EQ(read.at("kind").as_string(), kind);
    EXPECT_EQ(read.at("apiVersion").as_string(), "output.keelson.dev/v1alpha1");
    return read.as_object();
  }
  // A configuration with keys that are made quickly.
  std::string Configuration() const {
    std::string file = machine_.Path("/cluster.yaml");
    EXPECT_TRUE(
        WriteFile(file,
                  "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nencryptionAlgorithm: "
                  "ECDSA-P256\n"));
    return file;
  }
  void MakeCertificates() const {
    const Output made = Run({"init", "phase", "certs", "--config", Configuration(), "--node-name=one",
                             "--cri-socket=unix:///run/none.sock"});
    ASSERT_EQ(made.code, 0) << made.err;
  }

  Machine machine_{"one"};
};

TEST_F(Reports, AFailureIsADocumentToo) {
  const std::string missing = machine_.Path("/none.yaml");
  for (const auto& [verb, kind] : {std::pair("init", "InitReport"), std::pair("join", "JoinReport"),
                                   std::pair("reset", "ResetReport")}) {
    const Output output = Run({"-o", "json", verb, "--config", missing});
    EXPECT_EQ(output.code, 1) << verb;
    EXPECT_THAT(std::string(Document(output, kind).at("error").as_string()), HasSubstr("none.yaml"));
    EXPECT_THAT(output.err, HasSubstr("nodectl: ")) << "people who look at standard error see it too";
  }
  const Output apply = Run({"-o", "json", "upgrade", "apply", "--yes", "--config", missing});
  EXPECT_EQ(apply.code, 1);
  EXPECT_TRUE(Document(apply, "UpgradeReport").contains("error"));
}

TEST_F(Reports, Reset) {
  for (const char* unit : {"kubelet", "kube-proxy", "kube-cni", "kube-controlplane"}) machine_.AddUnit(unit);
  const std::string manifest = "/etc/kubernetes/manifests/web.yaml",
                    volume = "/var/lib/keelson-csi-local/volumes/a";
  for (const std::string& file : {manifest, volume}) {
    ASSERT_TRUE(MakeDirs(machine_.Path(file.substr(0, file.rfind('/')))));
    ASSERT_TRUE(WriteFile(machine_.Path(file), "x"));
  }
  const std::vector<std::string> reset = {"-o", "json", "reset", "--ignore-preflight-errors=all"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), reset.begin(), reset.end());
    return Run(more);
  };

  const Output asks = with({});
  EXPECT_EQ(asks.code, 1);
  EXPECT_THAT(std::string(Document(asks, "ResetReport").at("error").as_string()), HasSubstr("give --force"));

  const Output dry = with({"--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_TRUE(Document(dry, "ResetReport").at("dryRun").as_bool());
  EXPECT_THAT(dry.err, HasSubstr("[dryrun] Would remove \"" + manifest));
  EXPECT_TRUE(machine_.Has(manifest));
  EXPECT_THAT(machine_.SystemctlLog(), Not(HasSubstr("stop kubelet")));

  const Output alone = with({"--force", "phase", "remove-etcd-member"});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(Document(alone, "ResetReport").at("phases").as_array().size(), 1u);
  EXPECT_TRUE(machine_.Has(manifest)) << "one phase alone does the others' work";

  const Output done = with({"--force", "--progress=json"});
  EXPECT_EQ(done.code, 0) << done.err;
  const boost::json::object document = Document(done, "ResetReport");
  EXPECT_FALSE(document.at("dryRun").as_bool());
  EXPECT_EQ(document.at("volumesDir").as_string(), "/var/lib/keelson-csi-local");
  EXPECT_EQ(document.at("phases").as_array().size(), 3u);
  EXPECT_THAT(done.err, StartsWith("{\"time\":"));
  EXPECT_FALSE(machine_.Has(manifest));
  EXPECT_TRUE(machine_.Has(volume));
}

TEST_F(Reports, Certificates) {
  MakeCertificates();
  const std::string file = "/etc/kubernetes/pki/apiserver.crt", before = machine_.Text(file);
  const Output dry = Run({"-o", "json", "certs", "renew", "all", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.err, HasSubstr("[dryrun] Would write file \"" + file));
  EXPECT_EQ(machine_.Text(file), before);
  const boost::json::object document = Document(dry, "CertificateRenewalReport");
  EXPECT_TRUE(document.at("dryRun").as_bool());
  EXPECT_EQ(document.at("renewed").as_array().at(0).as_string(), "apiserver");
  EXPECT_EQ(document.at("skipped").as_array().at(0).at("name").as_string(), "admin.conf");
  const Output one = Run({"-o", "json", "certs", "renew", "front-proxy-client"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(Document(one, "CertificateRenewalReport").at("renewed").as_array().size(), 1u);

  const Output key = machine_.Nodectl({"-o", "json", "certs", "certificate-key"});
  EXPECT_EQ(Document(key, "CertificateKeyReport").at("certificateKey").as_string().size(), 64u);
  EXPECT_EQ(machine_.Nodectl({"certs", "certificate-key"}).out.size(), 65u);
}

TEST_F(Reports, CertificateRequests) {
  const std::vector<std::string> command = {
      "-o",       "json",         "certs", "generate-csr", "--cert-dir=/pki", "--kubeconfig-dir=/conf",
      "--config", Configuration()};
  std::vector<std::string> dry_run = command;
  dry_run.emplace_back("--dry-run");
  const Output dry = Run(dry_run);
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_FALSE(machine_.Has("/pki"));
  const Output made = Run(command);
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(Document(made, "CertificateRequestsReport").at("certificatesDir").as_string(), "/pki");
  EXPECT_TRUE(machine_.Has("/pki/apiserver.csr"));
  EXPECT_TRUE(machine_.Has("/conf/admin.conf.csr"));
}

TEST_F(Reports, TokensAndConfigurations) {
  const Output token = machine_.Nodectl({"-o", "json", "token", "generate"});
  EXPECT_EQ(Document(token, "TokenReport").at("token").as_string().size(), 23u);
  // The server is not asked.
  const Output dry =
      machine_.Nodectl({"-o", "json", "token", "create", "abcdef.0123456789abcdef", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_EQ(Document(dry, "TokenReport").at("token").as_string(), "abcdef.0123456789abcdef");
  EXPECT_THAT(dry.err, HasSubstr("[dryrun] Would create the Secret kube-system/bootstrap-token-abcdef\n"));
  const Output gone = machine_.Nodectl({"token", "delete", "abcdef", "--dry-run"});
  EXPECT_EQ(gone.out, "[dryrun] Would delete the Secret kube-system/bootstrap-token-abcdef\n") << gone.err;

  const Output defaults = machine_.Nodectl({"config", "print", "reset-defaults", "-o", "json"});
  EXPECT_EQ(boost::json::parse(defaults.out).at("kind").as_string(), "ResetConfiguration");
  const std::string file = machine_.Path("/config.yaml");
  ASSERT_TRUE(WriteFile(file, machine_.Nodectl({"config", "print", "join-defaults"}).out));
  const Output valid = machine_.Nodectl({"-o", "json", "config", "validate", "--config", file});
  EXPECT_EQ(valid.code, 0) << valid.err;
  EXPECT_TRUE(Document(valid, "ConfigReport").at("valid").as_bool());
  ASSERT_TRUE(WriteFile(file, "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ResetConfiguration\nforse: true\n"));
  const Output wrong = machine_.Nodectl({"-o", "json", "config", "validate", "--config", file});
  EXPECT_EQ(wrong.code, 1);
  const boost::json::object document = Document(wrong, "ConfigReport");
  EXPECT_FALSE(document.at("valid").as_bool());
  EXPECT_THAT(std::string(document.at("error").as_string()), HasSubstr("forse"));
}

TEST_F(Reports, YamlHasTheSameFields) {
  const Output output = machine_.Nodectl({"-o", "yaml", "certs", "certificate-key"});
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.out, HasSubstr("kind: CertificateKeyReport\n"));
  EXPECT_THAT(output.out, HasSubstr("certificateKey: "));
  EXPECT_THAT(output.err, IsEmpty());
}

}  // namespace
}  // namespace keelson::ctl
