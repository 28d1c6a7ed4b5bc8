#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <future>
#include <thread>

#include "kubelet/certificate/bootstrap.h"
#include "kubelet/certificate/certificate_manager.h"
#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/base/file.h"
#include "lib/client/testing/fake_api.h"
#include "lib/crypto/certificate_authority.h"

namespace keelson::kubelet {
namespace {

using Csr = api::certificates::v1::CertificateSigningRequest;
using std::chrono::hours;
using std::chrono::seconds;

// The controllers of a cluster: decide every request as the test says.
class Signer {
 public:
  using Decide = std::function<void(Csr& request)>;
  Signer(std::shared_ptr<client::FakeApi> api, Decide decide)
      : thread_([api, decide](std::stop_token stop) {
          const client::RestClient client(api);
          auto stream = client.Watch(api::ResourceOf<Csr>(), "", {});
          while (stream) {
            auto event = (*stream)->Next(stop);
            if (!event) return;
            Csr request;
            if (event->type != client::WatchEvent::Type::kAdded) continue;
            if (!client::RestClient::DecodeInto(event->raw, request)) continue;
            decide(request);
            (void)client.UpdateStatus(request);
          }
        }) {}

 private:
  std::jthread thread_;
};

class CertificateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kubelet_certificate.XXXXXX";
    dir_ = mkdtemp(name);
    ca_key_ = *crypto::NewPrivateKey();
    ca_ = *crypto::NewSelfSigned(ca_key_, {"ca", {}, {}, {}}, hours(24 * 365));
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }

  std::string Sign(const std::string& request, seconds begin, seconds end) {
    const WallTime now = Clock::Real().Now();
    return *crypto::CertificateAuthority::FromPem(ca_, ca_key_)
                ->Sign(request, {now + begin, now + end, {"digital signature", "client auth"}});
  }
  void Issue(Csr& request) {
    request.mutable_status()->set_certificate(Sign(request.spec().request(), seconds(-60), hours(24)));
  }
  static void Deny(Csr& request) {
    auto& condition = *request.mutable_status()->add_conditions();
    condition.set_type("Denied");
    condition.set_status("True");
    condition.set_reason("No");
    condition.set_message("not today");
  }
  // A certificate in the store.
  void Have(const CertificateStore& store, const crypto::CertificateSubject& subject, seconds begin,
            seconds end) {
    std::string key = *crypto::NewPrivateKey();
    std::string certificate = Sign(*crypto::NewCertificateRequest(key, subject), begin, end);
    ASSERT_TRUE(store.Store(certificate, key, Clock::Real().Now() - hours(1)));
  }
  std::string WriteBootstrapKubeconfig() {
    std::string path = dir_ + "/bootstrap";
    EXPECT_TRUE(WriteFile(path,
                          "clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443'}}]\n"
                          "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
                          "users: [{name: u, user: {token: abcdef.0123456789abcdef}}]\n"));
    return path;
  }
  BootstrapOptions Options() {
    return {dir_ + "/etc/kubelet.conf", WriteBootstrapKubeconfig(), dir_ + "/pki", "n1"};
  }
  Result<> Join(std::string* token = nullptr) {
    return Bootstrap(Options(),
                     [&](const client::RestConfig& config) -> Result<std::shared_ptr<client::Transport>> {
                       if (token) *token = config.token;
                       return std::shared_ptr<client::Transport>(api_);
                     },
                     {});
  }

  std::string dir_, ca_, ca_key_;
  std::shared_ptr<client::FakeApi> api_ = std::make_shared<client::FakeApi>();
};

