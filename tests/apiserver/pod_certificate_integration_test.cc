// Pod certificates from the kubelet's request to the signer's response, against the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "lib/api/meta.h"
#include "lib/crypto/certificate_authority.h"
#include "lib/crypto/certificates.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using std::chrono::minutes;
using testing::HasSubstr;

constexpr char kSigner[] = "example.com/signer";

// The base64 part of a PEM file.
std::string Base64Of(const std::string& pem) {
  const size_t begin = pem.find('\n'), end = pem.rfind("-----END");
  std::string out = pem.substr(begin, end - begin);
  std::erase(out, '\n');
  return out;
}

std::string TimeText(WallTime time) { return api::FormatTime(api::ToTime(time)); }

class PodCertificate : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    ClusterTest::Start(
        {"--feature-gates=PodCertificateRequest=true", "--runtime-config=certificates.k8s.io/v1beta1=true"});
    if (!cluster_) return;
    cluster_->AddUser("system:node:n1", {"system:nodes"});
    cluster_->AddUser("system:node:n2", {"system:nodes"});
    for (const char* node : {"n1", "n2"}) {
      ASSERT_EQ(cluster_
                    ->Kubectl({"create", "-f", "-"},
                              std::string(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")") + node +
                                  R"("}})")
                    .code,
                0);
    }
  }

  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped()) return;
    Kubectl({"create", "-f", "-"},
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"nodeName":"n1",
                "containers":[{"name":"c","image":"i"}]}})");
    spec_ = {{"signerName", kSigner},
             {"podName", "web"},
             {"podUID", Uid("pod/web")},
             {"serviceAccountName", "default"},
             {"serviceAccountUID", Uid("sa/default")},
             {"nodeName", "n1"},
             {"nodeUID", Uid("node/n1")},
             {"stubPKCS10Request", Base64Of(*crypto::NewCertificateRequest(key_, {}))}};
  }
  std::string Uid(const std::string& what) {
    return Kubectl({"get", what, "-o", "jsonpath={.metadata.uid}"});
  }
  // Creates a request as `user`, with changed fields.
  Output Ask(const std::string& user, const json::object& changes = {}) {
    json::object spec = spec_;
    for (const auto& change : changes) spec[change.key()] = change.value();
    const json::object request = {{"apiVersion", "certificates.k8s.io/v1beta1"},
                                  {"kind", "PodCertificateRequest"},
                                  {"metadata", {{"name", "r"}, {"namespace", ns_}}},
                                  {"spec", spec}};
    return cluster_->Kubectl({"create", "--validate=strict", "-f", "-"}, json::serialize(request), user);
  }
  // Patches the status as `user`.
  Output Answer(const json::object& status, const std::string& user = "admin") {
    return cluster_->Kubectl({"-n", ns_, "patch", "podcertificaterequest", "r", "--subresource=status",
                              "--type=merge", "-p", json::serialize(json::object{{"status", status}})},
                             "", user);
  }
  static json::object Condition(const char* type) {
    return {{"type", type},
            {"status", "True"},
            {"reason", "ByTest"},
            {"message", "m"},
            {"lastTransitionTime", TimeText(std::chrono::system_clock::now())}};
  }
  // A signer's status with a certificate for `key`.
  json::object Issued(const std::string& key, minutes life = minutes(120)) {
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    const std::string authority_key = *crypto::NewPrivateKey();
    const auto authority = crypto::CertificateAuthority::FromPem(
        *crypto::NewSelfSigned(authority_key, {"ca", {}, {}, {}}, std::chrono::hours(48)), authority_key);
    const auto chain = authority->Sign(*crypto::NewCertificateRequest(key, {"web", {}, {}, {}}),
                                       {now, now + life, {"client auth"}});
    return {{"conditions", {Condition("Issued")}},
            {"certificateChain", *chain},
            {"notBefore", TimeText(now)},
            {"beginRefreshAt", TimeText(now + life / 2)},
            {"notAfter", TimeText(now + life)}};
  }

  const std::string key_ = *crypto::NewPrivateKey();
  json::object spec_;
};

TEST_F(PodCertificate, NodesAskForTheirOwnPodsAlone) {
  const struct {
    const char* user;
    json::object changes;
    std::string says;
  } cases[] = {
      {"system:node:n2",
       {},
       R"(PodCertificateRequest.Spec.NodeName="n1", which is not the requesting node "n2")"},
      {"system:node:n2",
       {{"nodeName", "n2"}, {"nodeUID", Uid("node/n2")}},
       "pod \"" + ns_ + R"(/web" is not running on node "n2" named in the PodCertificateRequest)"},
      {"system:node:n1",
       {{"nodeUID", "other"}},
       R"(names node UID "other", inconsistent with the running node)"},
      {"system:node:n1", {{"podName", "none"}}, R"(pod "none" not found)"},
      {"system:node:n1",
       {{"podUID", "other"}},
       R"(contains pod UID ("other") which differs from running pod)"},
      {"system:node:n1",
       {{"serviceAccountName", "other"}},
       R"(contains serviceAccountName ("other") that differs from running pod ("default"))"},
      {"system:node:n1",
       {{"serviceAccountUID", "other"}},
       R"(names service account UID "other", which differs from the running service account)"},
  };
  for (const auto& c : cases) {
    const Output output = Ask(c.user, c.changes);
    EXPECT_NE(output.code, 0) << c.says;
    EXPECT_THAT(output.err, HasSubstr(c.says));
  }
  const Output created = Ask("system:node:n1");
  EXPECT_EQ(created.code, 0) << created.err;
  EXPECT_EQ(Kubectl({"get", "podcertificaterequest", "r", "-o", "jsonpath={.spec.maxExpirationSeconds}"}),
            "86400");
  EXPECT_THAT(Kubectl({"get", "podcertificaterequests"}),
              testing::ContainsRegex("r +web +default +n1 +example.com/signer +Pending +<none>"));
}

