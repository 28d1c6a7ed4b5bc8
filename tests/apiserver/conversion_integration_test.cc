// Conversion of custom resources by a webhook, through the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/admission/webhook/testing/hook_server.h"
#include "lib/base/mutex.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

// Converts between v1, {hostPort: "h:p"}, and v2, {host: h, port: p}. `spoil` may change a response.
class ConversionServer {
 public:
  using Spoil = std::function<void(json::object& response)>;
  ConversionServer() : service_([this](const http::ServerRequest& request) { return Serve(request); }) {}

  void Set(Spoil spoil) {
    MutexLock lock(mutex_);
    spoil_ = std::move(spoil);
  }
  size_t calls() const { return calls_; }
  const HttpsService& service() const { return service_; }

 private:
  static json::object Convert(json::object object, const std::string& version) {
    const std::string from(object.at("apiVersion").as_string());
    object["apiVersion"] = version;
    if (from.ends_with("/v1") && version.ends_with("/v2")) {
      const std::string both(object.at("hostPort").as_string());
      object.erase("hostPort");
      object["host"] = both.substr(0, both.find(':'));
      object["port"] = both.substr(both.find(':') + 1);
    } else if (from.ends_with("/v2") && version.ends_with("/v1")) {
      object["hostPort"] =
          std::string(object.at("host").as_string()) + ":" + std::string(object.at("port").as_string());
      object.erase("host");
      object.erase("port");
    }
    return object;
  }
  HttpsService::Answer Serve(const http::ServerRequest& request) {
    const json::value review = json::parse(request.body);
    const json::object& wanted = review.at("request").as_object();
    ++calls_;
    json::array objects;
    for (const json::value& object : wanted.at("objects").as_array()) {
      objects.push_back(Convert(object.as_object(), std::string(wanted.at("desiredAPIVersion").as_string())));
    }
    json::object response = {{"uid", wanted.at("uid")},
                             {"convertedObjects", std::move(objects)},
                             {"result", json::object{{"status", "Success"}}}};
    {
      MutexLock lock(mutex_);
      if (spoil_) spoil_(response);
    }
    return {200, json::serialize(json::object{{"kind", "ConversionReview"},
                                              {"apiVersion", review.at("apiVersion")},
                                              {"response", std::move(response)}})};
  }

  Mutex mutex_;
  Spoil spoil_ KEELSON_GUARDED_BY(mutex_);
  std::atomic<size_t> calls_{0};
  HttpsService service_;  // last: it uses the rest
};

class Conversion : public ClusterTest {
 protected:
  void Define(const std::string& plural, const std::string& kind, const std::string& storage = "v1") {
    auto version = [&](const std::string& name, const std::string& fields) {
      return fmt::format(
          R"({{"name":"{}","served":true,"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{{}}}}}}}}})",
          name, name == storage, fields);
    };
    const std::string text = R"({"type":"string"})";
    Kubectl(
        {"apply", "-f", "-"},
        fmt::format(
            R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{0}.conv.example.com"}},
            "spec":{{"group":"conv.example.com","scope":"Namespaced","names":{{"plural":"{0}","kind":"{1}"}},
            "versions":[{2},{3}],"conversion":{{"strategy":"Webhook","webhook":{{"conversionReviewVersions":["v3","v1","v1beta1"],
            "clientConfig":{{"url":"{4}/convert","caBundle":"{5}"}}}}}}}}}})",
            plural, kind, version("v1", "\"hostPort\":" + text),
            version("v2", "\"host\":" + text + ",\"port\":" + text), server_.service().url(),
            EncodeBase64(server_.service().ca_pem())));
    Kubectl({"wait", "--for=condition=Established", "crd/" + plural + ".conv.example.com", "--timeout=10s"});
  }
  std::string Path(const std::string& version, const std::string& rest) {
    return "/apis/conv.example.com/" + version + "/namespaces/" + ns_ + "/" + rest;
  }
  http::ClientResponse Do(const std::string& method, const std::string& path, const std::string& body = "",
                          const std::string& type = "application/json") {
    http::ClientRequest request;
    request.method = method;
    request.target = path;
    request.headers = {{"Accept", "application/json"}, {"Content-Type", type}};
    request.body = body;
    return cluster_->Do(request);
  }
  std::string Create(const std::string& version, const std::string& plural, const std::string& kind,
                     const std::string& name, const std::string& fields) {
    http::ClientResponse made =
        Do("POST", Path(version, plural),
           fmt::format(R"({{"apiVersion":"conv.example.com/{}","kind":"{}","metadata":{{"name":"{}"}},{}}})",
                       version, kind, name, fields));
    EXPECT_EQ(made.status, 201) << made.body;
    return made.body;
  }
  json::value Get(const std::string& version, const std::string& rest) {
    http::ClientResponse got = Do("GET", Path(version, rest));
    EXPECT_EQ(got.status, 200) << got.body;
    return json::parse(got.body);
  }
  std::string MessageOf(const http::ClientResponse& response) {
    EXPECT_EQ(response.status, 500) << response.body;
    return std::string(json::parse(response.body).at("message").as_string());
  }

  ConversionServer server_;
};

