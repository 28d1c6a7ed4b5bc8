#include <gmock/gmock.h>

#include <cstdlib>
#include <sstream>

#include "ctl/config/complete.h"
#include "ctl/host/testing/memory_host.h"
#include "ctl/pki/kubeconfig.h"
#include "ctl/pki/renew.h"
#include "lib/base/file.h"
#include "lib/crypto/certificate_checks.h"

namespace keelson::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

InitConfiguration Config() {
  InitConfiguration config;
  config.cluster.encryption_algorithm = "ECDSA-P256";
  config.cluster.control_plane_endpoint = "api.example.com";  // so that etcd has members on several machines
  config.cluster.certificate_names = {"api.example.com", "198.51.100.7"};
  std::vector<std::string> warnings;
  EXPECT_TRUE(Complete(config, {"node-1", "192.0.2.10", {}}, warnings));
  return config;
}

class Pki : public testing::Test {
 protected:
  CertificateStore Store() { return {host_, "/etc/kubernetes/pki", "ECDSAP256", out_, clock_}; }
  Result<> EnsureAll() {
    const auto plans = PlanCertificates(config_);
    for (const CertificatePlan& plan : *plans) KEELSON_RETURN_IF_ERROR(EnsureCertificate(Store(), plan));
    KEELSON_RETURN_IF_ERROR(EnsureServiceAccountKey(Store()));
    const auto kubeconfigs = PlanKubeconfigs(config_);
    for (const KubeconfigPlan& plan : *kubeconfigs) {
      KEELSON_RETURN_IF_ERROR(EnsureKubeconfig(Store(), plan, "kubernetes", std::chrono::hours(24)));
    }
    return {};
  }
  std::string Text(const std::string& path) { return host_.Read(path).value_or(""); }
  std::string Certificate(const std::string& name) { return Text("/etc/kubernetes/pki/" + name + ".crt"); }

  const InitConfiguration config_ = Config();
  MemoryHost host_;
  std::ostringstream out_;
  Clock& clock_ = Clock::Real();
};

TEST_F(Pki, SaysWhetherTheClockOrTheAuthorityIsWrong) {
  ASSERT_TRUE(EnsureAll());
  const WallTime now = clock_.Now();
  const std::string ca = Certificate("ca");
  EXPECT_TRUE(CheckDates(ca, "CA", now));
  EXPECT_THAT(CheckDates(ca, "CA", now - std::chrono::hours(24)).error().message(),
              AllOf(HasSubstr("the CA is not valid before 20"), HasSubstr("correct the clock")));
  EXPECT_THAT(CheckDates(ca, "CA", now + std::chrono::hours(24 * 3651)).error().message(),
              HasSubstr("the CA has expired: it was valid until 20"));
  // Neither a second init nor a renewal goes on below such a CA.
  FakeClock late;
  late.Advance(now - late.Now() + std::chrono::hours(24 * 3651));
  const CertificateStore store{host_, "/etc/kubernetes/pki", "ECDSAP256", out_, late};
  EXPECT_THAT(EnsureCertificate(store, PlanCertificates(config_)->at(0)).error().message(),
              HasSubstr("the ca certificate authority has expired"));
  EXPECT_THAT(Renew(store, ManagedCertificates()[1], std::chrono::hours(1)).error().message(),
              HasSubstr("the certificate authority has expired"));
}

TEST_F(Pki, MakesKubeadmsCertificates) {
  ASSERT_TRUE(EnsureAll());
  const auto server = crypto::InspectCertificate(Certificate("apiserver"));
  ASSERT_TRUE(server);
  EXPECT_EQ(server->subject.common_name, "kube-apiserver");
  EXPECT_THAT(server->subject.dns_names,
              ElementsAre("node-1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
                          "kubernetes.default.svc.cluster.local", "api.example.com"));
  EXPECT_THAT(server->subject.ip_addresses, ElementsAre("10.96.0.1", "192.0.2.10", "198.51.100.7"));
  const auto life = server->not_after - clock_.Now();
  EXPECT_LT(life, std::chrono::hours(365 * 24 + 1));
  EXPECT_GT(life, std::chrono::hours(364 * 24));
  const auto ca = crypto::InspectCertificate(Certificate("ca"));
  ASSERT_TRUE(ca);
  EXPECT_GT(ca->not_after - clock_.Now(), std::chrono::hours(3649 * 24));
  const auto admin = ParseKubeconfig(Text("/etc/kubernetes/admin.conf"));
  ASSERT_TRUE(admin);
  const auto user = crypto::InspectCertificate(admin->certificate_pem);
  ASSERT_TRUE(user);
  EXPECT_EQ(user->subject.common_name, "kubernetes-admin");
  EXPECT_THAT(user->subject.organizations, ElementsAre("kubeadm:cluster-admins"));
  EXPECT_EQ(admin->server, "https://api.example.com:6443");
  EXPECT_EQ(admin->ca_pem, Certificate("ca"));
}