TEST_F(CertificateTest, StoreKeepsWholePairs) {
  const CertificateStore store(dir_ + "/pki", "kubelet-client");
  EXPECT_TRUE(store.Load().error().Is(Code::kNotFound));
  Have(store, {"system:node:n1", {"system:nodes"}, {}, {}}, seconds(-10), hours(1));
  auto info = store.Load();
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->subject.common_name, "system:node:n1");
  struct stat link {
  }, file{};
  ASSERT_EQ(lstat(store.path().c_str(), &link), 0);
  EXPECT_TRUE(S_ISLNK(link.st_mode));
  ASSERT_EQ(stat(store.path().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  Have(store, {"system:node:n2", {"system:nodes"}, {}, {}}, seconds(-10), hours(1));
  EXPECT_EQ(store.Load()->subject.common_name, "system:node:n2");
  ASSERT_TRUE(store.Store(ca_, *crypto::NewPrivateKey(), Clock::Real().Now()));
  EXPECT_TRUE(store.Load().error().Is(Code::kInvalid));
}

TEST(CertificateRotation, BetweenSeventyAndNinetyPercent) {
  crypto::CertificateInfo info;
  info.not_before = WallTime(hours(1000));
  info.not_after = info.not_before + hours(100);
  EXPECT_EQ(RotationTime(info, 0), info.not_before + hours(70));
  EXPECT_EQ(RotationTime(info, 1), info.not_before + hours(90));
}

TEST_F(CertificateTest, SelfSignedIsMadeOnce) {
  ASSERT_TRUE(EnsureSelfSigned(dir_ + "/pki", "n1", Clock::Real().Now()));
  std::string first = *ReadFile(dir_ + "/pki/kubelet.crt");
  EXPECT_EQ(crypto::InspectCertificate(first)->subject.dns_names, std::vector<std::string>{"n1"});
  ASSERT_TRUE(EnsureSelfSigned(dir_ + "/pki", "n1", Clock::Real().Now()));
  EXPECT_EQ(*ReadFile(dir_ + "/pki/kubelet.crt"), first);
  ASSERT_TRUE(WriteFile(dir_ + "/pki/kubelet.key", "broken"));
  ASSERT_TRUE(EnsureSelfSigned(dir_ + "/pki", "10.0.0.1", Clock::Real().Now()));
  EXPECT_EQ(crypto::InspectCertificate(*ReadFile(dir_ + "/pki/kubelet.crt"))->subject.ip_addresses,
            std::vector<std::string>{"10.0.0.1"});
}

TEST_F(CertificateTest, BootstrapWritesAKubeconfig) {
  std::vector<std::string> asked;
  Signer signer(api_, [&](Csr& request) {
    asked.push_back(request.spec().signer_name());
    Issue(request);
  });
  std::string token;
  auto joined = Join(&token);
  ASSERT_TRUE(joined) << joined.error().message();
  EXPECT_EQ(token, "abcdef.0123456789abcdef");
  EXPECT_EQ(asked, std::vector<std::string>{"kubernetes.io/kube-apiserver-client-kubelet"});
  auto config = client::LoadKubeconfig(dir_ + "/etc/kubelet.conf");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->server, "https://10.0.0.1:6443");
  EXPECT_EQ(config->certificate_file, dir_ + "/pki/kubelet-client-current.pem");
  EXPECT_EQ(config->key_file, config->certificate_file);
  EXPECT_TRUE(config->token.empty());
  EXPECT_EQ(crypto::InspectCertificate(config->certificate_pem)->subject.common_name, "system:node:n1");
  EXPECT_FALSE(PathExists(dir_ + "/pki/kubelet-client.key.tmp"));
  api_->ForgetRequests();
  ASSERT_TRUE(Join());  // nothing left to do
  EXPECT_TRUE(api_->Requests().empty());
}

TEST_F(CertificateTest, ARestartWaitsForTheSameRequest) {
  std::stop_source stop;
  auto connect = [&](const client::RestConfig&) -> Result<std::shared_ptr<client::Transport>> {
    return std::shared_ptr<client::Transport>(api_);
  };
  auto first =
      std::async(std::launch::async, [&] { return Bootstrap(Options(), connect, stop.get_token()); });
  api_->AwaitIdle(1);
  stop.request_stop();
  EXPECT_FALSE(first.get());
  Signer signer(api_, [&](Csr& request) { Issue(request); });
  ASSERT_TRUE(Join());
  EXPECT_EQ(client::RestClient(api_).List<Csr>()->size(), 1u);
}

TEST_F(CertificateTest, BootstrapTellsOfARefusal) {
  Signer signer(api_, Deny);
  auto joined = Join();
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().message().find("is denied, reason: No, message: not today"), std::string::npos);
  EXPECT_FALSE(PathExists(dir_ + "/etc/kubelet.conf"));
}

