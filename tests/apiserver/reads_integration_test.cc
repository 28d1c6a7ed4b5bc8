// Reads in every format, over the network, against the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include <boost/json.hpp>

#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::AnyOf;
using testing::HasSubstr;

constexpr std::string_view kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
constexpr std::string_view kPartialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
constexpr std::chrono::seconds kSoon{20};

class Reads : public ClusterTest {
 protected:
  struct Answer {
    int status;
    std::string text;
    http::Headers headers;
    json::value body;
  };
  Answer Do(const std::string& method, const std::string& target,
            std::string_view accept = "application/json", const std::string& body = "",
            const std::string& type = "application/json", const http::Headers& more = {}) {
    http::ClientRequest request;
    request.method = method;
    request.target = target;
    request.headers = more;
    request.headers.Add("Accept", std::string(accept));
    if (!body.empty()) request.headers.Add("Content-Type", type);
    request.body = body;
    http::ClientResponse response = cluster_->Do(request);
    boost::system::error_code error;
    return {response.status, response.body, response.headers, json::parse(response.body, error)};
  }
  Answer Get(const std::string& target, std::string_view accept = "application/json") {
    return Do("GET", target, accept);
  }
  std::string Path(const std::string& rest) { return "/api/v1/namespaces/" + ns_ + "/" + rest; }
};

