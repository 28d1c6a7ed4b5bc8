#include "kubelet/certificate/pod_certificates.h"

#include <gtest/gtest.h>

#include "kubelet/certificate/json_answer.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/client/testing/fake_api.h"
#include "lib/crypto/certificate_authority.h"
#include "lib/crypto/certificates.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr char kCollection[] = "/apis/certificates.k8s.io/v1beta1/namespaces/n/podcertificaterequests";

// The API server keeps the requests as they come; the test is the signer.
class PodCertificatesTest : public ::testing::Test {
 protected:
  PodCertificatesTest() {
    api_->SetInterceptor([this](const client::ApiRequest& request) { return Serve(request); });
    corev1::ServiceAccount account;
    account.mutable_metadata()->set_namespace_("n");
    account.mutable_metadata()->set_name("robot");
    api_->Put(account);
    auto decoded = api::DecodeJson(R"({"metadata":{"name":"p","namespace":"n","uid":"pod-uid"},
        "spec":{"serviceAccountName":"robot","containers":[{"name":"c"}],"volumes":[{"name":"v","projected":{
          "sources":[{"podCertificate":{"signerName":"example.com/s","keyType":"ED25519",
            "maxExpirationSeconds":7200,"userAnnotations":{"example.com/k":"w"}}}]}}]}})",
                                   pod_);
    EXPECT_TRUE(decoded) << decoded.error().message();
  }

  std::optional<Result<client::ApiResponse>> Serve(const client::ApiRequest& request) {
    if (request.target.rfind(kCollection, 0) != 0) return std::nullopt;
    auto answer = [](int status, const std::string& body) {
      return Result<client::ApiResponse>(client::ApiResponse{status, "application/json", body});
    };
    if (request.method == "POST") {
      json::object object = json::parse(request.body).as_object();
      const std::string name = "req-" + std::to_string(++made_);
      object["metadata"].as_object()["name"] = name;
      object["metadata"].as_object()["creationTimestamp"] = Stamp(seconds(0));
      requests_[name] = object;
      return answer(201, json::serialize(object));
    }
    auto it = requests_.find(request.target.substr(request.target.rfind('/') + 1));
    if (it == requests_.end()) {
      return answer(404, R"({"kind":"Status","message":"it is not there","reason":"NotFound"})");
    }
    return answer(200, json::serialize(it->second));
  }
  std::string Stamp(std::chrono::nanoseconds from_now) {
    return api::FormatTime(
        api::ToTime(clock_.Now() + std::chrono::duration_cast<WallTime::duration>(from_now)));
  }

  Result<CredentialBundle> Get() { return certificates_.Get(pod_, pod_.spec().volumes(0), 0); }
  std::string Problem() {
    auto got = Get();
    return got ? "" : got.error().message();
  }
  json::object Spec(const std::string& name) { return Member(requests_.at(name), "spec"); }
  void Conclude(const std::string& name, const std::string& type, json::object status = {}) {
    json::array conditions;
    conditions.push_back(
        json::object({{"type", type}, {"status", "True"}, {"reason", "Why"}, {"message", "so \"it\" is"}}));
    status["conditions"] = conditions;
    requests_.at(name)["status"] = status;
  }
  void Issue(const std::string& name, std::chrono::nanoseconds refresh, std::chrono::nanoseconds end) {
    std::string pem = "-----BEGIN CERTIFICATE REQUEST-----\n";
    const std::string base64 = Text(Spec(name), "stubPKCS10Request");
    for (size_t at = 0; at < base64.size(); at += 64) pem += base64.substr(at, 64) + "\n";
    const auto now = std::chrono::system_clock::now();
    auto chain =
        ca_->Sign(pem + "-----END CERTIFICATE REQUEST-----\n", {now, now + hours(1), {"client auth"}});
    ASSERT_TRUE(chain) << chain.error().message();
    Conclude(name, "Issued",
             {{"certificateChain", "words of the signer\n" + *chain},
              {"beginRefreshAt", Stamp(refresh)},
              {"notAfter", Stamp(end)}});
  }
  static bool Shows(const std::string& state) {
    return metrics::Print().find(R"(kubelet_podcertificate_states{signer_name="example.com/s",state=")" +
                                 state + "\"} 1") != std::string::npos;
  }

  FakeClock clock_;
  std::shared_ptr<client::FakeApi> api_ = std::make_shared<client::FakeApi>(clock_);
  std::string ca_key_ = *crypto::NewPrivateKey();
  Result<crypto::CertificateAuthority> ca_ = crypto::CertificateAuthority::FromPem(
      *crypto::NewSelfSigned(ca_key_, {"ca", {}, {}, {}}, hours(48)), ca_key_);
  corev1::Pod pod_;
  std::map<std::string, json::object> requests_;
  int made_ = 0;
  std::string node_uid_ = "node-uid";
  std::vector<std::string> told_;
  PodCertificates certificates_{
      {client::RestClient(api_), "n1", [this] { return node_uid_; },
       [this](const corev1::Pod&, const std::string& reason, const std::string& message) {
         told_.push_back(reason + ": " + message);
       },
       [] { return minutes(1); }},
      clock_};
};

