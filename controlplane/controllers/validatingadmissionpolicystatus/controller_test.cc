#include "controlplane/controllers/validatingadmissionpolicystatus/controller.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/codec/codec.h"
#include "lib/api/openapi/openapi.h"

namespace keelson::controllers {
namespace {

using admissionregistrationv1::ValidatingAdmissionPolicy;

constexpr char kWidgets[] =
    R"({"components":{"schemas":{"com.example.v1.Widget":{"type":"object",)"
    R"("properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}},)"
    R"("x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Widget"}]}}}})";

std::string Rules(const std::string& groups, const std::string& versions, const std::string& resources) {
  return fmt::format(R"({{"operations":["*"],"apiGroups":{},"apiVersions":{},"resources":{}}})", groups,
                     versions, resources);
}
const std::string kDeployments = Rules(R"(["apps"])", R"(["v1"])", R"(["deployments"])");

ValidatingAdmissionPolicy Policy(const std::string& rules, const std::string& spec) {
  ValidatingAdmissionPolicy out;
  const std::string json =
      R"({"metadata":{"name":"p","generation":1},"spec":{"matchConstraints":{"resourceRules":[)" + rules +
      "]}," + spec + "}}";
  const Result<> read = api::DecodeJson(json, out);
  EXPECT_TRUE(read) << (read ? "" : read.error().message()) << json;
  return out;
}

std::string Validation(const std::string& expression, const std::string& more = "") {
  return R"("validations":[{"expression":")" + expression + "\"" + more + "}]";
}

class PolicyStatusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.fake->SetInterceptor([this](const client::ApiRequest& request) { return Documents(request); });
    cluster_.fake->Serve({"example.com", "widgets", "Widget", true, {"v1"}});
  }

  std::optional<Result<client::ApiResponse>> Documents(const client::ApiRequest& request) {
    const std::string prefix = "/openapi/v3/";
    if (!request.target.starts_with(prefix)) return std::nullopt;
    const std::string path = request.target.substr(prefix.size());
    ++documents_;
    if (path == "apis/example.com/v1") return client::ApiResponse{200, "application/json", kWidgets};
    std::string text = api::OpenApiV3Json(path);
    if (text.empty()) return client::FakeApi::Refuse(Error(Code::kNotFound, "no such document"));
    return client::ApiResponse{200, "application/json", std::move(text)};
  }

  // The warnings of a policy, each as "FIELD: WARNING".
  std::vector<std::string> Warnings(const ValidatingAdmissionPolicy& policy) {
    cluster_.fake->Put(policy);
    if (!started_) cluster_.Start();
    started_ = true;
    cluster_.Drain({&controller_});
    const auto after = cluster_.Get<ValidatingAdmissionPolicy>("", "p");
    EXPECT_EQ(after.status().observed_generation(), policy.metadata().generation());
    EXPECT_TRUE(after.status().has_type_checking());
    std::vector<std::string> out;
    for (const auto& one : after.status().type_checking().expression_warnings()) {
      out.push_back(one.field_ref() + ": " + one.warning());
    }
    return out;
  }
  std::vector<std::string> Warnings(const std::string& rules, const std::string& spec) {
    return Warnings(Policy(rules, spec));
  }

  TestCluster cluster_;
  ValidatingAdmissionPolicyStatusController& controller_ =
      cluster_.Make<ValidatingAdmissionPolicyStatusController>();
  bool started_ = false;
  int documents_ = 0;
};

using Texts = std::vector<std::string>;

TEST_F(PolicyStatusTest, NamesFieldsThatObjectsDoNotHave) {
  EXPECT_EQ(Warnings(kDeployments, Validation("object.replicas > 1")),
            Texts{"spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined "
                  "field 'replicas'\n | object.replicas > 1\n | ......^\n"});
}

TEST_F(PolicyStatusTest, KnowsGoodExpressions) {
  for (const char* expression :
       {"object.spec.replicas <= 5", "has(object.spec.paused) && oldObject.metadata.name == 'x'",
        "object.spec.template.spec.containers.all(c, c.name.startsWith('a') && c.ports[0].hostPort == 0)",
        "object.metadata.__namespace__ == namespaceObject.metadata.name",
        "request.operation == 'CREATE' && authorizer.group('').resource('pods').check('get').allowed()",
        "authorizer.requestResource.check('use').allowed()"}) {
    EXPECT_EQ(Warnings(kDeployments, Validation(expression)), Texts{}) << expression;
    ASSERT_TRUE(cluster_.api.Delete<ValidatingAdmissionPolicy>("", "p"));
  }
}