constexpr char kV1[] = R"("hostPort":"a:80")", kV2[] = R"("host":"b","port":"81")";

TEST_F(Conversion, ObjectsAreSeenInEveryVersion) {
  Define("peers", "Peer");
  Create("v1", "peers", "Peer", "a", kV1);
  EXPECT_EQ(server_.calls(), 0u);
  EXPECT_EQ(Get("v2", "peers/a").at("host"), "a");
  EXPECT_EQ(Get("v2", "peers/a").at("port"), "80");
  const json::value made = json::parse(Create("v2", "peers", "Peer", "b", kV2));
  EXPECT_EQ(made.at("apiVersion"), "conv.example.com/v2");
  EXPECT_EQ(made.at("host"), "b");
  EXPECT_EQ(Get("v1", "peers/b").at("hostPort"), "b:81");
  http::ClientResponse patched =
      Do("PATCH", Path("v2", "peers/a"), R"({"port":"82"})", "application/merge-patch+json");
  EXPECT_EQ(patched.status, 200) << patched.body;
  EXPECT_EQ(json::parse(patched.body).at("port"), "82");
  EXPECT_EQ(Get("v1", "peers/a").at("hostPort"), "a:82");
  json::value changed = Get("v2", "peers/b");
  changed.as_object()["host"] = "c";
  EXPECT_EQ(Do("PUT", Path("v2", "peers/b"), json::serialize(changed)).status, 200);
  EXPECT_EQ(Get("v1", "peers/b").at("hostPort"), "c:81");
  // With another storage version, both forms are in etcd and lists are made of both.
  Define("peers", "Peer", "v2");
  Create("v2", "peers", "Peer", "d", kV2);
  for (const char* version : {"v1", "v2"}) {
    const json::value list = Get(version, "peers");
    ASSERT_EQ(list.at("items").as_array().size(), 3u);
    for (const json::value& item : list.at("items").as_array()) {
      EXPECT_EQ(item.as_object().contains("hostPort"), version == std::string("v1"));
      EXPECT_EQ(item.as_object().contains("port"), version == std::string("v2"));
    }
  }
  EXPECT_EQ(Kubectl({"get", "peers.v1.conv.example.com", "-o", "jsonpath={.items[*].hostPort}"}),
            "a:82 c:81 b:81");
}

TEST_F(Conversion, WatchesShowTheirVersion) {
  Define("links", "Link");
  const std::string since(Get("v1", "links").at("metadata").at("resourceVersion").as_string());
  Create("v1", "links", "Link", "a", kV1);
  Create("v2", "links", "Link", "b", kV2);
  EXPECT_EQ(Do("DELETE", Path("v1", "links/a")).status, 200);
  const std::string lines =
      Do("GET", Path("v2", "links?watch=1&timeoutSeconds=1&resourceVersion=" + since)).body;
  std::vector<std::string> seen;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at);
    const json::value event = json::parse(lines.substr(at, end - at));
    const json::value& object = event.at("object");
    seen.push_back(std::string(event.at("type").as_string()) + " " +
                   std::string(object.at("apiVersion").as_string()) + " " +
                   std::string(object.at("host").as_string()));
    at = end + 1;
  }
  EXPECT_THAT(seen, testing::ElementsAre("ADDED conv.example.com/v2 a", "ADDED conv.example.com/v2 b",
                                         "DELETED conv.example.com/v2 a"));
}

TEST_F(Conversion, MayChangeLabelsAndAnnotationsOnly) {
  Define("nodes", "Node");
  Create("v1", "nodes", "Node", "a", kV1);
  server_.Set([](json::object& response) {
    json::object& meta = response.at("convertedObjects").as_array()[0].at("metadata").as_object();
    meta["finalizers"] = json::array{"example.com/f"};
    meta["labels"] = json::object{{"from", "webhook"}};
  });
  const json::value got = Get("v2", "nodes/a");
  EXPECT_EQ(got.at("metadata").at("labels").at("from"), "webhook");
  EXPECT_FALSE(got.at("metadata").as_object().contains("finalizers"));
}

