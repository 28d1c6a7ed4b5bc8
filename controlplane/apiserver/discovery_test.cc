#include "controlplane/apiserver/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/health.h"
#include "controlplane/apiserver/testing/recorder.h"
#include "lib/api/codec/codec.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::StartsWith;

constexpr const char* kAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

std::shared_ptr<Recorder> Get(const std::string& target, http::Headers headers = {}) {
  static const Discovery* discovery = new Discovery("192.0.2.1:6443");
  RecordedRequest request(target, std::move(headers));
  EXPECT_TRUE(discovery->Handle(request.context)) << target;
  return request.reply;
}
json::value Parsed(const Recorder& reply) { return json::parse(reply.body); }

const json::value& Named(const json::value& list, std::string_view key, std::string_view name) {
  for (const json::value& item : list.as_array()) {
    if (item.at(key).as_string() == name) return item;
  }
  ADD_FAILURE() << name << " is missing";
  return list;
}

TEST(Discovery, GroupsComeInTheOrderOfTheirPriority) {
  json::value groups = Parsed(*Get("/apis"));
  std::vector<std::string> names;
  for (const json::value& group : groups.at("groups").as_array()) {
    names.emplace_back(group.at("name").as_string());
  }
  names.resize(14);
  EXPECT_THAT(names, ElementsAre("apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io",
                                 "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
                                 "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
                                 "admissionregistration.k8s.io", "apiextensions.k8s.io"));
  const json::value& autoscaling = Named(groups.at("groups"), "name", "autoscaling");
  EXPECT_EQ(autoscaling.at("preferredVersion").at("version"), "v2");
  EXPECT_EQ(
      json::serialize(autoscaling.at("versions")),
      R"([{"groupVersion":"autoscaling/v2","version":"v2"},{"groupVersion":"autoscaling/v1","version":"v1"}])");
  EXPECT_EQ(Named(groups.at("groups"), "name", "certificates.k8s.io").at("preferredVersion").at("version"),
            "v1")
      << "stable versions come first";
  EXPECT_EQ(json::serialize(Parsed(*Get("/api")).at("serverAddressByClientCIDRs")),
            R"([{"clientCIDR":"0.0.0.0/0","serverAddress":"192.0.2.1:6443"}])");
}

TEST(Discovery, LeavesOutWhatIsNotServed) {
  const auto versions = [](const std::vector<std::string>& settings) {
    auto enablement = ApiEnablement::Parse(settings);
    EXPECT_TRUE(enablement) << enablement.error().message();
    const Discovery discovery("192.0.2.1:6443", *enablement);
    RecordedRequest request("/apis/certificates.k8s.io", {});
    EXPECT_TRUE(discovery.Handle(request.context));
    return json::serialize(Parsed(*request.reply).at("versions"));
  };
  const std::string v1 = R"({"groupVersion":"certificates.k8s.io/v1","version":"v1"})",
                    beta = R"({"groupVersion":"certificates.k8s.io/v1beta1","version":"v1beta1"})";
  EXPECT_EQ(versions({}), "[" + v1 + "]");
  EXPECT_EQ(versions({"certificates.k8s.io/v1beta1=true"}), "[" + v1 + "," + beta + "]");
  const Discovery plain("192.0.2.1:6443");
  RecordedRequest request("/apis/certificates.k8s.io/v1beta1", {});
  EXPECT_FALSE(plain.Handle(request.context));
}

TEST(Discovery, Resources) {
  json::value core = Parsed(*Get("/api/v1"));
  EXPECT_EQ(core.at("groupVersion"), "v1");
  // Upstream's hash: the stored form is the same.
  EXPECT_EQ(
      json::serialize(Named(core.at("resources"), "name", "pods")),
      R"({"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["create","delete",)"
      R"("deletecollection","get","list","patch","update","watch"],"shortNames":["po"],"categories":["all"],)"
      R"("storageVersionHash":"xPOwRZ+Yhw8="})");
  EXPECT_EQ(json::serialize(Named(core.at("resources"), "name", "pods/eviction")),
            R"({"name":"pods/eviction","singularName":"","namespaced":true,"group":"policy","version":"v1",)"
            R"("kind":"Eviction","verbs":["create"]})");
  json::value events = Parsed(*Get("/apis/events.k8s.io/v1"));
  EXPECT_EQ(Named(events.at("resources"), "name", "events").at("storageVersionHash"),
            Named(core.at("resources"), "name", "events").at("storageVersionHash"));
}

