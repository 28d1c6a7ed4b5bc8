// Both webhook plugins against a real HTTPS server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/testing/object_store.h"
#include "controlplane/apiserver/admission/webhook/testing/hook_server.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/api/proto/autoscaling_v2.pb.h"

namespace keelson::apiserver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
namespace json = boost::json;
using registry::Operation;
using MutatingConfiguration = api::admissionregistration::v1::MutatingWebhookConfiguration;
using ValidatingConfiguration = api::admissionregistration::v1::ValidatingWebhookConfiguration;

const User kUser{"alice", "", {"dev"}, {}};

// Everybody may get pods, and nothing else.
class PodReaders : public Authorizer {
 public:
  Decision Authorize(const Attributes& attributes) const override {
    return {attributes.request.resource == "pods" && attributes.request.verb == "get", "", ""};
  }
  UserRules RulesFor(const User&, std::string_view) const override { return {}; }
};

// One webhook; `more` has further members.
struct HookText {
  std::string name, path, more;
  std::string resources = "configmaps";
};

class WebhookPlugins : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    store_ = std::make_unique<ObjectStore>();
    services_ = std::make_unique<ServiceResolver>(store_->get());
    store_->Put<corev1::Namespace>(R"({"metadata":{"name":"ns","labels":{"env":"prod"}}})");
  }

  std::string Client(const std::string& path) const {
    return R"({"url":")" + server_.service().url() + path + R"(","caBundle":")" +
           EncodeBase64(server_.service().ca_pem()) + "\"}";
  }
  std::string Configuration(const std::string& name, const std::vector<HookText>& hooks) const {
    std::string out = R"({"metadata":{"name":")" + name + R"("},"webhooks":[)";
    for (const HookText& hook : hooks) {
      if (out.back() != '[') out += ',';
      out += R"({"name":")" + hook.name +
             R"(","admissionReviewVersions":["v1"],"sideEffects":"None","rules":[{"operations":["*"],
             "apiGroups":["*"],"apiVersions":["*"],"resources":[")" +
             hook.resources + R"("]}])" + hook.more;
      if (hook.more.find("clientConfig") == std::string::npos) {
        out += R"(,"clientConfig":)" + Client(hook.path);
      }
      out += "}";
    }
    return out + "]}";
  }
  void Validating(const std::string& name, const std::vector<HookText>& hooks) {
    store_->Put<ValidatingConfiguration>(Configuration(name, hooks));
  }
  void Mutating(const std::string& name, const std::vector<HookText>& hooks) {
    store_->Put<MutatingConfiguration>(Configuration(name, hooks));
  }

  // One request through a chain of both plugins. Returns the error's message, "" when it is admitted.
  std::string Admit(Operation operation = Operation::kCreate, bool dry_run = false,
                    SteadyTime deadline = SteadyTime::max()) {
    std::vector<std::unique_ptr<AdmissionPlugin>> plugins;
    plugins.push_back(NewMutatingWebhooks(store_->get(), *services_, authorizer_));
    plugins.push_back(NewValidatingWebhooks(store_->get(), *services_, authorizer_));
    const AdmissionChain chain(std::move(plugins));
    notes_ = {};
    const bool deletes = operation == Operation::kDelete;
    AdmissionRequest request{operation,
                             *info_,
                             "ns",
                             "x",
                             deletes ? nullptr : object_.get(),
                             deletes ? object_.get() : nullptr,
                             kUser,
                             dry_run,
                             &notes_,
                             "create"};
    request.deadline = deadline;
    Result<> result = chain.Mutate(request);
    if (result) result = chain.Validate(request);
    code_ = result ? 200 : HttpStatus(result.error().code());
    return result ? "" : result.error().message();
  }
  template <typename T>
  void Remove(const std::string& name) {
    storage::Conflict conflict;
    const api::ResourceInfo& info = api::ResourceOf<T>();
    const storage::ObjectPtr object = store_->get().Peek(info, name);
    ASSERT_TRUE(object);
    ASSERT_TRUE(store_->get().Delete(info, name, object->revision(), conflict, {}));
    ASSERT_TRUE(store_->get().Get(info, name, "", {}));
  }
  template <typename T>
  T& Object(std::string_view text) {
    auto object = std::make_unique<T>();
    EXPECT_TRUE(api::DecodeJson(text, *object)) << text;
    T& out = *object;
    object_ = std::move(object);
    info_ = &api::ResourceOf<T>();
    return out;
  }
  corev1::ConfigMap& Map(const std::string& labels = "{}") {
    return Object<corev1::ConfigMap>(R"({"metadata":{"name":"x","namespace":"ns","labels":)" + labels + "}}");
  }

  HookServer server_;
  std::unique_ptr<ObjectStore> store_;
  std::unique_ptr<ServiceResolver> services_;
  const std::shared_ptr<const Authorizer> authorizer_ = std::make_shared<PodReaders>();
  std::unique_ptr<api::Message> object_;
  const api::ResourceInfo* info_ = nullptr;
  AdmissionNotes notes_;
  int code_ = 0;
};