TEST_F(Pki, EtcdHasItsOwnAuthority) {
  ASSERT_TRUE(EnsureAll());
  const auto peer = crypto::InspectCertificate(Certificate("etcd/peer"));
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->subject.common_name, "node-1");
  EXPECT_THAT(peer->subject.dns_names, ElementsAre("node-1", "localhost"));
  EXPECT_THAT(peer->subject.ip_addresses, ElementsAre("192.0.2.10", "127.0.0.1", "::1"));
  for (const char* name : {"etcd/server", "etcd/healthcheck-client", "apiserver-etcd-client"}) {
    EXPECT_TRUE(crypto::IsSignedBy(Certificate(name), Certificate("etcd/ca"))) << name;
  }
  EXPECT_EQ(FindExpirations(Store())->authorities[1].name, "etcd-ca");

  // Without an endpoint that is the same for all machines there is one, whose etcd concerns no other machine.
  InitConfiguration single = config_;
  single.cluster.control_plane_endpoint = "";
  const auto plans = PlanCertificates(single);
  for (const CertificatePlan& plan : *plans) EXPECT_THAT(plan.name, Not(HasSubstr("etcd")));
  host_.files.clear();
  const auto found = FindExpirations(Store());
  for (const Expiration& one : found->certificates) EXPECT_THAT(one.name, Not(HasSubstr("etcd")));
}

TEST_F(Pki, KeysAreRootsAndTheControlPlanesGroups) {
  ASSERT_TRUE(EnsureAll());
  for (const auto& [path, file] : host_.files) {
    if (path.ends_with(".key")) {
      EXPECT_EQ(file.mode, 0600u) << path;
      EXPECT_EQ(file.group, "kube-controlplane") << path;
    } else if (path.ends_with(".conf")) {
      EXPECT_EQ(file.mode, 0600u) << path;
      EXPECT_EQ(file.group, "") << path;
    } else {
      EXPECT_EQ(file.mode, 0644u) << path;
    }
  }
}

TEST_F(Pki, OpensslVerifiesThem) {
  char name[] = "/tmp/keelson-pki-XXXXXX";
  const std::string root = ::mkdtemp(name);
  const auto host = NewHost(root);
  if (!host->HasProgram("openssl")) GTEST_SKIP() << "openssl is not installed";
  const auto plans = PlanCertificates(config_);
  for (const char* algorithm : {"RSA2048", "ECDSAP384"}) {
    const CertificateStore store{*host, "/pki", algorithm, out_};
    for (const CertificatePlan& plan : *plans) {
      ASSERT_TRUE(EnsureCertificate(store, plan));
    }
    const std::string pki = root + "/pki/";
    for (const auto& [certificate, ca, purpose] :
         {std::tuple("apiserver", "ca", "sslserver"),
          std::tuple("apiserver-kubelet-client", "ca", "sslclient"),
          std::tuple("front-proxy-client", "front-proxy-ca", "sslclient")}) {
      const auto verified = host->Ask({"openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile",
                                       pki + ca + ".crt", pki + certificate + ".crt"});
      EXPECT_TRUE(verified) << algorithm << ": " << verified.error().message();
      EXPECT_FALSE(host->Ask({"openssl", "verify", "-CAfile",
                              pki + (std::string(ca) == "ca" ? "front-proxy-ca" : "ca") + ".crt",
                              pki + certificate + ".crt"}));
    }
    EXPECT_THAT(*host->Ask({"openssl", "x509", "-noout", "-text", "-in", pki + "ca.crt"}),
                AllOf(HasSubstr("CA:TRUE"), HasSubstr("DNS:kubernetes"), HasSubstr("Certificate Sign")));
    ASSERT_TRUE(host->Remove("/pki"));
  }
  ASSERT_TRUE(RemoveTree(root));
}