TEST(Discovery, Aggregated) {
  struct Case {
    const char *accept, *type;
  };
  constexpr Case kCases[] = {
      {kAggregated, kAggregated},
      {"application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io,application/json", kAggregated},
      {"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
       "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"},
      {"application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json",
       "application/json"},
      {"application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
       "application/json"},
      {"application/json", "application/json"},
      {"*/*", "application/json"},
      {"application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
       "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"},
  };
  for (const Case& c : kCases) {
    auto reply = Get("/apis", {{"Accept", c.accept}});
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->headers.Get("Content-Type"), c.type) << c.accept;
  }
  json::value core = Parsed(*Get("/api", {{"Accept", kAggregated}}));
  EXPECT_EQ(core.at("kind"), "APIGroupDiscoveryList");
  EXPECT_EQ(core.at("apiVersion"), "apidiscovery.k8s.io/v2");
  const json::value& version = core.at("items").at(0).at("versions").at(0);
  EXPECT_EQ(version.at("freshness"), "Current");
  const json::value& pods = Named(version.at("resources"), "resource", "pods");
  EXPECT_EQ(json::serialize(pods.at("responseKind")), R"({"group":"","version":"v1","kind":"Pod"})");
  EXPECT_EQ(pods.at("scope"), "Namespaced");
  EXPECT_EQ(pods.at("singularResource"), "pod");
  EXPECT_EQ(json::serialize(Named(pods.at("subresources"), "subresource", "eviction").at("responseKind")),
            R"({"group":"policy","version":"v1","kind":"Eviction"})");
}