TEST_F(WebhookPlugins, DenialsCarryTheWebhooksStatus) {
  Validating("v", {{"v.example.com", "/deny", ""}});
  struct {
    const char* status;
    const char* message;
    int code;
    const char* reason;
  } cases[] = {
      {R"({"message":"not today","code":403,"reason":"Forbidden"})",
       R"(admission webhook "v.example.com" denied the request: not today)", 403, "Forbidden"},
      {R"({"reason":"TooWide"})", R"(admission webhook "v.example.com" denied the request: TooWide)", 400,
       "TooWide"},
      {"{}", R"(admission webhook "v.example.com" denied the request without explanation)", 400, ""},
      {R"({"code":200,"status":"Success","message":"odd"})",
       R"(admission webhook "v.example.com" denied the request: odd)", 400, ""},
  };
  for (const auto& c : cases) {
    server_.On("/deny", [&](const json::value&) {
      return std::string(
                 R"("allowed":false,"warnings":["careful"],"auditAnnotations":{"why":"policy"},"status":)") +
             c.status;
    });
    Map();
    EXPECT_EQ(Admit(), c.message);
    ASSERT_TRUE(notes_.denial) << c.status;
    EXPECT_EQ(notes_.denial->message(), c.message);
    EXPECT_EQ(notes_.denial->code(), c.code);
    EXPECT_EQ(notes_.denial->reason(), c.reason);
    EXPECT_EQ(notes_.denial->status(), "Failure");
    EXPECT_THAT(notes_.told, ElementsAre("careful"));
    EXPECT_EQ(notes_.annotations["v.example.com/why"], "policy");
  }
}

TEST_F(WebhookPlugins, SelectorsChooseRequests) {
  Validating("v", {{"ns.example.com", "/ns", R"(,"namespaceSelector":{"matchLabels":{"env":"prod"}})"},
                   {"other.example.com", "/other", R"(,"namespaceSelector":{"matchLabels":{"env":"test"}})"},
                   {"object.example.com", "/object", R"(,"objectSelector":{"matchLabels":{"app":"web"}})"}});
  Map();
  EXPECT_EQ(Admit(), "");
  Map(R"({"app":"web"})");
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(Admit(Operation::kDelete), "");
  EXPECT_EQ(server_.Seen("/ns").size(), 3u);
  EXPECT_EQ(server_.Seen("/other").size(), 0u);
  ASSERT_EQ(server_.Seen("/object").size(), 2u);
  EXPECT_EQ(server_.Seen("/object")[0].at("operation").as_string(), "CREATE");
  EXPECT_TRUE(server_.Seen("/object")[1].at("object").is_null());
  EXPECT_EQ(server_.Seen("/object")[1].at("oldObject").at("kind").as_string(), "ConfigMap");
}