TEST_F(Conversion, FailuresAreWordedAsUpstream) {
  Define("pipes", "Pipe");
  Create("v1", "pipes", "Pipe", "a", kV1);
  Create("v1", "pipes", "Pipe", "b", kV1);
  const std::string of = "conversion webhook for conv.example.com/v1, Kind=Pipe ";
  const struct {
    ConversionServer::Spoil spoil;
    std::string message;
  } kCases[] = {
      {[](json::object& r) {
         r["result"] = json::object{{"status", "Failed"}, {"message", "no"}};
       },
       of + "failed: no"},
      {[](json::object& r) {
         r["result"] = json::object{{"status", "Failed"}};
       },
       of + "failed: response.result.status was 'Failed', not 'Success'"},
      {[](json::object& r) { r["uid"] = "other"; }, of + "failed: expected response.uid="},
      {[](json::object& r) { r["convertedObjects"] = json::array(); }, of + "returned 0 objects, expected 1"},
      {[](json::object& r) { r.at("convertedObjects").as_array()[0].as_object()["kind"] = "Other"; },
       of + "returned invalid object: invalid kind (expected Pipe, received Other)"},
      {[](json::object& r) { r.at("convertedObjects").as_array()[0].as_object()["apiVersion"] = "v1"; },
       of + "returned invalid object: invalid groupVersion (expected conv.example.com/v2, received v1)"},
      {[](json::object& r) {
         r.at("convertedObjects").as_array()[0].at("metadata").as_object()["name"] = "z";
       },
       of + "returned invalid object: must have the same name: a != z"},
      {[](json::object& r) {
         r.at("convertedObjects").as_array()[0].at("metadata").as_object()["labels"] = 1;
       },
       of + "returned invalid metadata: invalid metadata.labels of type int64 in converted object"},
  };
  for (const auto& one : kCases) {
    server_.Set(one.spoil);
    EXPECT_THAT(MessageOf(Do("GET", Path("v2", "pipes/a"))), HasSubstr(one.message));
  }
  // One object that does not convert fails the list, and nothing but this version of it.
  server_.Set([](json::object& r) {
    for (json::value& object : r.at("convertedObjects").as_array()) {
      if (object.at("metadata").at("name") == "b") object.as_object()["kind"] = "Other";
    }
  });
  EXPECT_THAT(MessageOf(Do("GET", Path("v2", "pipes"))), HasSubstr(of));
  EXPECT_EQ(Get("v1", "pipes").at("items").as_array().size(), 2u);
  EXPECT_EQ(Get("v2", "pipes/a").at("host"), "a");
  // A write whose result cannot be converted is not made.
  EXPECT_EQ(Do("PATCH", Path("v2", "pipes/b"), R"({"port":"9"})", "application/merge-patch+json").status,
            500);
  EXPECT_EQ(Get("v1", "pipes/b").at("hostPort"), "a:80");
}

TEST_F(Conversion, EquivalentRulesSeeTheVersionThatTheyName) {
  Define("ports", "Port");
  HookServer hooks;
  hooks.On("/see", [](const json::value& request) {
    if (request.at("object").as_object().contains("port")) return std::string();
    return std::string(R"("allowed":false)");
  });
  const std::string name = ns_ + "see.example.com";
  Kubectl(
      {"create", "-f", "-"},
      fmt::format(R"({{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration",
          "metadata":{{"name":"{0}"}},"webhooks":[{{"name":"{0}","rules":[{{"operations":["CREATE"],"apiGroups":["conv.example.com"],
          "apiVersions":["v2"],"resources":["ports"]}}],"sideEffects":"None","admissionReviewVersions":["v1"],
          "clientConfig":{{"url":"{1}/see","caBundle":"{2}"}}}}]}})",
                  name, hooks.service().url(), EncodeBase64(hooks.service().ca_pem())));
  Create("v1", "ports", "Port", "a", kV1);
  ASSERT_EQ(hooks.Seen("/see").size(), 1u);
  const json::value seen = hooks.Seen("/see")[0];
  EXPECT_EQ(seen.at("object").at("port"), "80");
  EXPECT_EQ(seen.at("kind").at("version"), "v2");
  EXPECT_EQ(seen.at("requestKind").at("version"), "v1");
  Kubectl({"delete", "validatingwebhookconfiguration", name});
}

}  // namespace
}  // namespace keelson::apiserver