TEST(Discovery, AggregatedFormsDecodeToTheSame) {
  auto as_json = Get("/apis", {{"Accept", kAggregated}});
  auto as_protobuf = Get(
      "/apis", {{"Accept",
                 "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}});
  api::apidiscovery::v2::APIGroupDiscoveryList one, other;
  ASSERT_TRUE(api::DecodeJson(as_json->body, one));
  ASSERT_TRUE(api::DecodeProtobuf(as_protobuf->body, other));
  EXPECT_EQ(api::EncodeRaw(one), api::EncodeRaw(other));
}

TEST(Discovery, UnchangedDocumentsAreNotSentAgain) {
  auto reply = Get("/apis", {{"Accept", kAggregated}});
  std::string etag(reply->headers.Get("ETag"));
  EXPECT_THAT(etag, StartsWith("\""));
  EXPECT_EQ(reply->headers.Get("Vary"), "Accept");
  EXPECT_EQ(reply->headers.Get("Cache-Control"), "public");
  auto again = Get("/apis", {{"Accept", kAggregated}, {"If-None-Match", etag}});
  EXPECT_EQ(again->status, 304);
  EXPECT_EQ(again->body, "");
  EXPECT_EQ(again->headers.Get("ETag"), etag);
  EXPECT_EQ(Get("/api", {{"Accept", kAggregated}, {"If-None-Match", etag}})->status, 200);
}

TEST(Discovery, OneGroupHasNoAggregatedForm) {
  auto reply = Get("/apis/apps/v1", {{"Accept", kAggregated}});
  EXPECT_EQ(reply->status, 406);
  EXPECT_EQ(Get("/apis/apps/v1", {{"Accept", "application/yaml"}})->headers.Get("Content-Type"),
            "application/yaml");
}

std::shared_ptr<const discoveryapi::APIVersionDiscovery> RemoteVersion(const std::string& version,
                                                                       const std::string& freshness) {
  auto out = std::make_shared<discoveryapi::APIVersionDiscovery>();
  out->set_version(version);
  out->set_freshness(freshness);
  out->add_resources()->set_resource("flunders");
  return out;
}

TEST(Discovery, ExtensionServersStandAmongTheOthers) {
  DiscoveryMerge merge;
  merge.remote[{"wardle.example.com", "v1"}] = RemoteVersion("v1", "Current");
  merge.remote[{"wardle.example.com", "v2"}] = RemoteVersion("v2", "Stale");
  merge.remote[{"metrics.k8s.io", "v1beta1"}] = RemoteVersion("v1beta1", "Current");
  merge.priorities[{"wardle.example.com", "v1"}] = {17650, 20};
  merge.priorities[{"wardle.example.com", "v2"}] = {1000, 10};
  const DiscoveryDocuments documents("192.0.2.1:6443", BuiltInResources({}), merge);
  std::vector<std::string> names;
  for (const auto& item : documents.groups.message->items()) names.push_back(item.metadata().name());
  names.resize(6);
  // The group has the highest of its versions' priorities.
  EXPECT_THAT(names, ElementsAre("apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io",
                                 "wardle.example.com", "authorization.k8s.io"));
  const discoveryapi::APIGroupDiscovery& wardle = documents.groups.message->items(4);
  ASSERT_EQ(wardle.versions_size(), 2);
  EXPECT_EQ(wardle.versions(0).version(), "v1");
  EXPECT_EQ(wardle.versions(1).freshness(), "Stale");
  EXPECT_EQ(
      api::EncodeJson(*documents.by_path.find("/apis/wardle.example.com")->second.message),
      R"({"name":"wardle.example.com","versions":[{"groupVersion":"wardle.example.com/v1","version":"v1"},)"
      R"({"groupVersion":"wardle.example.com/v2","version":"v2"}],)"
      R"("preferredVersion":{"groupVersion":"wardle.example.com/v1","version":"v1"}})");
  // An extension server takes the place of this one.
  const auto& last = *documents.groups.message->items().rbegin();
  EXPECT_EQ(last.metadata().name(), "metrics.k8s.io");
  EXPECT_EQ(last.versions(0).resources(0).resource(), "flunders");
  EXPECT_FALSE(documents.by_path.contains("/apis/metrics.k8s.io/v1beta1"));
}

TEST(Health, ReportsAndExclusions) {
  Health health({{"ping", true, [] { return Result<>(); }},
                 {"etcd", false, [] { return Result<>(Error(Code::kUnavailable, "secret")); }}});
  struct Case {
    const char* target;
    int status;
    const char* body;
  };
  constexpr Case kCases[] = {
      {"/livez", 200, "ok"},
      {"/livez?verbose", 200, "[+]ping ok\nlivez check passed\n"},
      {"/livez/ping", 200, "ok"},
      {"/healthz", 200, "ok"},
      {"/readyz", 500, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"},
      {"/readyz?exclude=etcd", 200, "ok"},
      {"/readyz?verbose&exclude=etcd&exclude=x", 200,
       "[+]ping ok\n[+]etcd excluded: ok\n"
       "warn: some health checks cannot be excluded: no matches for \"x\"\nreadyz check passed\n"},
      {"/readyz/etcd", 500, "internal server error: reason withheld\n"},
      {"/readyz/nope", 404, "404 page not found\n"},
  };
  for (const Case& c : kCases) {
    RecordedRequest request(c.target);
    ASSERT_TRUE(health.Handle(request.context)) << c.target;
    EXPECT_EQ(request.reply->status, c.status) << c.target;
    EXPECT_EQ(request.reply->body, c.body) << c.target;
  }
  EXPECT_THAT(health.Paths(), ElementsAre("/healthz", "/healthz/ping", "/livez", "/livez/ping", "/readyz",
                                          "/readyz/ping", "/readyz/etcd"));
}

}  // namespace
}  // namespace keelson::apiserver
