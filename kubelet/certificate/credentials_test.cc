#include "kubelet/certificate/credentials.h"

#include <gtest/gtest.h>

#include <thread>

#include "kubelet/testing/metric_value.h"
#include "lib/base/file.h"
#include "lib/client/testing/fake_api.h"
#include "lib/http/testing/fixture.h"

namespace keelson::kubelet {
namespace {

using crypto::TestPki;

// A kubelet's server whose certificate, key and clients' CA are files.
class ServerFilesTest : public ::testing::Test {
 protected:
  ServerFilesTest() {
    Copy(first_);
    settings_.config.address = "127.0.0.1";
    settings_.config.port = 0;
    settings_.config.tls_cert_file = own_.dir() + "/shown.pem";
    settings_.config.tls_private_key_file = own_.dir() + "/shown.key";
    settings_.config.client_ca_file = own_.dir() + "/clients.pem";
  }
  void Start() {
    server_.emplace(settings_, [](auto request, auto writer) {
      writer->Reply(200, {}, request->peer ? request->peer->common_name : "nobody");
    });
    server_->AddServices(group_, client::RestClient(std::make_shared<client::FakeApi>()),
                         [] { return std::vector<corev1::NodeAddress>(); });
    thread_ = std::jthread([this](std::stop_token stop) { EXPECT_TRUE(group_.Run(stop)); });
  }
  void Copy(const TestPki& pki) {
    auto copy = [this](const std::string& from, const std::string& name) {
      EXPECT_TRUE(WriteFileAtomic(own_.dir() + name, *ReadFile(from), 0600));
    };
    copy(pki.server_key_file(), "/shown.key");
    copy(pki.server_cert_file(), "/shown.pem");
    copy(pki.ca_file(), "/clients.pem");
  }
  // Who the server takes a client to be that trusts this CA alone and has its certificate from it; empty: the
  // two cannot talk.
  std::string TalkAs(const TestPki& pki, const std::string& name) {
    http::ClientOptions options;
    options.base_url = "https://127.0.0.1:" + std::to_string(server_->AwaitPort());
    options.tls.ca_pem = pki.ca_pem();
    const crypto::TestCertificate certificate = pki.Client(name, {});
    options.tls.certificate_pem = certificate.certificate_pem;
    options.tls.key_pem = certificate.key_pem;
    auto response = http::NewClient(options)->Do({}, http::kSoon);
    return response && response->status == 200 ? response->body : "";
  }

  TestPki own_, first_, second_;
  Settings settings_;
  std::optional<KubeletListener> server_;
  ServiceGroup group_;
  std::jthread thread_;
};

TEST_F(ServerFilesTest, NewContentsAreTakenUpAsTheyCome) {
  Start();
  EXPECT_EQ(TalkAs(first_, "ann"), "ann");
  EXPECT_EQ(TalkAs(second_, "bob"), "");
  Copy(second_);
  const auto late = std::chrono::steady_clock::now() + http::kSoon;
  std::string told;
  while (told != "bob" && std::chrono::steady_clock::now() < late) told = TalkAs(second_, "bob");
  EXPECT_EQ(told, "bob");
  EXPECT_EQ(TalkAs(first_, "ann"), "");
}

// How often files of a flag were looked at that had changed.
double Reloads(const std::string& flag, const std::string& status) {
  return MetricValue("keelson_file_reloads_total{flag=\"" + flag + "\",status=\"" + status + "\"}");
}

TEST_F(ServerFilesTest, ACertificateOfItsOwnIsThereBeforeItIsWatched) {
  settings_.config.tls_cert_file.clear();
  settings_.config.tls_private_key_file.clear();
  settings_.flags.cert_dir = own_.dir() + "/pki";
  settings_.flags.hostname_override = "node-1";
  const double failed = Reloads("tls-cert-file", "failure"), taken = Reloads("tls-cert-file", "success"),
               before = Reloads("client-ca-file", "success");
  Start();
  server_->AwaitPort();
  // A change that is taken up: all files have been looked at by then.
  ASSERT_TRUE(WriteFileAtomic(own_.dir() + "/clients.pem", *ReadFile(second_.ca_file()), 0600));
  const auto late = std::chrono::steady_clock::now() + http::kSoon;
  while (Reloads("client-ca-file", "success") == before && std::chrono::steady_clock::now() < late) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Reloads("client-ca-file", "success"), before + 1);
  EXPECT_EQ(Reloads("tls-cert-file", "failure"), failed);
  EXPECT_EQ(Reloads("tls-cert-file", "success"), taken);
}

}  // namespace
}  // namespace keelson::kubelet