// Every kind that the rules name, in one warning.
TEST_F(PolicyStatusTest, ChecksAgainstEachKind) {
  const std::string rules = Rules(R"(["apps",""])", R"(["v1"])", R"(["pods","deployments","pods/log"])") +
                            "," + Rules(R"(["example.com"])", R"(["v1"])", R"(["widgets"])");
  const Texts have = Warnings(rules, Validation("object.spec.size > 1"));
  ASSERT_EQ(have.size(), 1u);
  constexpr char kError[] =
      "ERROR: <input>:1:12: undefined field 'size'\n | object.spec.size > 1\n | ...........^\n";
  EXPECT_EQ(have[0], fmt::format("spec.validations[0].expression: /v1, Kind=Pod: {0}\napps/v1, "
                                 "Kind=Deployment: {0}",
                                 kError));
}

TEST_F(PolicyStatusTest, MessagesVariablesAndParameters) {
  const std::string spec =
      R"("paramKind":{"apiVersion":"v1","kind":"ConfigMap"},)"
      R"("variables":[{"name":"count","expression":"object.spec.replicas"}],)"
      R"("validations":[{"expression":"variables.count == 'x'","messageExpression":"object.metadata.nam"},)"
      R"x({"expression":"variables.count > int(params.data['max'])"},{"expression":"params.dat == null"}])x";
  const Texts have = Warnings(kDeployments, spec);
  ASSERT_EQ(have.size(), 3u);
  EXPECT_NE(have[0].find("found no matching overload for '_==_' applied to '(int, string)'"),
            std::string::npos)
      << have[0];
  EXPECT_TRUE(
      have[1].starts_with("spec.validations[0].messageExpression: apps/v1, Kind=Deployment: ERROR: "
                          "<input>:1:16: undefined field 'nam'"))
      << have[1];
  EXPECT_NE(have[2].find("undefined field 'dat'"), std::string::npos) << have[2];
}

// Without a schema of parameters expressions cannot name them.
TEST_F(PolicyStatusTest, UnknownParameters) {
  const Texts have =
      Warnings(kDeployments, R"("paramKind":{"apiVersion":"nowhere.example.com/v1","kind":"Limit"},)" +
                                 Validation("params.max > 1"));
  ASSERT_EQ(have.size(), 1u);
  EXPECT_NE(have[0].find("undeclared reference to 'params'"), std::string::npos) << have[0];
}

// What the rules do not name is not checked.
TEST_F(PolicyStatusTest, WildcardsAndUnknownResources) {
  for (const std::string& rules :
       {Rules(R"(["*"])", R"(["v1"])", R"(["deployments"])"),
        Rules(R"(["apps"])", R"(["*"])", R"(["deployments"])"), Rules(R"(["apps"])", R"(["v1"])", R"(["*"])"),
        Rules(R"(["apps"])", R"(["v1"])", R"(["deployments/scale"])"),
        Rules(R"(["nowhere.example.com"])", R"(["v1"])", R"(["things"])")}) {
    EXPECT_EQ(Warnings(rules, Validation("object.nothing")), Texts{}) << rules;
    ASSERT_TRUE(cluster_.api.Delete<ValidatingAdmissionPolicy>("", "p"));
  }
  EXPECT_EQ(documents_, 0);
}

TEST_F(PolicyStatusTest, OnceAGeneration) {
  ValidatingAdmissionPolicy policy = Policy(kDeployments, Validation("object.replicas > 1"));
  EXPECT_EQ(Warnings(policy).size(), 1u);
  EXPECT_EQ(documents_, 1);
  auto stored = cluster_.Get<ValidatingAdmissionPolicy>("", "p");
  (*stored.mutable_metadata()->mutable_labels())["a"] = "b";
  cluster_.fake->Put(stored);
  cluster_.Drain({&controller_});
  EXPECT_EQ(documents_, 1);

  *stored.mutable_spec() = Policy(kDeployments, Validation("object.spec.replicas > 1")).spec();
  stored.mutable_metadata()->set_generation(2);
  EXPECT_EQ(Warnings(stored), Texts{});
  EXPECT_EQ(documents_, 2);
}

// Ten kinds at most, so that a policy about everything costs little.
TEST(KindsToCheckTest, EndWithTheTenth) {
  const std::string many = R"(["a","b","c","d","e","f","g","h","i","j","k","l"])";
  const auto kind_of = [](std::string_view, std::string_view, const std::string& resource) {
    return resource == "b" ? "" : "K" + resource;
  };
  const auto kinds = KindsToCheck(
      Policy(Rules(R"(["z"])", R"(["v2","v1"])", many) + "," + kDeployments, Validation("true")), kind_of);
  ASSERT_EQ(kinds.size(), 10u);
  EXPECT_EQ(kinds.front().ToString(), "z/v1, Kind=Ka");
  EXPECT_EQ(kinds.back().ToString(), "z/v1, Kind=Kk");
}

}  // namespace
}  // namespace keelson::controllers
