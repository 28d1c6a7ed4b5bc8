#include "controlplane/apiserver/handlers/custom_openapi.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/handlers/openapi.h"
#include "controlplane/apiserver/testing/recorder.h"
#include "lib/api/codec/codec.h"
#include "lib/api/wire.h"
#include "lib/http/gzip.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using CRD = PublishedDefinition::CustomResourceDefinition;

constexpr const char *kV2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
                     *kV3Protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

// A definition with these versions, established and of generation 1.
CRD Definition(const std::string& plural, const std::string& kind, const std::vector<std::string>& versions,
               const std::string& group = "example.com") {
  CRD crd;
  crd.mutable_metadata()->set_name(plural + "." + group);
  crd.mutable_metadata()->set_uid("uid-of-" + plural);
  crd.mutable_metadata()->set_generation(1);
  auto& spec = *crd.mutable_spec();
  spec.set_group(group);
  spec.set_scope("Namespaced");
  spec.mutable_names()->set_plural(plural);
  spec.mutable_names()->set_kind(kind);
  spec.mutable_names()->set_list_kind(kind + "List");
  for (const std::string& name : versions) {
    auto& version = *spec.add_versions();
    version.set_name(name);
    version.set_served(true);
    auto& schema = *version.mutable_schema()->mutable_open_apiv3_schema();
    schema.set_type("object");
    (*schema.mutable_properties())["spec"].set_type("object");
  }
  auto& condition = *crd.mutable_status()->add_conditions();
  condition.set_type("Established");
  condition.set_status("True");
  return crd;
}

// Definitions as the watch cache would have them.
class CustomOpenApiTest : public testing::Test {
 protected:
  void Put(const CRD& crd) {
    stored_[crd.metadata().name()] = storage::Object::FromMessage(api::ResourceOf<CRD>(), crd, ++revision_);
  }
  void Remove(const std::string& name) { stored_.erase(name); }

  std::shared_ptr<Recorder> Get(const std::string& target, http::Headers headers = {}) {
    RecordedRequest request(target, std::move(headers));
    EXPECT_TRUE(handler_.Handle(request.context)) << target;
    return request.reply;
  }
  json::object Parsed(const std::string& target) { return json::parse(Get(target)->body).as_object(); }
  json::object Definitions() { return Parsed("/openapi/v2").at("definitions").as_object(); }
  json::object Schemas(const std::string& document) {
    return Parsed("/openapi/v3/" + document).at("components").at("schemas").as_object();
  }
  // The URL of a document, or nothing.
  std::string Url(const std::string& document) {
    const json::object paths = Parsed("/openapi/v3").at("paths").as_object();
    const json::value* found = paths.if_contains(document);
    return found ? std::string(found->at("serverRelativeURL").as_string()) : "";
  }

  std::map<std::string, storage::ObjectPtr> stored_;
  int64_t revision_ = 0;
  FakeClock clock_;
  OpenApiHandler handler_{clock_, {}, [this](const auto& each) {
                            for (const auto& [name, object] : stored_) each(object);
                          }};
};

TEST_F(CustomOpenApiTest, VersionsAreInBothDocuments) {
  const std::string before(Get("/openapi/v2")->headers.Get("ETag"));
  EXPECT_EQ(Url("apis/example.com/v1"), "");
  EXPECT_EQ(Get("/openapi/v3/apis/example.com/v1")->status, 404);
  Put(Definition("foos", "Foo", {"v1", "v2beta1"}));
  const json::object definitions = Definitions();
  for (const char* version : {"v1", "v2beta1"}) {
    SCOPED_TRACE(version);
    const std::string kind = std::string("com.example.") + version + ".Foo";
    const std::string document = std::string("apis/example.com/") + version;
    EXPECT_TRUE(definitions.contains(kind));
    EXPECT_TRUE(definitions.contains(kind + "List"));
    EXPECT_TRUE(definitions.contains("io.k8s.api.core.v1.Pod"));
    EXPECT_EQ(definitions.at(kind).at("x-kubernetes-group-version-kind").at(0).at("version"), version);
    const std::string url = Url(document);
    EXPECT_THAT(url, HasSubstr("/openapi/v3/" + document + "?hash="));
    auto reply = Get(url);
    EXPECT_EQ(reply->headers.Get("Cache-Control"), "public, immutable");
    const json::value parsed = json::parse(reply->body);
    EXPECT_TRUE(parsed.at("components").at("schemas").as_object().contains(kind));
    EXPECT_TRUE(
        parsed.at("paths").as_object().contains("/" + document + "/namespaces/{namespace}/foos/{name}"));
  }
  const std::string after(Get("/openapi/v2")->headers.Get("ETag"));
  EXPECT_NE(after, before);
  EXPECT_EQ(Get("/openapi/v2", {{"If-None-Match", after}})->status, 304);
  EXPECT_EQ(Get("/openapi/v2", {{"If-None-Match", before}})->status, 200);
}