TEST_F(Pki, KeepsWhatIsThere) {
  ASSERT_TRUE(EnsureAll());
  const auto before = host_.files;
  out_.str("");
  ASSERT_TRUE(EnsureAll());
  for (const auto& [path, file] : before) EXPECT_EQ(host_.files[path].text, file.text) << path;
  EXPECT_THAT(out_.str(), HasSubstr("[certs] Using existing ca certificate authority\n"));
  EXPECT_THAT(out_.str(), HasSubstr("[certs] Using existing apiserver certificate and key on disk\n"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("Generating")));
}

TEST_F(Pki, RefusesFilesThatDoNotBelongTogether) {
  ASSERT_TRUE(EnsureAll());
  const auto good = host_.files;
  const auto error = [&] {
    const auto done = EnsureAll();
    host_.files = good;
    return done ? "" : done.error().message();
  };
  host_.files["/etc/kubernetes/pki/ca.crt"].text = Certificate("apiserver");
  EXPECT_EQ(error(), "ca certificate is not a certificate authority");
  host_.files["/etc/kubernetes/pki/apiserver.crt"].text = Certificate("front-proxy-client");
  EXPECT_EQ(error(), "certificate apiserver is not signed by corresponding CA");
  host_.files["/etc/kubernetes/pki/apiserver.key"].text = Text("/etc/kubernetes/pki/ca.key");
  EXPECT_EQ(error(), "certificate apiserver and its key do not belong together");
  host_.files["/etc/kubernetes/pki/ca.key"].text = Text("/etc/kubernetes/pki/apiserver.key");
  EXPECT_EQ(error(), "ca: CA certificate and key do not belong together");
  Kubeconfig other = *ParseKubeconfig(Text("/etc/kubernetes/admin.conf"));
  other.server = "https://elsewhere:6443";
  host_.files["/etc/kubernetes/admin.conf"].text = KubeconfigText(other);
  EXPECT_EQ(
      error(),
      "a kubeconfig file \"/etc/kubernetes/admin.conf\" exists already but has got the wrong API Server URL");
  host_.files["/etc/kubernetes/admin.conf"].text = "no kubeconfig";
  EXPECT_THAT(error(), HasSubstr("failed to load kubeconfig file /etc/kubernetes/admin.conf"));
}

TEST_F(Pki, AKillAtAnyMomentLeavesWhatTheNextRunGoesOnWith) {
  ASSERT_TRUE(EnsureAll());
  host_ = {};
  int effects = 0;
  for (bool complete = false; !complete; ++effects) {
    MemoryHost fresh;
    std::swap(host_.files, fresh.files);
    host_.effects_left = effects;
    complete = EnsureAll().has_value();
    const auto left = host_.files;
    host_.effects_left = -1;
    ASSERT_TRUE(EnsureAll()) << "after " << effects << " effects";
    for (const auto& [path, file] : left) EXPECT_EQ(host_.files[path].text, file.text) << path;
    for (const ManagedCertificate& managed : ManagedCertificates()) {
      if (!managed.kubeconfig.empty()) continue;
      const std::string file = managed.file.empty() ? managed.name : managed.file;
      const std::string certificate = Certificate(file);
      EXPECT_TRUE(crypto::IsSignedBy(certificate, Certificate(managed.authority))) << managed.name;
      EXPECT_TRUE(crypto::BelongTogether(certificate, Text("/etc/kubernetes/pki/" + file + ".key")));
    }
    host_.files.clear();
    host_.directories.clear();
  }
  EXPECT_GT(effects, 20);
}