TEST_F(WebhookPlugins, FailedCallsFollowFailurePolicy) {
  const std::string url = server_.service().url();
  server_.OnRaw("/html", {200, "<html>"});
  server_.OnRaw("/500", {500, "boom"});
  server_.OnRaw("/404", {404, ""});
  server_.OnRaw("/302", {302, ""});
  server_.OnRaw("/huge", {200, std::string(9u << 20, 'x')});
  server_.OnRaw("/uid", {200, R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",
                                  "response":{"uid":"other","allowed":true}})"});
  crypto::TestPki stranger;
  const std::string ca = EncodeBase64(server_.service().ca_pem());
  auto client = [](const std::string& target, const std::string& bundle) {
    return R"(,"clientConfig":{)" + target + R"(,"caBundle":")" + bundle + "\"}";
  };
  const std::string service = R"("service":{"namespace":"default","name":"hook","path":"/ok"})";
  struct {
    std::string path, more, error;  // what follows `failed calling webhook "x": `; its beginning
  } cases[] = {
      {"/html", "",
       "failed to call webhook: couldn't get version/kind; json parse error: invalid character '<'"},
      {"/500", "", R"(failed to call webhook: an error on the server ("boom") has prevented)"},
      {"/404", "", "failed to call webhook: the server could not find the requested resource"},
      {"/302", "", "failed to call webhook: the server responded with the status code 302"},
      {"/huge", "",
       "failed to call webhook: Post \"" + url + "/huge?timeout=10s\": the response is longer than"},
      {"/uid", "", "received invalid webhook response: expected response.uid="},
      {"/ok", R"(,"timeoutSeconds":3)" + client(R"("url":"https://127.0.0.1:1/ok")", ca),
       "failed to call webhook: Post \"https://127.0.0.1:1/ok?timeout=3s\": dial tcp 127.0.0.1:1: connect: "
       "connection refused"},
      {"/ok", client("\"url\":\"" + url + "/ok\"", EncodeBase64(stranger.ca_pem())),
       "failed to call webhook: Post \"" + url +
           "/ok?timeout=10s\": tls: failed to verify certificate: x509: certificate signed by unknown "
           "authority"},
      {"/ok", client("\"url\":\"" + url + "/ok\"", EncodeBase64("no certificate")),
       "could not get REST client: unable to load root certificates: "},
      {"/ok", client(service, ca),
       "failed to call webhook: Post \"https://hook.default.svc:443/ok?timeout=10s\": service \"hook\" not "
       "found"},
      {"/ok", R"(,"admissionReviewVersions":["v9"])",
       "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, "
       "v1beta1)"},
  };
  int count = 0;
  for (const auto& c : cases) {
    const std::string name = "c" + std::to_string(++count);
    const std::string hook = name + ".example.com";
    // The second configuration is for objects with another label.
    Validating(name,
               {{hook, c.path, c.more + R"(,"objectSelector":{"matchLabels":{"case":")" + name + "\"}}"}});
    Validating(name + "i",
               {{hook, c.path,
                 c.more + R"(,"failurePolicy":"Ignore","objectSelector":{"matchLabels":{"case":")" + name +
                     "i\"}}"}});
    Map(R"({"case":")" + name + "\"}");
    EXPECT_THAT(Admit(),
                StartsWith("Internal error occurred: failed calling webhook \"" + hook + "\": " + c.error));
    EXPECT_EQ(code_, 500);
    EXPECT_FALSE(notes_.denial);
    Map(R"({"case":")" + name + "i\"}");
    EXPECT_EQ(Admit(), "");
    EXPECT_EQ(notes_.annotations["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"], hook);
  }
}

TEST_F(WebhookPlugins, SlowWebhooksEndWithTheRequest) {
  std::promise<void> release;
  std::shared_future<void> released(release.get_future());
  server_.On("/slow", [released](const json::value&) {
    released.wait();
    return std::string();
  });
  Validating("v", {{"slow.example.com", "/slow", ""}});
  Map();
  const SteadyTime deadline = SteadyTime::clock::now() + std::chrono::milliseconds(50);
  EXPECT_THAT(Admit(Operation::kCreate, false, deadline),
              HasSubstr("?timeout=1s\": context deadline exceeded"));
  EXPECT_EQ(code_, 500);
  release.set_value();
}

TEST_F(WebhookPlugins, ValidatingWebhooksRunSideBySide) {
  std::atomic<int> waiting{0};
  std::promise<void> all;
  std::shared_future<void> together(all.get_future());
  auto meet = [&, together](const json::value&) {
    if (++waiting == 3) all.set_value();
    together.wait_for(std::chrono::seconds(10));
    return std::string();
  };
  for (const char* path : {"/a", "/b", "/c"}) server_.On(path, meet);
  Validating("v", {{"a.example.com", "/a", ""}, {"b.example.com", "/b", ""}, {"c.example.com", "/c", ""}});
  Map();
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(waiting, 3);
}

TEST_F(WebhookPlugins, DryRunsNeedWebhooksWithoutSideEffects) {
  Validating("v",
             {{"some.example.com", "/some", R"(,"sideEffects":"Some","failurePolicy":"Ignore")", "secrets"},
              {"none.example.com", "/none", R"(,"sideEffects":"NoneOnDryRun")"}});
  Map();
  EXPECT_EQ(Admit(Operation::kCreate, true), "");
  EXPECT_TRUE(server_.Seen("/none")[0].at("dryRun").as_bool());
  Object<corev1::Secret>(R"({"metadata":{"name":"x","namespace":"ns"}})");
  EXPECT_EQ(Admit(Operation::kCreate, true),
            R"(admission webhook "some.example.com" does not support dry run)");
  EXPECT_EQ(code_, 400);
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(server_.Seen("/some").size(), 1u);
}

