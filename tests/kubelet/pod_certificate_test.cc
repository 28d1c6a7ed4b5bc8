// A pod certificate, requested by a kubelet with node permissions and issued by a signer.
#include <chrono>
#include <thread>

#include "kubelet/certificate/pod_certificate_request.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/client/transport.h"
#include "lib/crypto/certificate_authority.h"
#include "lib/crypto/certificates.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::kubelet {
namespace {

using Request = api::certificates::v1beta1::PodCertificateRequest;
using Outcome = RequestState::Outcome;
using std::chrono::hours;

class PodCertificateTest : public apiserver::ClusterTest {
 protected:
  static void SetUpTestSuite() {
    Start(
        {"--feature-gates=PodCertificateRequest=true", "--runtime-config=certificates.k8s.io/v1beta1=true"});
  }
  client::RestClient ClientOf(const std::string& user, const std::vector<std::string>& groups) {
    client::RestConfig config;
    config.server = cluster_->url();
    config.ca_pem = cluster_->pki().ca_pem();
    const auto certificate = cluster_->pki().Client(user, groups);
    config.certificate_pem = certificate.certificate_pem;
    config.key_pem = certificate.key_pem;
    return client::RestClient(*client::NewHttpTransport(config));
  }

  // Repeats a node's request until the authorizer and admission have seen the objects that it depends on.
  template <typename Request>
  static auto OnceKnown(const Request& request) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      auto answer = request();
      const bool early =
          !answer && (answer.error().Is(Code::kForbidden) || answer.error().Is(Code::kInternal));
      if (!early || std::chrono::steady_clock::now() > end) return answer;
      std::this_thread::yield();
    }
  }

  // Issues a certificate for the request's key, as a signer.
  static std::string Sign(const std::string& key_pem, WallTime now) {
    const std::string authority_key = *crypto::NewPrivateKey();
    const auto authority = crypto::CertificateAuthority::FromPem(
        *crypto::NewSelfSigned(authority_key, {"ca", {}, {}, {}}, hours(48)), authority_key);
    return *authority->Sign(*crypto::NewCertificateRequest(key_pem, {"web", {}, {}, {}}),
                            {now, now + hours(4), {"client auth"}});
  }
};

TEST_F(PodCertificateTest, FromTheRequestToTheChain) {
  const client::RestClient admin = ClientOf("admin", {"system:masters"});
  corev1::Node node;
  node.mutable_metadata()->set_name("n1");
  auto made_node = admin.Create(node);
  ASSERT_TRUE(made_node) << made_node.error().message();
  corev1::Pod wish;
  ASSERT_TRUE(
      api::DecodeJson(R"({"metadata":{"name":"web","namespace":")" + ns_ + R"("},"spec":{"nodeName":"n1",
      "containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "volumes":[{"name":"v","projected":{"sources":[{"podCertificate":{"signerName":"example.com/signer",
        "keyType":"ECDSAP384","credentialBundlePath":"bundle.pem","userAnnotations":{"example.com/a":"b"}}}]}}]}})",
                      wish));
  const auto pod = admin.Create(wish);
  ASSERT_TRUE(pod) << pod.error().message();
  const auto& sources = pod->spec().volumes(0).volume_source().projected().sources();
  ASSERT_EQ(sources.size(), 1);
  ASSERT_TRUE(sources[0].has_pod_certificate()) << "the API server keeps the source";

  const std::string key = *crypto::NewPrivateKey("ECDSAP384");
  const PodCertificateRequests requests(ClientOf("system:node:n1", {"system:nodes"}), "n1");
  const auto created = OnceKnown(
      [&] { return requests.Create(*pod, sources[0].pod_certificate(), made_node->metadata().uid(), key); });
  ASSERT_TRUE(created) << created.error().message();
  auto state = OnceKnown([&] { return requests.Get(ns_, created->name); });
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->outcome, Outcome::kPending);

  auto live = admin.Get<Request>(ns_, created->name);
  ASSERT_TRUE(live) << live.error().message();
  EXPECT_EQ(live->spec().unverified_user_annotations().at("example.com/a"), "b");
  const WallTime now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  auto& status = *live->mutable_status();
  status.set_certificate_chain(Sign(key, now));
  *status.mutable_not_before() = api::ToTime(now);
  *status.mutable_begin_refresh_at() = api::ToTime(now + hours(2));
  *status.mutable_not_after() = api::ToTime(now + hours(4));
  metav1::Condition& condition = *status.add_conditions();
  condition.set_type("Issued");
  condition.set_status("True");
  condition.set_reason("ByTest");
  const auto answered = admin.UpdateStatus(*live);
  ASSERT_TRUE(answered) << answered.error().message();

  state = requests.Get(ns_, created->name);
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->outcome, Outcome::kIssued);
  EXPECT_EQ(state->chain, status.certificate_chain());
  EXPECT_EQ(state->begin_refresh_at, now + hours(2));
  EXPECT_EQ(state->not_after, now + hours(4));

  // Another node, and one that lies about the pod's.
  const PodCertificateRequests stranger(ClientOf("system:node:n2", {"system:nodes"}), "n2");
  EXPECT_TRUE(stranger.Get(ns_, created->name).error().Is(Code::kForbidden));
  EXPECT_FALSE(stranger.Create(*pod, sources[0].pod_certificate(), made_node->metadata().uid(), key));
  // The stream names the pod of the request.
  std::string told;
  std::stop_source stop;
  (void)requests.Watch(
      [&](const std::string& uid) {
        told = uid;
        stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(told, pod->metadata().uid());
}

}  // namespace
}  // namespace keelson::kubelet