TEST_F(Reads, EveryResourceInEveryForm) {
  std::vector<std::string> bases = {"/api/v1"};
  json::value groups = Get("/apis").body.at("groups");
  for (const json::value& group : groups.as_array()) {
    for (const json::value& version : group.at("versions").as_array()) {
      bases.push_back("/apis/" + std::string(version.at("groupVersion").as_string()));
    }
  }
  size_t lists = 0;
  for (const std::string& base : bases) {
    json::value resources = Get(base).body.at("resources");
    for (const json::value& resource : resources.as_array()) {
      std::string verbs = json::serialize(resource.at("verbs"));
      std::string name(resource.at("name").as_string());
      if (verbs.find("\"list\"") == std::string::npos) continue;
      SCOPED_TRACE(base + "/" + name);
      std::string path = base + "/" + name, kind(resource.at("kind").as_string());
      ++lists;
      Answer plain = Get(path);
      EXPECT_EQ(plain.status, 200);
      EXPECT_EQ(std::string(plain.body.at("kind").as_string()), kind + "List");
      for (const json::value& item : plain.body.at("items").as_array()) {
        EXPECT_FALSE(item.as_object().contains("kind"));
      }
      size_t count = plain.body.at("items").as_array().size();
      Answer table = Get(path, kTable);
      EXPECT_EQ(table.body.at("kind"), "Table");
      EXPECT_EQ(table.body.at("apiVersion"), "meta.k8s.io/v1");
      size_t columns = table.body.at("columnDefinitions").as_array().size();
      // Events and the like come and go meanwhile.
      if (kind != "Event" && kind != "Lease") {
        EXPECT_EQ(table.body.at("rows").as_array().size(), count);
      }
      for (const json::value& row : table.body.at("rows").as_array()) {
        EXPECT_EQ(row.at("cells").as_array().size(), columns);
        EXPECT_EQ(row.at("object").at("kind"), "PartialObjectMetadata");
      }
      EXPECT_EQ(Get(path, kPartialList).body.at("kind"), "PartialObjectMetadataList");
      EXPECT_EQ(Get(path, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").status, 406);
      EXPECT_EQ(Get(path, "application/vnd.kubernetes.protobuf").text.substr(0, 4), std::string("k8s\0", 4));
      EXPECT_EQ(
          Get(path, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
              .text.substr(0, 4),
          std::string("k8s\0", 4));
      EXPECT_THAT(Get(path, "application/yaml").text, HasSubstr("\nkind: " + kind + "List\n"));
      EXPECT_THAT(Get(path, "application/yaml;as=Table;v=v1;g=meta.k8s.io").text,
                  HasSubstr("\nkind: Table\n"));
    }
  }
  EXPECT_GT(lists, 55U);
}

TEST_F(Reads, RowsHoldWhatIsAskedFor) {
  Kubectl({"create", "cm", "c", "--from-literal=a=b"});
  std::string one = Path("configmaps/c");
  auto object = [&](const std::string& include) {
    return Get(one + "?includeObject=" + include, kTable).body.at("rows").at(0).at("object");
  };
  EXPECT_TRUE(object("None").is_null());
  EXPECT_EQ(object("Metadata").at("kind"), "PartialObjectMetadata");
  EXPECT_EQ(object("").at("kind"), "PartialObjectMetadata");
  EXPECT_EQ(object("Object").at("kind"), "ConfigMap");
  EXPECT_EQ(object("Object").at("data").at("a"), "b");
  EXPECT_EQ(Get(one + "?includeObject=All", kTable).status, 400);
  Answer beta = Get(one, "application/json;as=Table;v=v1beta1;g=meta.k8s.io");
  EXPECT_EQ(beta.body.at("apiVersion"), "meta.k8s.io/v1beta1");
  EXPECT_EQ(beta.body.at("rows").at(0).at("object").at("apiVersion"), "meta.k8s.io/v1beta1");
  Answer page = Get(Path("configmaps?limit=1"), kTable);
  EXPECT_EQ(page.body.at("metadata").at("remainingItemCount"), 1);
  EXPECT_NE(page.body.at("metadata").at("continue"), "");
}

TEST_F(Reads, TablesOfSubresourcesAndDeletions) {
  Kubectl({"create", "deploy", "d", "--image=x", "--replicas=0"});
  Answer scale = Get("/apis/apps/v1/namespaces/" + ns_ + "/deployments/d/scale", kTable);
  EXPECT_EQ(scale.body.at("columnDefinitions").at(1).at("name"), "Desired");
  EXPECT_EQ(Get("/apis/apps/v1/namespaces/" + ns_ + "/deployments/d/status", kTable).body.at("kind"),
            "Table");
  Answer partial = Do("DELETE", Path("configmaps"), kPartialList);
  EXPECT_EQ(partial.status, 200);
  EXPECT_EQ(partial.body.at("kind"), "PartialObjectMetadataList");
}

TEST_F(Reads, WhatMakesNoTableIsNotAcceptable) {
  const std::string review = R"({"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1",)"
                             R"("spec":{"nonResourceAttributes":{"path":"/"}}})";
  const std::string path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  Answer refused = Do("POST", path, kTable, review);
  EXPECT_EQ(refused.status, 406);
  EXPECT_EQ(refused.body.at("reason"), "NotAcceptable");
  EXPECT_EQ(Do("POST", path, std::string(kTable) + ",application/json", review).status, 201);
  EXPECT_EQ(Get(Path("configmaps?watch=1&timeoutSeconds=1"), "application/yaml").status, 406);
  Answer not_found = Get(Path("configmaps/nope"), "application/yaml");
  EXPECT_EQ(not_found.status, 404);
  EXPECT_THAT(not_found.text, HasSubstr("reason: NotFound\n"));
  EXPECT_EQ(Get(Path("configmaps"), "text/html").headers.Get("Content-Type"), "application/json");
}

// The server drops the parts of a selector that it cannot parse, which only widens the request.
TEST_F(Reads, ReviewsWithUnknownOperators) {
  const auto review = [](const std::string& requirements) {
    return R"({"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":)"
           R"({"resourceAttributes":{"verb":"list","resource":"pods","labelSelector":{"requirements":[)" +
           requirements + "]}}}}";
  };
  const std::string near = R"({"key":"a","operator":"Near","values":["b"]})";
  const std::string known = R"({"key":"a","operator":"In","values":["b"]})";
  const std::pair<std::string, std::string> cases[] = {{near, "ignored"},
                                                       {known + "," + near, "partially ignored"}};
  for (const auto& [requirements, what] : cases) {
    Answer answer = Do("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json",
                       review(requirements));
    ASSERT_EQ(answer.status, 201) << answer.text;
    EXPECT_EQ(std::string(answer.body.at("status").at("evaluationError").as_string()),
              "spec.resourceAttributes.labelSelector " + what + " due to parse error");
  }
}

TEST_F(Reads, YamlBodies) {
  const std::string twice =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata:\n  a: '1'\n  a: '2'\nx: 1\n";
  Answer strict =
      Do("POST", Path("configmaps?fieldValidation=Strict"), "application/json", twice, "application/yaml");
  EXPECT_EQ(strict.status, 400);
  EXPECT_THAT(
      std::string(strict.body.at("message").as_string()),
      HasSubstr("strict decoding error: yaml: unmarshal errors:\n  line 6: key \"a\" already set in map, "
                "unknown field \"x\""));
  Answer made =
      Do("POST", Path("configmaps?fieldValidation=Warn"), "application/yaml", twice, "application/yaml");
  EXPECT_EQ(made.status, 201);
  EXPECT_THAT(made.text, HasSubstr("\ndata:\n  a: \"2\"\nkind: ConfigMap\n"));
  std::vector<std::string_view> warnings = made.headers.All("Warning");
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0], "299 - \"line 6: key \\\"a\\\" already set in map\"");
  EXPECT_EQ(warnings[1], "299 - \"unknown field \\\"x\\\"\"");
  Answer patched = Do("PATCH", Path("configmaps/y"), "application/yaml", R"({"data":{"b":"3"}})",
                      "application/merge-patch+json");
  EXPECT_THAT(patched.text, HasSubstr("  b: \"3\"\n"));
  EXPECT_EQ(Do("POST", Path("configmaps"), "application/json", "x", "text/plain").status, 415);
}

TEST_F(Reads, OldVersionsSayThatTheyAre) {
  constexpr const char* kEndpoints =
      "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
  EXPECT_EQ(Get(Path("endpoints")).headers.Get("Warning"), kEndpoints);
  EXPECT_EQ(Get(Path("endpoints/nope")).headers.Get("Warning"), kEndpoints);
  EXPECT_EQ(Get(Path("endpoints?watch=1&timeoutSeconds=1")).headers.Get("Warning"), kEndpoints);
  EXPECT_EQ(Get("/api/v1/componentstatuses").headers.Get("Warning"),
            "299 - \"v1 ComponentStatus is deprecated in v1.19+\"");
  EXPECT_FALSE(Get(Path("configmaps")).headers.Has("Warning"));
}

TEST_F(Reads, LongRepliesAreCompressed) {
  std::string data(200000, 'x');
  ASSERT_EQ(Do("POST", Path("configmaps"), "application/json",
               R"({"metadata":{"name":"big"},"data":{"a":")" + data + R"("}})")
                .status,
            201);
  const http::Headers gzip{{"Accept-Encoding", "gzip"}};
  Answer list = Do("GET", Path("configmaps"), "application/json", "", "", gzip);
  EXPECT_EQ(list.headers.Get("Content-Encoding"), "gzip");
  EXPECT_EQ(list.headers.Get("Vary"), "Accept-Encoding");
  EXPECT_LT(list.text.size(), 20000U);
  EXPECT_FALSE(Do("GET", Path("configmaps/kube-root-ca.crt"), "application/json", "", "", gzip)
                   .headers.Has("Content-Encoding"));
  Answer watch = Do("GET", Path("configmaps?watch=1&timeoutSeconds=1"), "application/json", "", "", gzip);
  EXPECT_FALSE(watch.headers.Has("Content-Encoding"));
  EXPECT_GT(watch.text.size(), 200000U);
}

TEST_F(Reads, ErrorsOfSelectorsAndVersions) {
  struct Case {
    const char *query, *message;
    int status;
  };
  constexpr Case kCases[] = {
      {"labelSelector=a%20b",
       "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt", 400},
      {"labelSelector=%3Db", "found '=', expected: !, identifier, or 'end of string'", 400},
      {"labelSelector=a%3Db,", "found '', expected: identifier after ','", 400},
      {"labelSelector=-a",
       "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist", 400},
      {"labelSelector=a%20in%20()",
       "unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, values set "
       "can't be empty",
       400},
      {"fieldSelector=spec.x%3Dy",
       "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", 400},
      {"limit=x", "strconv.ParseInt: parsing \"x\": invalid syntax", 400},
      {"resourceVersion=x", "resourceVersion: Invalid value: \"x\": strconv.ParseUint", 400},
      {"resourceVersionMatch=Exact",
       "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden", 422},
      {"continue=x", "invalid continue token: continue key is not valid", 400},
      {"resourceVersion=999999999", "Timeout: Too large resource version: 999999999, current: ", 504},
  };
  for (const Case& c : kCases) {
    Answer answer = Get(Path(std::string("configmaps?") + c.query));
    EXPECT_EQ(answer.status, c.status) << c.query;
    EXPECT_THAT(std::string(answer.body.at("message").as_string()), HasSubstr(c.message));
  }
  Answer late = Get(Path("configmaps?resourceVersion=999999999"));
  EXPECT_EQ(late.headers.Get("Retry-After"), "1");
  EXPECT_EQ(late.body.at("details").at("causes").at(0).at("reason"), "ResourceVersionTooLarge");
  EXPECT_EQ(late.body.at("reason"), "Timeout");
}

// The messages of a WebSocket until it closes.
std::vector<std::pair<int, std::string>> Messages(http::Stream& stream) {
  std::vector<std::pair<int, std::string>> out;
  std::string buffer;
  for (;;) {
    std::promise<std::string> read;
    stream.AsyncRead([&](Result<std::string> bytes) { read.set_value(bytes.value_or("")); });
    auto done = read.get_future();
    if (done.wait_for(kSoon) != std::future_status::ready) stream.Close();
    std::string bytes = done.get();
    if (bytes.empty()) return out;
    buffer += bytes;
    while (buffer.size() >= 2) {
      size_t size = static_cast<unsigned char>(buffer[1]), head = size == 126 ? 4 : size == 127 ? 10 : 2;
      if (buffer.size() < head) break;
      if (head > 2) size = 0;
      for (size_t i = 2; i < head; ++i) size = size << 8 | static_cast<unsigned char>(buffer[i]);
      if (buffer.size() < head + size) break;
      out.emplace_back(buffer[0] & 15, buffer.substr(head, size));
      buffer.erase(0, head + size);
    }
  }
}

TEST_F(Reads, WatchOverWebSocket) {
  auto watch = [&](const std::string& accept) {
    http::ClientRequest request;
    request.method = "GET";
    request.target =
        Path("configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dkube-root-ca.crt");
    request.headers = {{"Connection", "Upgrade"},
                       {"Upgrade", "websocket"},
                       {"Sec-WebSocket-Version", "13"},
                       {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                       {"Accept", accept}};
    auto client = cluster_->NewClient("admin");
    auto upgraded = client->Upgrade(request, kSoon);
    EXPECT_TRUE(upgraded) << upgraded.error().message();
    return Messages(*upgraded->stream);
  };
  auto text = watch("application/json");
  ASSERT_EQ(text.size(), 2U);
  EXPECT_EQ(text[0].first, 1);
  json::value event = json::parse(text[0].second);
  EXPECT_EQ(event.at("type"), "ADDED");
  EXPECT_EQ(event.at("object").at("kind"), "ConfigMap");
  EXPECT_EQ(text[1].first, 8);
  auto binary = watch("application/vnd.kubernetes.protobuf");
  ASSERT_EQ(binary.size(), 2U);
  EXPECT_EQ(binary[0].first, 2);
  EXPECT_EQ(binary[0].second.substr(0, 7),
            "\n\x05"
            "ADDED");
}

TEST_F(Reads, WatchesSayGoodbyeWithABookmark) {
  std::string text = Get(Path("configmaps?watch=1&timeoutSeconds=3&allowWatchBookmarks=true")).text;
  EXPECT_THAT(text, HasSubstr(R"("k8s.io/initial-events-end":"true")"));
  EXPECT_THAT(text.substr(text.find("initial-events-end")), HasSubstr(R"("type":"BOOKMARK")"));
}

TEST_F(Reads, OldPathsOfWatches) {
  std::string text =
      Get("/api/v1/watch/namespaces/" + ns_ + "/configmaps/kube-root-ca.crt?timeoutSeconds=1").text;
  EXPECT_THAT(text, HasSubstr("\"name\":\"kube-root-ca.crt\""));
  EXPECT_THAT(Get("/api/v1/watch/namespaces/" + ns_ + "/configmaps?timeoutSeconds=1").text,
              HasSubstr("\"type\":\"ADDED\""));
}

TEST_F(Reads, BothVersionsOfHttpAndTheLookOfThings) {
  const std::string dir = cluster_->pki().dir();
  for (const char* version : {"--http1.1", "--http2"}) {
    Output output = RunProgram({"curl", "-sS", version, "-w", "%{http_version}", "--cacert",
                                cluster_->pki().ca_file(), "--cert", dir + "/admin.crt", "--key",
                                dir + "/admin.key", cluster_->url() + Path("configmaps/kube-root-ca.crt")});
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_THAT(output.out,
                HasSubstr("{\n  \"kind\": \"ConfigMap\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n"));
    EXPECT_THAT(output.out, AnyOf(HasSubstr("}1.1"), HasSubstr("}2")));
  }
}

TEST_F(Reads, WhatKubectlDoesWithIt) {
  const std::string two =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {p: q}}\ndata: {a: '1'}\n---\n"
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, labels: {p: q}}\n";
  const std::string changed =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {p: q}}\ndata: {a: '2'}\n";
  Kubectl({"apply", "-f", "-"}, two);
  Kubectl({"diff", "-f", "-"}, two);
  std::string diff = Kubectl({"diff", "-f", "-"}, changed, 1);
  EXPECT_THAT(diff, HasSubstr("-  a: \"1\""));
  EXPECT_THAT(diff, HasSubstr("+  a: \"2\""));
  std::string pruned =
      Kubectl({"apply", "--prune", "-l", "p=q", "--prune-allowlist=core/v1/ConfigMap", "-f", "-"}, changed);
  EXPECT_THAT(pruned, HasSubstr("configmap/two pruned"));
  EXPECT_THAT(Kubectl({"get", "cm", "one", "-o", "yaml"}), HasSubstr("kind: ConfigMap"));
  EXPECT_THAT(Kubectl({"get", "cm", "-o", "json", "--chunk-size=1"}), HasSubstr("\"kind\": \"ConfigMap\""));
  EXPECT_THAT(Kubectl({"get", "cm", "-o", "name", "--chunk-size=1"}), HasSubstr("configmap/one"));
  EXPECT_THAT(Kubectl({"get", "cm", "--field-selector=metadata.name=one", "--no-headers"}), HasSubstr("one"));
  EXPECT_THAT(Kubectl({"explain", "pods.spec.containers", "--recursive"}), HasSubstr("imagePullPolicy"));
  std::string unknown = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nnope: 1\n";
  Output strict = cluster_->Kubectl({"-n", ns_, "create", "-f", "-"}, unknown);
  EXPECT_NE(strict.code, 0);
  EXPECT_THAT(strict.err, HasSubstr("strict decoding error: unknown field \"nope\""));
}

}  // namespace
}  // namespace keelson::apiserver