TEST_F(CustomOpenApiTest, OnlyWhatIsServedIsPublished) {
  CRD foos = Definition("foos", "Foo", {"v1", "v2"});
  foos.mutable_spec()->mutable_versions(1)->set_served(false);
  Put(foos);
  CRD bars = Definition("bars", "Bar", {"v1"});
  bars.mutable_status()->clear_conditions();
  Put(bars);
  const json::object definitions = Definitions();
  EXPECT_TRUE(definitions.contains("com.example.v1.Foo"));
  EXPECT_FALSE(definitions.contains("com.example.v2.Foo"));
  EXPECT_FALSE(definitions.contains("com.example.v1.Bar"));
  EXPECT_EQ(Url("apis/example.com/v2"), "");
  // On deletion, before the objects are gone.
  foos.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  Put(foos);
  EXPECT_FALSE(Definitions().contains("com.example.v1.Foo"));
  EXPECT_EQ(Url("apis/example.com/v1"), "");
  EXPECT_EQ(Get("/openapi/v3/apis/example.com/v1")->status, 404);
}

TEST_F(CustomOpenApiTest, HashesFollowTheSpecAlone) {
  CRD foos = Definition("foos", "Foo", {"v1"});
  Put(foos);
  Put(Definition("others", "Other", {"v1"}, "other.example.com"));
  const std::string url = Url("apis/example.com/v1"), other = Url("apis/other.example.com/v1");
  const std::string etag(Get("/openapi/v2")->headers.Get("ETag"));
  auto& condition = *foos.mutable_status()->add_conditions();
  condition.set_type("NonStructuralSchema");
  condition.set_status("False");
  Put(foos);
  EXPECT_EQ(Url("apis/example.com/v1"), url) << "nothing has changed that the document says";
  EXPECT_EQ(Get("/openapi/v2")->headers.Get("ETag"), etag);
  foos.mutable_metadata()->set_generation(2);
  (*foos.mutable_spec()
        ->mutable_versions(0)
        ->mutable_schema()
        ->mutable_open_apiv3_schema()
        ->mutable_properties())["more"]
      .set_type("string");
  Put(foos);
  EXPECT_NE(Url("apis/example.com/v1"), url);
  EXPECT_EQ(Url("apis/other.example.com/v1"), other);
  EXPECT_NE(Get("/openapi/v2")->headers.Get("ETag"), etag);
  EXPECT_EQ(Get(url)->status, 301) << "the old URL leads to the new one";
  EXPECT_EQ(Get(url)->headers.Get("Location"), Url("apis/example.com/v1"));
  EXPECT_TRUE(
      Schemas("apis/example.com/v1").at("com.example.v1.Foo").at("properties").as_object().contains("more"));
  // Another one of the same name.
  const std::string last = Url("apis/example.com/v1");
  foos.mutable_metadata()->set_uid("another");
  Put(foos);
  EXPECT_NE(Url("apis/example.com/v1"), last);
}

TEST_F(CustomOpenApiTest, DefinitionsOfOneGroupShareADocument) {
  CRD foos = Definition("foos", "Foo", {"v1"}), bars = Definition("bars", "Bar", {"v1", "v2"});
  Put(foos);
  EXPECT_FALSE(Schemas("apis/example.com/v1").contains("io.k8s.api.autoscaling.v1.Scale"));
  bars.mutable_spec()->mutable_versions(0)->mutable_subresources()->mutable_scale()->set_spec_replicas_path(
      ".spec.replicas");
  Put(bars);
  const json::object schemas = Schemas("apis/example.com/v1");
  for (const char* name : {"com.example.v1.Foo", "com.example.v1.FooList", "com.example.v1.Bar",
                           "io.k8s.api.autoscaling.v1.Scale"}) {
    EXPECT_TRUE(schemas.contains(name)) << name;
  }
  EXPECT_FALSE(Schemas("apis/example.com/v2").contains("com.example.v2.Foo"));
  Remove("foos.example.com");
  EXPECT_FALSE(Schemas("apis/example.com/v1").contains("com.example.v1.Foo"));
}

TEST_F(CustomOpenApiTest, BuiltInGroupsKeepWhatTheyHave) {
  const std::string url = Url("apis/storage.k8s.io/v1");
  Put(Definition("gadgets", "Gadget", {"v1"}, "storage.k8s.io"));
  Put(Definition("storageclasses", "Storage", {"v1"}, "storage.k8s.io"));
  EXPECT_NE(Url("apis/storage.k8s.io/v1"), url);
  const json::object document = Parsed("/openapi/v3/apis/storage.k8s.io/v1");
  const json::object& paths = document.at("paths").as_object();
  EXPECT_TRUE(paths.contains("/apis/storage.k8s.io/v1/gadgets"));
  EXPECT_TRUE(paths.contains("/apis/storage.k8s.io/v1/storageclasses"));
  const json::object& schemas = document.at("components").at("schemas").as_object();
  EXPECT_TRUE(schemas.contains("io.k8s.storage.v1.Gadget"));
  EXPECT_TRUE(schemas.contains("io.k8s.api.storage.v1.StorageClass"));
  EXPECT_FALSE(schemas.contains("io.k8s.storage.v1.Storage")) << "its requests reach the built-in resource";
}

