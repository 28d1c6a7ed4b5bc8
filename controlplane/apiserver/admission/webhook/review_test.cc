#include "controlplane/apiserver/admission/webhook/review.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"

namespace keelson::apiserver::webhook {
namespace {

namespace json = boost::json;

const User kUser{"alice", "u1", {"dev", "ops"}, {{"scopes", {"a", "b"}}}};

TEST(AdmissionReview, SaysAllOfTheRequest) {
  corev1::ConfigMap object;
  ASSERT_TRUE(api::DecodeJson(R"({"metadata":{"name":"c","namespace":"ns"},"data":{"a":"1"}})", object));
  const api::ResourceInfo& row = api::ResourceOf<corev1::ConfigMap>();
  const OperationOptions options{"kubectl-create", "Strict"};
  AdmissionRequest request{registry::Operation::kCreate, row, "ns", "", &object, nullptr, kUser, true};
  request.options = &options;
  const Question question = MakeQuestion(request, "v1", row, api::EncodeJson(object, row.Gvk()), "");
  const json::value review = json::parse(question.json);
  EXPECT_EQ(review.at("kind").as_string(), "AdmissionReview");
  EXPECT_EQ(review.at("apiVersion").as_string(), "admission.k8s.io/v1");
  json::object shown = review.at("request").as_object();
  EXPECT_EQ(std::string(shown.at("uid").as_string()), question.uid);
  shown.erase("uid");
  EXPECT_EQ(shown, json::parse(R"({
      "kind":{"group":"","version":"v1","kind":"ConfigMap"},
      "resource":{"group":"","version":"v1","resource":"configmaps"},
      "requestKind":{"group":"","version":"v1","kind":"ConfigMap"},
      "requestResource":{"group":"","version":"v1","resource":"configmaps"},
      "name":"c","namespace":"ns","operation":"CREATE",
      "userInfo":{"username":"alice","uid":"u1","groups":["dev","ops"],"extra":{"scopes":["a","b"]}},
      "object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"ns"},"data":{"a":"1"}},
      "oldObject":null,"dryRun":true,
      "options":{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"],
                 "fieldManager":"kubectl-create","fieldValidation":"Strict"}})"))
      << json::serialize(shown);
}

TEST(AdmissionReview, NamesOtherVersionsSubresourcesAndNamespaces) {
  const api::ResourceInfo& hpa = *api::FindResource("autoscaling", "v1", "horizontalpodautoscalers/status");
  const api::ResourceInfo& v2 = *api::FindResource("autoscaling", "v2", "horizontalpodautoscalers/status");
  AdmissionRequest request{registry::Operation::kUpdate, hpa, "ns", "h", nullptr, nullptr, kUser};
  json::value review = json::parse(MakeQuestion(request, "v1beta1", v2, "{}", "{}").json);
  EXPECT_EQ(review.at("apiVersion").as_string(), "admission.k8s.io/v1beta1");
  const json::value& shown = review.at("request");
  EXPECT_EQ(shown.at("kind"),
            json::parse(R"({"group":"autoscaling","version":"v2","kind":"HorizontalPodAutoscaler"})"));
  EXPECT_EQ(shown.at("requestKind").at("version").as_string(), "v1");
  EXPECT_EQ(shown.at("resource").at("resource").as_string(), "horizontalpodautoscalers");
  EXPECT_EQ(shown.at("subResource").as_string(), "status");
  EXPECT_EQ(shown.at("requestSubResource").as_string(), "status");
  EXPECT_TRUE(shown.at("options").is_null());

  const api::ResourceInfo& namespaces = api::ResourceOf<corev1::Namespace>();
  metav1::DeleteOptions deletion;
  deletion.set_propagation_policy("Orphan");
  OperationOptions options;
  options.deletion = &deletion;
  AdmissionRequest removal{registry::Operation::kDelete, namespaces, "", "n", nullptr, nullptr, kUser};
  removal.options = &options;
  review = json::parse(MakeQuestion(removal, "v1", namespaces, "", "{}").json);
  EXPECT_EQ(review.at("request").at("namespace").as_string(), "n");
  EXPECT_TRUE(review.at("request").at("object").is_null());
  EXPECT_EQ(
      review.at("request").at("options"),
      json::parse(R"({"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","propagationPolicy":"Orphan"})"));
  // Upstream names no object of a collection.
  removal.verb = "deletecollection";
  review = json::parse(MakeQuestion(removal, "v1", namespaces, "", "{}").json);
  EXPECT_FALSE(review.at("request").as_object().contains("name"));
}

std::string Review(const std::string& response, const std::string& version = "v1") {
  return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/)" + version + R"(","response":)" +
         response + "}";
}

TEST(AdmissionReview, AnswersAreChecked) {
  const Question v1{"v1", "u", ""}, v1beta1{"v1beta1", "u", ""};
  const std::string patch = R"("patch":"W10=","patchType":"JSONPatch")";  // []
  struct {
    std::string json;
    const Question& question;
    bool mutating;
    std::string error;  // its beginning; empty: good
  } cases[] = {
      {Review(R"({"uid":"u","allowed":true})"), v1, false, ""},
      {Review(R"({"uid":"u","allowed":true,)" + patch + "}"), v1, true, ""},
      {Review(R"({"uid":"u","allowed":true,)" + patch + "}"), v1, false,
       "validating webhook may not return response.patch"},
      {Review(R"({"uid":"u","allowed":true,"patchType":"JSONPatch"})"), v1, false,
       "validating webhook may not return response.patchType"},
      {Review(R"({"uid":"u","allowed":true,"patch":"W10="})"), v1, true,
       "webhook returned response.patch but not response.patchType"},
      {Review(R"({"uid":"u","allowed":true,"patchType":"JSONPatch"})"), v1, true,
       "webhook returned response.patchType but not response.patch"},
      {Review(R"({"uid":"other","allowed":true})"), v1, false, R"(expected response.uid="u", got "other")"},
      {Review("null"), v1, false, "webhook response was absent"},
      {R"({"response":{"uid":"u","allowed":true}})", v1, false,
       "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="},
      {Review(R"({"uid":"u","allowed":true})", "v1beta1"), v1, false,
       "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
       "admission.k8s.io/v1beta1, Kind=AdmissionReview"},
      {R"({"kind":"Pod","apiVersion":"v1"})", v1, false, R"(no kind "Pod" is registered for version "v1")"},
      {"<html>", v1, false, "couldn't get version/kind; json parse error: invalid character '<'"},
      {"", v1, false, "couldn't get version/kind; json parse error: unexpected end of JSON input"},
      {Review(R"({"uid":"u","allowed":"yes"})"), v1, false, "json: cannot unmarshal string"},
      // v1beta1 checks neither UID nor kind, and knows one type of patch.
      {R"({"response":{"allowed":true,"patch":"W10="}})", v1beta1, true, ""},
  };
  for (const auto& c : cases) {
    Result<Answer> answer = ReadAnswer(c.json, c.question, c.mutating);
    ASSERT_EQ(answer.has_value(), c.error.empty()) << c.json;
    if (!answer) {
      EXPECT_EQ(answer.error().message().substr(0, c.error.size()), c.error) << c.json;
    }
    if (answer && c.mutating) {
      EXPECT_EQ(answer->patch, "[]");
      EXPECT_EQ(answer->patch_type, "JSONPatch");
    }
  }
}

}  // namespace
}  // namespace keelson::apiserver::webhook