TEST_F(WebhookPlugins, PatchesApplyInOrder) {
  server_.On("/one", [](const json::value&) {
    return HookServer::Patch(R"([{"op":"add","path":"/data","value":{"one":"1"}}])");
  });
  server_.On("/two", [](const json::value& request) {
    EXPECT_EQ(request.at("object").at("data").at("one").as_string(), "1");
    return HookServer::Patch(R"([{"op":"add","path":"/data/two","value":"2"}])");
  });
  server_.On("/nothing", [](const json::value&) { return HookServer::Patch("[]"); });
  Mutating("a", {{"one.example.com", "/one", ""}, {"nothing.example.com", "/nothing", ""}});
  Mutating("b", {{"two.example.com", "/two", ""}});
  const corev1::ConfigMap& map = Map();
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(api::EncodeJson(map),
            R"({"metadata":{"name":"x","namespace":"ns"},"data":{"one":"1","two":"2"}})");
  EXPECT_EQ(notes_.annotations["mutation.webhook.admission.k8s.io/round_0_index_0"],
            R"({"configuration":"a","webhook":"one.example.com","mutated":true})");
  EXPECT_EQ(notes_.annotations["mutation.webhook.admission.k8s.io/round_0_index_1"],
            R"({"configuration":"a","webhook":"nothing.example.com","mutated":false})");
  EXPECT_EQ(notes_.body_annotations["patch.webhook.admission.k8s.io/round_0_index_2"],
            R"({"configuration":"b","webhook":"two.example.com","patch":[{"op":"add","path":"/data/two",)"
            R"("value":"2"}],"patchType":"JSONPatch"})");
}

TEST_F(WebhookPlugins, BadPatchesAreRefused) {
  Mutating("m", {{"m.example.com", "/m", ""}});
  struct {
    std::string answer, error;  // its beginning
    Operation operation = Operation::kCreate;
  } cases[] = {
      {HookServer::Patch("{}"),
       R"(Internal error occurred: failed calling webhook "m.example.com": received undecodable patch in )"
       "webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch"},
      {HookServer::Patch("[{"),
       R"(Internal error occurred: failed calling webhook "m.example.com": received )"
       "undecodable patch in webhook response: unexpected end of JSON input"},
      {HookServer::Patch(R"([{"op":"remove","path":"/data/none"}])"),
       "Internal error occurred: remove operation does not apply: "},
      {HookServer::Patch(R"([{"op":"add","path":"/data","value":7}])"),
       "Internal error occurred: json: cannot unmarshal number"},
      {HookServer::Patch(R"([{"op":"replace","path":"/kind","value":"Secret"}])"),
       "Internal error occurred: unable to convert v1, Kind=Secret to v1, Kind=ConfigMap"},
      {R"("allowed":true,"patchType":"Merge","patch":"W3t9XQ==")",
       R"(Internal error occurred: failed calling webhook "m.example.com": unsupported patch type "Merge")"},
      {HookServer::Patch(R"([{"op":"add","path":"/data","value":{}}])"),
       R"(Internal error occurred: admission webhook "m.example.com" attempted to modify the object, which )"
       "is not supported for this operation",
       Operation::kDelete},
  };
  for (const auto& c : cases) {
    server_.On("/m", [&](const json::value&) { return c.answer; });
    Map();
    EXPECT_THAT(Admit(c.operation), StartsWith(c.error));
  }
}

TEST_F(WebhookPlugins, LaterChangesAreShownAgainToThoseWhoAsk) {
  auto count = [](const std::string& key) {
    return [key](const json::value& request) {
      const json::object* data = request.at("object").as_object().contains("data")
                                     ? &request.at("object").at("data").as_object()
                                     : nullptr;
      const bool again = data && data->contains(key);
      if (again) return std::string();
      const std::string path = data ? "/data/" + key : "/data";
      const std::string value = data ? "\"1\"" : "{\"" + key + "\":\"1\"}";
      return HookServer::Patch(R"([{"op":"add","path":")" + path + R"(","value":)" + value + "}]");
    };
  };
  server_.On("/first", count("first"));
  server_.On("/never", count("never"));
  server_.On("/last", count("last"));
  Mutating("m", {{"first.example.com", "/first", R"(,"reinvocationPolicy":"IfNeeded")"},
                 {"never.example.com", "/never", ""},
                 {"last.example.com", "/last", R"(,"reinvocationPolicy":"IfNeeded")"}});
  Map();
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(server_.Seen("/first").size(), 2u);
  EXPECT_EQ(server_.Seen("/never").size(), 1u);
  EXPECT_EQ(server_.Seen("/last").size(), 1u);
  EXPECT_TRUE(server_.Seen("/first")[1].at("object").at("data").as_object().contains("last"));
  EXPECT_EQ(notes_.annotations["mutation.webhook.admission.k8s.io/round_1_index_0"],
            R"({"configuration":"m","webhook":"first.example.com","mutated":false})");
}