// Names of the entries of a map that stands in `field` of a document, in all of the document's parts.
void EntryNames(std::string_view document, uint32_t field, uint32_t entries, bool nested,
                std::set<std::string>& out) {
  api::wire::Record part, entry, name;
  for (const char *p = document.data(), *end = p + document.size(); p < end;) {
    ASSERT_TRUE(api::wire::ReadRecord(p, end, part));
    if (part.field != field) continue;
    if (nested) {
      EntryNames(part.bytes, 1, entries, false, out);
      continue;
    }
    for (const char *q = part.bytes.data(), *stop = q + part.bytes.size(); q < stop;) {
      ASSERT_TRUE(api::wire::ReadRecord(q, stop, entry));
      if (entry.field != entries) continue;
      const char* inner = entry.bytes.data();
      ASSERT_TRUE(api::wire::ReadRecord(inner, inner + entry.bytes.size(), name));
      EXPECT_TRUE(out.emplace(name.bytes).second) << name.bytes;
    }
  }
}
std::set<std::string> Keys(const json::value& object) {
  std::set<std::string> out;
  for (const auto& member : object.as_object()) out.emplace(member.key());
  return out;
}

TEST_F(CustomOpenApiTest, ProtobufSaysTheSame) {
  Put(Definition("foos", "Foo", {"v1"}));
  Put(Definition("bars", "Bar", {"v1", "v2"}));
  const json::object v2 = Parsed("/openapi/v2");
  std::set<std::string> paths, schemas;
  const std::string v2_bytes = Get("/openapi/v2", {{"Accept", kV2Protobuf}})->body;
  EntryNames(v2_bytes, 8, 2, false, paths);
  EntryNames(v2_bytes, 9, 1, false, schemas);
  EXPECT_EQ(paths, Keys(v2.at("paths")));
  EXPECT_EQ(schemas, Keys(v2.at("definitions")));
  const json::object v3 = Parsed("/openapi/v3/apis/example.com/v1");
  paths.clear();
  schemas.clear();
  auto reply = Get("/openapi/v3/apis/example.com/v1", {{"Accept", kV3Protobuf}});
  EXPECT_EQ(reply->headers.Get("Content-Type"), kV3Protobuf);
  EntryNames(reply->body, 4, 1, false, paths);
  EntryNames(reply->body, 5, 1, true, schemas);
  EXPECT_EQ(paths, Keys(v3.at("paths")));
  EXPECT_EQ(schemas, Keys(v3.at("components").at("schemas")));
}

TEST_F(CustomOpenApiTest, IsCompressedForWhoWantsIt) {
  Put(Definition("foos", "Foo", {"v1"}));
  for (const char* target : {"/openapi/v2", "/openapi/v3/apis/example.com/v1", "/openapi/v3"}) {
    EXPECT_EQ(http::Gunzip(Get(target, {{"Accept-Encoding", "gzip"}})->body), Get(target)->body) << target;
  }
}

TEST(PublishedDefinitions, KeepLittleAndForgetItWhenIdle) {
  const storage::ObjectPtr stored =
      storage::Object::FromMessage(api::ResourceOf<CRD>(), Definition("foos", "Foo", {"v1"}), 1);
  const std::shared_ptr<PublishedDefinition> foos = Publish(stored);
  ASSERT_NE(foos, nullptr);
  const SteadyTime start{std::chrono::hours(1)}, later = start + std::chrono::minutes(5);
  EXPECT_EQ(foos->kept_bytes(), 0U);
  for (OpenApiForm form : {OpenApiForm::kV2Json, OpenApiForm::kV2Protobuf, OpenApiForm::kV3Json}) {
    foos->Fragment(0, form, start);
  }
  const auto fragment = foos->Fragment(0, OpenApiForm::kV3Protobuf, later);
  EXPECT_EQ(foos->Fragment(0, OpenApiForm::kV3Protobuf, later), fragment) << "made once";
  const size_t all = foos->kept_bytes();
  EXPECT_GT(all, 1000U);
  EXPECT_LT(all, 40'000U);
  foos->DropIdle(start);
  EXPECT_EQ(foos->kept_bytes(), fragment->paths.deflated.capacity() + fragment->schemas.deflated.capacity());
  foos->DropIdle(later);
  EXPECT_EQ(foos->kept_bytes(), 0U);
}

}  // namespace
}  // namespace keelson::apiserver