TEST_F(PodCertificate, NodesReadTheirOwnAlone) {
  ASSERT_EQ(Ask("system:node:n1").code, 0);
  const struct {
    const char* user;
    std::vector<std::string> arguments;
    bool allowed;
  } cases[] = {
      {"system:node:n1", {"get", "podcertificaterequest", "r"}, true},
      {"system:node:n2", {"get", "podcertificaterequest", "r"}, false},
      {"system:node:n1", {"get", "podcertificaterequests", "--field-selector=spec.nodeName=n1"}, true},
      {"system:node:n1", {"get", "podcertificaterequests"}, false},
      {"system:node:n1", {"get", "podcertificaterequests", "--field-selector=spec.nodeName=n2"}, false},
      {"system:node:n1", {"delete", "podcertificaterequest", "r"}, false},
  };
  for (const auto& c : cases) {
    std::vector<std::string> arguments = {"-n", ns_};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    EXPECT_EQ(cluster_->Kubectl(arguments, "", c.user).code == 0, c.allowed)
        << c.user << testing::PrintToString(c.arguments);
  }
  EXPECT_THAT(Answer({{"conditions", {Condition("Denied")}}}, "system:node:n1").err, HasSubstr("Forbidden"));
}

TEST_F(PodCertificate, KeysAreProven) {
  std::string broken = Base64Of(*crypto::NewCertificateRequest(key_, {}));
  broken[broken.size() - 8] = broken[broken.size() - 8] == 'A' ? 'B' : 'A';
  const struct {
    json::object changes;
    std::string says;
  } cases[] = {
      {{{"stubPKCS10Request", "eA=="}},
       "spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 certificate signing request"},
      {{{"stubPKCS10Request", broken}}, "spec.stubPKCS10Request: Invalid value: must be "},
      {{{"pkixPublicKey", "eA=="}, {"proofOfPossession", "eA=="}},
       "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must "
       "be set"},
      {{{"stubPKCS10Request", nullptr}, {"pkixPublicKey", "eA=="}, {"proofOfPossession", "eA=="}},
       "spec.pkixPublicKey: Invalid value: must be a valid PKIX-serialized public key"},
  };
  for (const auto& c : cases) {
    const Output output = Ask("system:node:n1", c.changes);
    EXPECT_NE(output.code, 0) << c.says;
    EXPECT_THAT(output.err, HasSubstr(c.says));
  }
}

TEST_F(PodCertificate, SignersAnswerOnce) {
  ASSERT_EQ(Ask("system:node:n1", {{"maxExpirationSeconds", 7200}}).code, 0);
  Kubectl({"create", "role", "status", "--verb=patch,get", "--resource=podcertificaterequests/status"});
  Kubectl({"create", "rolebinding", "status", "--role=status", "--user=signer"});
  cluster_->AddUser("signer", {});
  EXPECT_THAT(
      Answer(Issued(key_), "signer").err,
      HasSubstr(
          R"(spec.signerName: Forbidden: User "signer" is not permitted to "sign" for signer "example.com/signer")"));
  // kubectl knows no resource "signers".
  Kubectl(
      {"create", "-f", "-"},
      R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"sign"},"rules":[
              {"apiGroups":["certificates.k8s.io"],"resources":["signers"],"resourceNames":["example.com/signer"],
               "verbs":["sign"]}]})");
  Kubectl({"create", "clusterrolebinding", "sign", "--clusterrole=sign", "--user=signer"});

  json::object late = Issued(key_), misdated = Issued(key_), foreign = Issued(*crypto::NewPrivateKey()),
               junk = Issued(key_);
  late["beginRefreshAt"] = late["notAfter"];
  misdated["notAfter"] = misdated["beginRefreshAt"];
  junk["certificateChain"] = "junk";
  const struct {
    json::object status;
    std::string says;
  } cases[] = {
      {junk, "issued certificate chain must contain at least one certificate"},
      {foreign, "leaf certificate was not issued to the requested public key"},
      {Issued(key_, minutes(30)), "30m0s: leaf certificate lifetime must be >= 1 hour"},
      {Issued(key_, minutes(130)),
       "2h10m0s: leaf certificate lifetime must be <= spec.maxExpirationSeconds (7200)"},
      {late, "must be at least 10 minutes before status.notAfter"},
      {misdated, "must be set to the NotAfter time encoded in the leaf certificate"},
      {{{"conditions", {Condition("Issued")}}, {"certificateChain", Issued(key_).at("certificateChain")}},
       "status.notBefore: Required value: must be present and consistent with the issued certificate"},
      {{{"conditions", {Condition("Odd")}}}, "status.conditions[0].type: Unsupported value: \"Odd\""},
      {{{"conditions", {Condition("Denied")}}, {"certificateChain", "x"}},
       "non-condition status fields must be empty when denying or failing"},
      {{{"certificateChain", "x"}}, "status is immutable unless transitioning"},
  };
  for (const auto& c : cases) {
    const Output output = Answer(c.status);
    EXPECT_NE(output.code, 0) << c.says;
    EXPECT_THAT(output.err, HasSubstr(c.says));
  }
  const Output issued = Answer(Issued(key_), "signer");
  ASSERT_EQ(issued.code, 0) << issued.err;
  EXPECT_THAT(
      Answer(Issued(key_)).err,
      HasSubstr("status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"));
  EXPECT_THAT(Kubectl({"get", "podcertificaterequests"}), HasSubstr("Issued"));
}

}  // namespace
}  // namespace keelson::apiserver