TEST_F(Pki, AnExternalCaSignsElsewhere) {
  ASSERT_TRUE(EnsureAll());
  host_.files.erase("/etc/kubernetes/pki/ca.key");
  ASSERT_TRUE(EnsureAll()) << "everything is there";
  EXPECT_THAT(out_.str(), HasSubstr("Using existing ca keyless certificate authority"));
  host_.files.erase("/etc/kubernetes/pki/apiserver.crt");
  EXPECT_THAT(EnsureAll().error().message(), HasSubstr("nodectl certs generate-csr"));
  const auto found = FindExpirations(Store());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_TRUE(found->authorities[0].external);
  EXPECT_FALSE(found->authorities[1].external);
  const std::string table = ExpirationTable(*found, clock_.Now());
  EXPECT_THAT(table, HasSubstr("!MISSING! apiserver\n"));
  EXPECT_THAT(table, HasSubstr("364d            ca                      yes\n"));
  for (const ManagedCertificate& managed : ManagedCertificates()) {
    if (managed.name != "apiserver-kubelet-client") continue;
    EXPECT_THAT(Renew(Store(), managed, std::chrono::hours(1)).error().message(),
                HasSubstr("Detected external ca"));
  }
}

TEST_F(Pki, RenewalKeepsKeysAndNames) {
  ASSERT_TRUE(EnsureAll());
  const auto before = host_.files;
  for (const ManagedCertificate& managed : ManagedCertificates()) {
    const auto renewed = Renew(Store(), managed, std::chrono::hours(365 * 24 * 2));
    ASSERT_TRUE(renewed) << managed.name << ": " << renewed.error().message();
  }
  const auto old_server = crypto::InspectCertificate(before.at("/etc/kubernetes/pki/apiserver.crt").text);
  const auto server = crypto::InspectCertificate(Certificate("apiserver"));
  EXPECT_EQ(server->subject, old_server->subject);
  EXPECT_GT(server->not_after, old_server->not_after + std::chrono::hours(300 * 24));
  EXPECT_TRUE(
      crypto::BelongTogether(Certificate("apiserver"), before.at("/etc/kubernetes/pki/apiserver.key").text));
  const auto admin = ParseKubeconfig(Text("/etc/kubernetes/admin.conf"));
  EXPECT_TRUE(crypto::BelongTogether(admin->certificate_pem, admin->key_pem));
  ASSERT_TRUE(EnsureAll()) << "init accepts what was renewed";
}

TEST_F(Pki, MakesRequestsForOtherCas) {
  const auto done = MakeRequests(Store(), *PlanCertificates(config_), *PlanKubeconfigs(config_),
                                 "/etc/kubernetes", "kubernetes");
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_THAT(Text("/etc/kubernetes/pki/apiserver.csr"), HasSubstr("BEGIN CERTIFICATE REQUEST"));
  EXPECT_FALSE(host_.Exists("/etc/kubernetes/pki/ca.key"));
  EXPECT_FALSE(ParseKubeconfig(Text("/etc/kubernetes/admin.conf"))->key_pem.empty());
  EXPECT_TRUE(MakeRequests(Store(), *PlanCertificates(config_), {}, "/etc/kubernetes", "kubernetes")
                  .error()
                  .Is(Code::kAlreadyExists));
}

TEST(Kubeconfig, GoesThroughItsText) {
  Kubeconfig config;
  config.server = "https://[fd00::1]:6443";
  config.ca_pem = "CA";
  config.user = "system:node:n";
  config.certificate_file = "/var/lib/kubelet/pki/kubelet-client-current.pem";
  const auto read = ParseKubeconfig(KubeconfigText(config));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->server, config.server);
  EXPECT_EQ(read->ca_pem, "CA");
  EXPECT_EQ(read->user, "system:node:n");
  EXPECT_EQ(read->certificate_file, config.certificate_file);
  EXPECT_FALSE(ParseKubeconfig("apiVersion: v1\n"));
  EXPECT_FALSE(ParseKubeconfig("[]"));
}

TEST(Kubeconfig, OfClusterInfoHasNoUser) {
  Kubeconfig config;
  config.server = "https://192.0.2.1:6443";
  config.ca_pem = "CA";
  EXPECT_EQ(KubeconfigText(config),
            "apiVersion: v1\nclusters:\n  - cluster:\n      certificate-authority-data: Q0E=\n"
            "      server: https://192.0.2.1:6443\n    name: \"\"\ncontexts: null\ncurrent-context: \"\"\n"
            "kind: Config\nusers: null\n");
  const auto read = ParseKubeconfig(KubeconfigText(config));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->server, config.server);
  EXPECT_EQ(read->user, "");
}

}  // namespace
}  // namespace keelson::ctl