TEST_F(WebhookPlugins, EquivalentVersionsAreConverted) {
  const std::string rules = R"(,"rules":[{"operations":["*"],"apiGroups":["autoscaling"],"apiVersions":["v2"],
      "resources":["horizontalpodautoscalers"]}])";
  Validating("v", {{"v.example.com", "/v", rules},
                   {"exact.example.com", "/exact", rules + R"(,"matchPolicy":"Exact")"}});
  Mutating("m", {{"m.example.com", "/m", rules}});
  server_.On("/m", [](const json::value&) {
    return HookServer::Patch(R"([{"op":"replace","path":"/spec/metrics/0/resource/target/averageUtilization",
                                  "value":70}])");
  });
  const auto& hpa =
      Object<autoscalingv1::HorizontalPodAutoscaler>(R"({"metadata":{"name":"x","namespace":"ns"},
      "spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d"},
              "targetCPUUtilizationPercentage":50}})");
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(hpa.spec().target_cpu_utilization_percentage(), 70);
  EXPECT_EQ(server_.Seen("/exact").size(), 0u);
  ASSERT_EQ(server_.Seen("/v").size(), 1u);
  const json::value seen = server_.Seen("/v")[0];
  EXPECT_EQ(seen.at("object").at("apiVersion").as_string(), "autoscaling/v2");
  EXPECT_EQ(seen.at("kind").at("version").as_string(), "v2");
  EXPECT_EQ(seen.at("requestKind").at("version").as_string(), "v1");
}

TEST_F(WebhookPlugins, ServicesAreReachedAtTheirEndpoints) {
  const std::string url = server_.service().url();
  const std::string port = url.substr(url.rfind(':') + 1);
  store_->Put<corev1::Service>(R"({"metadata":{"name":"hook","namespace":"default"},"spec":{
      "clusterIP":"10.96.0.9","type":"ClusterIP","ports":[{"name":"https","port":8443}]}})");
  store_->Put<discoveryv1::EndpointSlice>(R"({"metadata":{"name":"hook-a","namespace":"default",
      "labels":{"kubernetes.io/service-name":"hook"}},"addressType":"IPv4",
      "ports":[{"name":"https","port":)" + port +
                                          R"(}],"endpoints":[{"addresses":["127.0.0.1"]}]})");
  const std::string ca = EncodeBase64(server_.service().ca_pem());
  Validating("v",
             {{"v.example.com", "",
               R"(,"clientConfig":{"service":{"namespace":"default","name":"hook","path":"/svc","port":8443},
                    "caBundle":")" +
                   ca + "\"}"}});
  Map();
  EXPECT_EQ(Admit(), "");
  ASSERT_EQ(server_.Seen("/svc").size(), 1u);
  EXPECT_EQ(server_.LastQuery(), "timeout=10s");
  // The certificate is not for this name.
  store_->Put<corev1::Service>(R"({"metadata":{"name":"hook","namespace":"kube-system"},"spec":{
      "clusterIP":"10.96.0.10","type":"ClusterIP","ports":[{"name":"https","port":443}]}})");
  store_->Put<discoveryv1::EndpointSlice>(R"({"metadata":{"name":"hook-b","namespace":"kube-system",
      "labels":{"kubernetes.io/service-name":"hook"}},"addressType":"IPv4",
      "ports":[{"name":"https","port":)" + port +
                                          R"(}],"endpoints":[{"addresses":["127.0.0.1"]}]})");
  Validating("w", {{"w.example.com", "",
                    R"(,"clientConfig":{"service":{"namespace":"kube-system","name":"hook"},"caBundle":")" +
                        ca + "\"}"}});
  EXPECT_THAT(Admit(),
              HasSubstr("Post \"https://hook.kube-system.svc:443/?timeout=10s\": tls: failed to verify "
                        "certificate: x509: certificate is not valid for this name"));
}