TEST_F(PodCertificatesTest, OneIsAskedForAndWaitedFor) {
  auto none = Get();
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().Is(Code::kUnavailable));
  EXPECT_EQ(none.error().message(), "credential bundle is not issued yet");
  json::object spec = Spec("req-1");
  EXPECT_FALSE(Text(spec, "stubPKCS10Request").empty());
  spec.erase("stubPKCS10Request");
  const std::string account_uid =
      client::RestClient(api_).Get<corev1::ServiceAccount>("n", "robot")->metadata().uid();
  EXPECT_EQ(json::value(spec), json::value({{"signerName", "example.com/s"},
                                            {"podName", "p"},
                                            {"podUID", "pod-uid"},
                                            {"maxExpirationSeconds", 7200},
                                            {"unverifiedUserAnnotations", {{"example.com/k", "w"}}},
                                            {"serviceAccountName", "robot"},
                                            {"serviceAccountUID", account_uid},
                                            {"nodeName", "n1"},
                                            {"nodeUID", "node-uid"}}));
  const json::object meta = Member(requests_.at("req-1"), "metadata");
  EXPECT_EQ(json::serialize(meta.at("ownerReferences")),
            R"([{"apiVersion":"v1","kind":"Pod","name":"p","uid":"pod-uid"}])");
  EXPECT_EQ(Text(meta, "generateName"), "req-");
  EXPECT_EQ(Problem(), "credential bundle is not issued yet");
  EXPECT_TRUE(Shows("not_yet_issued"));
  Issue("req-1", hours(1), hours(2));
  auto bundle = Get();
  ASSERT_TRUE(bundle) << bundle.error().message();
  EXPECT_TRUE(crypto::BelongTogether(bundle->chain, bundle->key));
  EXPECT_EQ(bundle->chain.rfind("-----BEGIN CERTIFICATE-----\n", 0), 0u) << bundle->chain;
  EXPECT_TRUE(Shows("fresh"));
  EXPECT_EQ(made_, 1);
}

TEST_F(PodCertificatesTest, ASignersNoIsForGood) {
  for (const auto& [type, verb] : {std::pair("Denied", "was denied"), {"Failed", "failed"}}) {
    const std::string name = "req-" + std::to_string(made_ + 1);
    EXPECT_FALSE(Get());
    Conclude(name, type);
    const std::string state = type == std::string("Denied") ? "denied" : "failed";
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Problem(), "PodCertificateRequest was permanently " + state +
                               R"(: reason="Why" message="so \"it\" is")");
    }
    EXPECT_EQ(told_, std::vector<std::string>{std::string(type) + ": PodCertificateRequest n/" + name + " " +
                                              verb + R"(, reason="Why", message="so \"it\" is")"});
    EXPECT_TRUE(Shows(state));
    told_.clear();
    certificates_.ForgetPod("pod-uid");
  }
}

TEST_F(PodCertificatesTest, TheNextComesInTimeOrLate) {
  EXPECT_FALSE(Get());
  Issue("req-1", hours(1), hours(2));
  const CredentialBundle first = *Get();
  clock_.Advance(hours(1));
  EXPECT_EQ(Get()->key, first.key);
  EXPECT_EQ(made_, 1) << "the jitter counts";
  clock_.Advance(minutes(1));
  EXPECT_EQ(Get()->key, first.key) << "good for as long as there is no other";
  EXPECT_EQ(made_, 2);
  clock_.Advance(minutes(11));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Get()->key, first.key);
  EXPECT_EQ(told_, std::vector<std::string>{"CertificateOverdueForRefresh: PodCertificate refresh overdue"});
  EXPECT_TRUE(Shows("overdue_for_refresh"));
  told_.clear();
  clock_.Advance(hours(1));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Get()->key, first.key);
  EXPECT_EQ(told_, std::vector<std::string>{"CertificateExpired: PodCertificate expired"});
  EXPECT_TRUE(Shows("expired"));
  Issue("req-2", hours(1), hours(2));
  auto second = Get();
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_NE(second->key, first.key);
  EXPECT_TRUE(crypto::BelongTogether(second->chain, second->key));
  EXPECT_TRUE(Shows("fresh"));
}