TEST_F(CertificateTest, AnExpiredKubeconfigIsNotUsed) {
  const CertificateStore store(dir_, "client");
  const std::string path = dir_ + "/kubeconfig";
  ASSERT_TRUE(WriteFile(path,
                        "clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443'}}]\n"
                        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
                        "users: [{name: u, user: {client-certificate: client-current.pem, "
                        "client-key: client-current.pem}}]\n"));
  EXPECT_FALSE(HasUsableCredentials(path, Clock::Real().Now()));
  Have(store, {"n", {}, {}, {}}, hours(-2), hours(1));
  EXPECT_TRUE(HasUsableCredentials(path, Clock::Real().Now()));
  EXPECT_FALSE(HasUsableCredentials(path, Clock::Real().Now() + hours(2)));
}

class ManagerTest : public CertificateTest {
 protected:
  CertificateStore Store() const { return CertificateStore(dir_ + "/pki", "kubelet"); }
  // Runs a manager until it has stored a certificate, or has ended.
  Result<> RunOnce(CertificateManager::Purpose purpose, CertificateManager::GetTemplate wanted,
                   Clock& clock = Clock::Real()) {
    std::stop_source stop;
    CertificateManager manager(
        client::RestClient(api_), Store(), purpose, std::move(wanted), [&] { stop.request_stop(); }, clock);
    return manager.Run(stop.get_token());
  }
};

TEST_F(ManagerTest, RenewsWhatIsNearItsEnd) {
  Have(Store(), {"system:node:n1", {"system:nodes"}, {}, {}}, hours(-95), hours(5));
  Signer signer(api_, [&](Csr& request) { Issue(request); });
  ASSERT_TRUE(RunOnce(CertificateManager::Purpose::kClient, [] { return ClientCertificateTemplate("n1"); }));
  EXPECT_GT(Store().Load()->not_after, Clock::Real().Now() + hours(20));
  EXPECT_NE(metrics::Print().find("kubelet_certificate_manager_client_ttl_seconds 8"), std::string::npos);
}

TEST_F(ManagerTest, AsksAgainWhenAddressesChange) {
  Have(Store(), ServingCertificateTemplate("n1", {"n1"}, {"10.0.0.1"}).subject, seconds(-60), hours(24));
  Signer signer(api_, [&](Csr& request) { Issue(request); });
  ASSERT_TRUE(RunOnce(CertificateManager::Purpose::kServing, [] {
    return ServingCertificateTemplate("n1", {"n1"}, {"10.0.0.1", "fd00::1"});
  }));
  EXPECT_EQ(Store().Load()->subject.ip_addresses, (std::vector<std::string>{"10.0.0.1", "fd00::1"}));
}

TEST_F(ManagerTest, AsksOnAfterARefusal) {
  FakeClock clock;
  std::atomic<int> asked = 0;
  Signer signer(api_, [&](Csr& request) { ++asked == 1 ? Deny(request) : Issue(request); });
  std::jthread pass([&] {
    clock.AwaitWaiters(1);
    EXPECT_EQ(asked, 1);
    clock.Advance(seconds(2));
  });
  ASSERT_TRUE(RunOnce(
      CertificateManager::Purpose::kClient, [] { return ClientCertificateTemplate("n1"); }, clock));
  EXPECT_EQ(asked, 2);
}

TEST_F(ManagerTest, EndsWhenNothingElseHelps) {
  Have(Store(), {"system:node:n1", {"system:nodes"}, {}, {}}, hours(-2), hours(-1));
  api_->SetInterceptor([](const client::ApiRequest&) -> std::optional<Result<client::ApiResponse>> {
    return client::FakeApi::Refuse(Error(Code::kUnauthenticated, "Unauthorized"));
  });
  auto ended = RunOnce(CertificateManager::Purpose::kClient, [] { return ClientCertificateTemplate("n1"); });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message(),
            "The currently active client certificate has expired and the server is responsive, exiting.");
}

}  // namespace
}  // namespace keelson::kubelet