// The conditions of a webhook, as a further member.
std::string Conditions(const std::vector<std::string>& expressions, const std::string& more = "") {
  std::string out = more + R"(,"matchConditions":[)";
  for (const std::string& expression : expressions) {
    if (out.back() != '[') out += ',';
    out += R"({"name":"c","expression":")" + expression + "\"}";
  }
  return out + "]";
}

TEST_F(WebhookPlugins, MatchConditionsDecideAboutCalls) {
  server_.On("/v", [](const json::value&) { return std::string(R"("allowed":false)"); });
  const std::string skip = "object.metadata.name != 'x'";
  const std::string group = "'dev' in request.userInfo.groups", broken = "object.none == 1";
  const std::string ns = "request.namespace == 'ns' && request.resource.resource == 'configmaps'";
  const std::string failed = "expression 'object.none == 1' resulted in error: no such key: none";
  struct {
    std::vector<std::string> expressions;
    std::string error;  // empty: not called
    std::string more;
  } cases[] = {
      {{"true"}, "denied the request"},
      {{"true", "false"}, ""},
      {{group, ns, "request.operation == 'CREATE' && oldObject == null"}, "denied the request"},
      {{skip}, ""},
      {{broken}, "configmaps \"x\" is forbidden: " + failed},
      // One that is false decides.
      {{broken, "false"}, ""},
      {{broken, broken + " || false"},
       "[" + failed + ", expression 'object.none == 1 || false' resulted in error: no such key: none]"},
      {{broken}, "", R"(,"failurePolicy":"Ignore")"},
      // What does not compile counts as failed.
      {{"x"}, "compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference to 'x'"},
      {{"authorizer.group('').resource('pods').namespace('ns').check('get').allowed()"}, "denied"},
      {{"authorizer.requestResource.check('delete').allowed()"}, ""},
      {{"authorizer.serviceAccount('ns', 'sa').path('/healthz').check('get').allowed()"}, ""},
  };
  Map();
  int number = 0;
  for (const auto& c : cases) {
    const std::string name = "v" + std::to_string(number++);
    Validating(name, {{name + ".example.com", "/v", Conditions(c.expressions, c.more)}});
    const std::string error = Admit();
    if (c.error.empty()) {
      EXPECT_EQ(error, "") << c.expressions.back();
    } else {
      EXPECT_THAT(error, HasSubstr(c.error)) << c.expressions.back();
    }
    Remove<ValidatingConfiguration>(name);
  }
}

TEST_F(WebhookPlugins, MatchConditionsHaveABudget) {
  // Each check of the authorizer costs 350,000: together these are above 2,500,000.
  const std::string check = "authorizer.path('/x').check('get').allowed() || true";
  Validating("v", {{"v.example.com", "/v", Conditions(std::vector<std::string>(7, check))}});
  Map();
  EXPECT_EQ(Admit(), "");
  Validating("w", {{"w.example.com", "/v", Conditions(std::vector<std::string>(8, check))}});
  EXPECT_THAT(Admit(), HasSubstr("validation failed due to running out of cost budget, no further validation "
                                 "rules will be run"));
}

TEST_F(WebhookPlugins, MatchConditionsSeeEarlierMutations) {
  server_.On("/first", [](const json::value&) {
    return HookServer::Patch(R"([{"op":"add","path":"/metadata/labels","value":{"a":"b"}}])");
  });
  Mutating("a", {{"a.example.com", "/first", ""}});
  Mutating("b", {{"b.example.com", "/second", Conditions({"object.metadata.labels['a'] == 'b'"})},
                 {"c.example.com", "/third", Conditions({"object.metadata.labels['a'] == 'c'"})}});
  Map();
  EXPECT_EQ(Admit(), "");
  EXPECT_EQ(server_.Seen("/second").size(), 1U);
  EXPECT_THAT(server_.Seen("/third"), IsEmpty());
}

TEST_F(WebhookPlugins, ConfigurationsAreNobodysBusiness) {
  Validating("v", {{"v.example.com", "/v", "", "*/*"}});
  Mutating("m", {{"m.example.com", "/m", "", "*/*"}});
  Object<ValidatingConfiguration>(R"({"metadata":{"name":"x"}})");
  for (Operation operation : {Operation::kCreate, Operation::kUpdate, Operation::kDelete}) {
    EXPECT_EQ(Admit(operation), "");
  }
  EXPECT_THAT(server_.Seen("/v"), IsEmpty());
  EXPECT_THAT(server_.Seen("/m"), IsEmpty());
}

}  // namespace
}  // namespace keelson::apiserver
