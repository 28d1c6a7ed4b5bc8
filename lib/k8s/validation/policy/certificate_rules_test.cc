// Certificate signing requests and pod certificate requests.
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/k8s/testing/rule_cases.h"

namespace keelson::k8s {
namespace {

// The shape of a certificate request, without a valid signature.
constexpr char kRequest[] =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUEwd0J3SUJBREFBTUFBd0FBTUEKLS0tLS1FTkQgQ0VSVElGSUNB"
    "VEUgUkVRVUVTVC0tLS0tCg==";

std::string Request(const std::string& spec, const std::string& status = "{}") {
  return Cluster(R"("spec":{"request":")" + std::string(kRequest) + "\"," + spec + R"(},"status":)" + status);
}
constexpr char kSigner[] = R"("signerName":"example.com/s","usages":["client auth"])";

TEST(CertificateRules, SigningRequests) {
  constexpr char kV1[] = "certificates.k8s.io/v1", kKind[] = "CertificateSigningRequest";
  ExpectErrors({
      {kV1,
       kKind,
       Request(R"("signerName":"nodomain/s","usages":["odd","any","any"],"expirationSeconds":10)"),
       {"spec.usages[0]: Unsupported value: \"odd\": supported values: \"any\", \"cert sign\", \"client "
        "auth\", \"code "
        "signing\", \"content commitment\", \"crl sign\", \"data encipherment\", \"decipher only\", "
        "\"digital "
        "signature\", \"email protection\", \"encipher only\", \"ipsec end system\", \"ipsec tunnel\", "
        "\"ipsec user\", "
        "\"key agreement\", \"key encipherment\", \"microsoft sgc\", \"netscape sgc\", \"ocsp signing\", "
        "\"s/mime\", "
        "\"server auth\", \"signing\", \"timestamping\"",
        "spec.usages[2]: Duplicate value: \"any\"",
        "spec.signerName: Invalid value: \"nodomain\": should be a domain with at least two segments "
        "separated by dots",
        "spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 600 seconds (10 "
        "minutes)"}},
      {kV1,
       kKind,
       Cluster(R"("spec":{"request":"eA==","signerName":"kubernetes.io/legacy-unknown","usages":[]})"),
       {"spec.request: Invalid value: \"eA==\": PEM block type must be CERTIFICATE REQUEST",
        "spec.usages: Required value",
        "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not "
        "allowed via this "
        "API version"}},
      {kV1,
       kKind,
       Request(
           kSigner,
           R"({"certificate":"eA==","conditions":[{"type":"Approved","status":"False"},{"type":"Denied","status":"True"}]})"),
       {"status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\"",
        "status.conditions[1].type: Invalid value: \"Denied\": Approved and Denied conditions are mutually "
        "exclusive",
        "status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE "
        "PEM block"}},
  });
  const std::string plain = Request(kSigner);
  const std::string approved = Request(kSigner, R"({"conditions":[{"type":"Approved","status":"True"}]})");
  ExpectChangeErrors(
      ValidateStatusUpdate,
      {{kV1,
        kKind,
        plain,
        approved,
        {"status.conditions: Forbidden: updates may not add a condition of type \"Approved\""}},
       {kV1,
        kKind,
        approved,
        plain,
        {"status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""}}});
  const auto approval = [](const api::Message& object, const api::Message& old) {
    return ValidatePartUpdate(object, old, "approval");
  };
  ExpectChangeErrors(approval, {{kV1, kKind, plain, approved, {}}});
}

std::string PodRequest(const std::string& status = "{}") {
  const std::string spec =
      R"("signerName":"example.com/s","podName":"p","podUID":"u","serviceAccountName":"a","serviceAccountUID":"u",)"
      R"("nodeName":"n","nodeUID":"u","stubPKCS10Request":"eA==")";
  return Namespaced(R"("spec":{)" + spec + R"(},"status":)" + status);
}

TEST(CertificateRules, PodCertificateRequests) {
  constexpr char kV1[] = "certificates.k8s.io/v1beta1", kKind[] = "PodCertificateRequest";
  constexpr char kEither[] =
      "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be "
      "set";
  const std::string name_rule = std::string("Invalid value: \"-\": ") + kSubdomainRule;
  const std::vector<
      std::pair<std::function<void(api::certificates::v1beta1::PodCertificateRequestSpec&)>, Lines>>
      cases = {
          {[](auto&) {}, {}},
          {[](auto& spec) { spec.set_signer_name("plain"); },
           {"spec.signerName: Invalid value: \"plain\": must be a fully qualified domain and path of the "
            "form "
            "'example.com/signer-name'"}},
          {[](auto& spec) { spec.set_pod_name("-"); }, {"spec.podName: " + name_rule}},
          {[](auto& spec) { spec.set_node_name("-"); }, {"spec.nodeName: " + name_rule}},
          {[](auto& spec) { spec.clear_pod_uid(); }, {"spec.podUID: Invalid value: \"\": must not be empty"}},
          {[](auto& spec) { spec.set_node_uid(std::string(129, 'u')); },
           {"spec.nodeUID: Too long: may not be more than 128 bytes"}},
          {[](auto& spec) { spec.set_max_expiration_seconds(3599); },
           {"spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]"}},
          {[](auto& spec) { spec.set_max_expiration_seconds(7862400); }, {}},
          {[](auto& spec) {
             spec.set_signer_name("kubernetes.io/s");
             spec.set_max_expiration_seconds(86401);
           },
           {"spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"}},
          {[](auto& spec) { (*spec.mutable_unverified_user_annotations())["example.com/a"] = "b"; }, {}},
          {[](auto& spec) { (*spec.mutable_unverified_user_annotations())["a"] = "b"; },
           {"spec.unverifiedUserAnnotations: Invalid value: \"a\": must be a domain-prefixed key (such as "
            "\"acme.io/foo\")"}},
          {[](auto& spec) { spec.clear_stub_pkcs10_request(); }, {kEither}},
          {[](auto& spec) { spec.set_pkix_public_key("k"); }, {kEither}},
          {[](auto& spec) {
             spec.clear_stub_pkcs10_request();
             spec.set_pkix_public_key("k");
             spec.set_proof_of_possession("p");
           },
           {}},
          {[](auto& spec) { spec.set_stub_pkcs10_request(std::string(10241, 'x')); },
           {"spec.stubPKCS10Request: Too long: may not be more than 10240 bytes"}},
      };
  for (const auto& [change, errors] : cases) {
    auto object = ParseObject(kV1, kKind, PodRequest());
    auto& request = static_cast<api::certificates::v1beta1::PodCertificateRequest&>(*object);
    change(*request.mutable_spec());
    EXPECT_EQ(PrintErrors(Validate(request)), errors);
  }
  EXPECT_EQ(static_cast<const api::certificates::v1beta1::PodCertificateRequest&>(
                *ParseObject(kV1, kKind, PodRequest()))
                .spec()
                .max_expiration_seconds(),
            86400);

  ExpectChangeErrors(ValidateUpdate, {{kV1, kKind, PodRequest(), PodRequest(), {}}});
  const auto with = [](const std::string& type, const std::string& more = "",
                       const std::string& is = "True") {
    return PodRequest(R"({"conditions":[{"type":")" + type + R"(","status":")" + is +
                      R"(","reason":"R","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}])" + more +
                      "}");
  };
  const std::string chain = R"(,"certificateChain":"x")";
  ExpectChangeErrors(
      ValidateStatusUpdate,
      {{kV1, kKind, PodRequest(), with("Denied"), {}},
       {kV1, kKind, PodRequest(), with("Issued", chain), {}},
       {kV1,
        kKind,
        PodRequest(),
        with("Odd"),
        {"status.conditions[0].type: Unsupported value: \"Odd\": supported values: \"Denied\", \"Failed\", "
         "\"Issued\""}},
       {kV1,
        kKind,
        PodRequest(),
        with("Failed", "", "False"),
        {"status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\""}},
       {kV1,
        kKind,
        PodRequest(),
        with("Failed", chain),
        {"status: Invalid value: non-condition status fields must be empty when denying or failing the "
         "PodCertificateRequest"}},
       {kV1,
        kKind,
        with("Denied"),
        with("Failed"),
        {"status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"}},
       {kV1,
        kKind,
        PodRequest(),
        PodRequest(R"({"certificateChain":"x"})"),
        {"status: Invalid value: status is immutable unless transitioning to \"Issued\", \"Denied\", or "
         "\"Failed\""}}});
}

}  // namespace
}  // namespace keelson::k8s
