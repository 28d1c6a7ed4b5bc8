#include "tests/operator/manifests.h"

#include <stop_token>

#include "lib/base/base64.h"

namespace keelson::test_operator {
namespace {

namespace json = boost::json;

json::object Parse(const std::string& text) { return json::parse(text).as_object(); }

json::object Version(const std::string& name, bool storage, const std::string& spec) {
  return Parse(R"({"name":")" + name + R"(","served":true,"storage":)" + (storage ? "true" : "false") +
               R"(,"subresources":{"status":{}},"additionalPrinterColumns":[
                 {"name":"Ready","type":"integer","jsonPath":".status.ready"}],
                 "schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{
                   "spec":{"type":"object","properties":{)" +
               spec + R"(}},
                   "status":{"type":"object","properties":{"ready":{"type":"integer"},
                     "observedGeneration":{"type":"integer"}}}}}}})");
}

json::object ClientConfig(const std::string& url, const std::string& ca_pem) {
  return {{"url", url}, {"caBundle", EncodeBase64(ca_pem)}};
}

json::object Definition(const std::string& url, const std::string& ca_pem) {
  json::object spec = Parse(R"({"group":"fleets.example.com","scope":"Namespaced",
      "names":{"plural":"fleets","singular":"fleet","kind":"Fleet","shortNames":["fl"]}})");
  spec["versions"] = json::array{
      Version("v1", true, R"("size":{"type":"integer","minimum":0,"default":1},"ship":{"type":"string"})"),
      Version("v2", false,
              R"("ships":{"type":"integer","minimum":0,"default":1},"image":{"type":"object","properties":{
                "name":{"type":"string"},"tag":{"type":"string"}}})")};
  spec["conversion"] =
      json::object{{"strategy", "Webhook"},
                   {"webhook", json::object{{"conversionReviewVersions", json::array{"v1"}},
                                            {"clientConfig", ClientConfig(url + "/convert", ca_pem)}}}};
  json::object out = Parse(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":"fleets.fleets.example.com"}})");
  out["spec"] = std::move(spec);
  return out;
}

json::object Hooks(const std::string& kind, const std::string& url, const std::string& ca_pem) {
  json::object hook = Parse(R"({"name":"fleets.fleets.example.com","sideEffects":"None",
      "admissionReviewVersions":["v1"],"rules":[{"operations":["CREATE","UPDATE"],
      "apiGroups":["fleets.example.com"],"apiVersions":["v2"],"resources":["fleets"]}]})");
  hook["clientConfig"] = ClientConfig(url, ca_pem);
  json::object out = Parse(R"({"apiVersion":"admissionregistration.k8s.io/v1",
      "metadata":{"name":"fleets.example.com"}})");
  out["kind"] = kind;
  out["webhooks"] = json::array{std::move(hook)};
  return out;
}

bool IsEstablished(const json::object& definition) {
  const json::value* status = definition.if_contains("status");
  const json::value* conditions = status ? status->as_object().if_contains("conditions") : nullptr;
  if (!conditions) return false;
  for (const json::value& condition : conditions->as_array()) {
    if (condition.at("type") == "Established") return condition.at("status") == "True";
  }
  return false;
}

}  // namespace

Result<> Install(const JsonApi& api, const std::string& url, const std::string& ca_pem) {
  KEELSON_RETURN_IF_ERROR(api.Put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                                  "fleets.fleets.example.com", Definition(url, ca_pem)));
  const std::string group = "/apis/admissionregistration.k8s.io/v1/";
  KEELSON_RETURN_IF_ERROR(api.Put(group + "mutatingwebhookconfigurations", "fleets.example.com",
                                  Hooks("MutatingWebhookConfiguration", url + "/mutate", ca_pem)));
  KEELSON_RETURN_IF_ERROR(api.Put(group + "validatingwebhookconfigurations", "fleets.example.com",
                                  Hooks("ValidatingWebhookConfiguration", url + "/validate", ca_pem)));
  std::stop_source established;
  Result<> watched = api.Watch(
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?watch=1&timeoutSeconds=20&fieldSelector="
      "metadata.name%3Dfleets.fleets.example.com",
      established.get_token(), [&](const json::value& event) {
        if (IsEstablished(event.at("object").as_object())) established.request_stop();
      });
  if (established.stop_requested()) return {};
  return watched ? Error(Code::kTimeout, "fleets are not served") : watched.error();
}

}  // namespace keelson::test_operator