TEST_F(PodCertificatesTest, ADeletedRequestIsMadeAgain) {
  EXPECT_FALSE(Get());
  requests_.clear();
  EXPECT_EQ(Problem(),
            "credential bundle is not issued yet: while getting PodCertificateRequest \"n/req-1\": "
            "it is not there");
  clock_.Advance(minutes(12));
  EXPECT_EQ(
      Problem(),
      "credential bundle is not issued yet: PodCertificateRequest \"n/req-1\" appears to have been deleted");
  EXPECT_EQ(Problem(), "credential bundle is not issued yet");
  EXPECT_EQ(made_, 2);
  Issue("req-2", minutes(0), hours(1));
  const CredentialBundle first = *Get();
  clock_.Advance(minutes(2));
  EXPECT_EQ(Get()->key, first.key);
  EXPECT_EQ(made_, 3);
  requests_.clear();
  clock_.Advance(minutes(12));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Get()->key, first.key);
  EXPECT_EQ(made_, 4) << "as for the first one";
}

TEST_F(PodCertificatesTest, WhatIsMissingIsSaid) {
  auto& source = *pod_.mutable_spec()
                      ->mutable_volumes(0)
                      ->mutable_volume_source()
                      ->mutable_projected()
                      ->mutable_sources(0)
                      ->mutable_pod_certificate();
  const std::string head = "credential bundle is not issued yet: while ";
  node_uid_ = "";
  EXPECT_EQ(Problem(), head + "getting node object from local cache: node \"n1\" not found");
  node_uid_ = "node-uid";
  source.set_key_type("ROT13");
  EXPECT_EQ(Problem(), head +
                           "creating initial PodCertificateRequest: while generating keypair: "
                           "unknown key type \"ROT13\"");
  source.set_key_type("ECDSAP256");
  pod_.mutable_spec()->set_service_account_name("nobody");
  EXPECT_EQ(
      Problem().rfind(head + "creating initial PodCertificateRequest: while fetching service account: ", 0),
      0u)
      << Problem();
  EXPECT_EQ(made_, 0);
}

// A watch whose bytes come in pieces.
class PiecesTransport : public client::Transport {
 public:
  explicit PiecesTransport(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  Result<client::ApiResponse> Do(const client::ApiRequest&, std::chrono::milliseconds,
                                 std::stop_token) override {
    return Error(Code::kUnavailable, "this one only watches");
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token) override {
    target = request.target;
    return std::unique_ptr<client::ApiStream>(std::make_unique<Stream>(pieces_));
  }
  std::string target;

 private:
  class Stream : public client::ApiStream {
   public:
    explicit Stream(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
    Result<std::string> Read(std::stop_token, std::chrono::milliseconds) override {
      return next_ < pieces_.size() ? pieces_[next_++] : "";
    }
    void OnReadable(std::function<void()> readable) override { readable(); }

   private:
    const std::vector<std::string> pieces_;
    size_t next_ = 0;
  };
  const std::vector<std::string> pieces_;
};

TEST(PodCertificateRequests, TheWatchTellsWhosePodsAreMeant) {
  auto transport = std::make_shared<PiecesTransport>(std::vector<std::string>{
      R"({"type":"ADDED","object":{"spec":{"podUID":"a"}}})", "\n{\"type\":\"MODIFIED\",\"obj",
      "ect\":{\"spec\":{\"podUID\":\"b\"}}}\n{\"type\":\"ADDED\",\"object\":{\"spec\":{\"podUID\":\"c\"}}}\n",
      "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n"});
  const PodCertificateRequests requests(client::RestClient(transport), "n1");
  std::vector<std::string> told;
  auto watched = requests.Watch([&told](const std::string& uid) { told.push_back(uid); }, {});
  EXPECT_TRUE(watched) << watched.error().message();
  EXPECT_EQ(told, (std::vector<std::string>{"a", "b", "c", ""}));
  EXPECT_EQ(transport->target,
            "/apis/certificates.k8s.io/v1beta1/podcertificaterequests?watch=true&"
            "fieldSelector=spec.nodeName%3Dn1");
  auto broken = std::make_shared<PiecesTransport>(std::vector<std::string>{"{]\n"});
  EXPECT_FALSE(PodCertificateRequests(client::RestClient(broken), "n1").Watch([](const std::string&) {}, {}));
}

}  // namespace
}  // namespace keelson::kubelet
