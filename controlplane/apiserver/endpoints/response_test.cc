#include "controlplane/apiserver/endpoints/response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/local_transport.h"
#include "lib/api/codec/codec.h"
#include "lib/http/gzip.h"

namespace keelson::apiserver {
namespace {

corev1::ConfigMap MakeConfigMap(const std::string& name) {
  corev1::ConfigMap object;
  object.mutable_metadata()->set_name(name);
  object.mutable_metadata()->set_namespace_("default");
  (*object.mutable_metadata()->mutable_labels())["app"] = "web";
  (*object.mutable_data())["key"] = "value \"of\" " + name;
  return object;
}

registry::ObjectList MakeList(int count) {
  registry::ObjectList list;
  list.revision = 77;
  for (int i = 0; i < count; ++i) {
    list.items.push_back(storage::Object::FromMessage(api::ResourceOf<corev1::ConfigMap>(),
                                                      MakeConfigMap("c" + std::to_string(i)), 10 + i));
  }
  return list;
}

// The body of what `reply` answers.
client::ApiResponse Answer(const Output& output, const std::function<void(Context&)>& reply,
                           client::ApiRequest request = {.accept = "application/json"}) {
  auto transport = NewLocalTransport([&](auto received, auto writer) {
    Context context;
    context.request = received;
    context.writer = writer;
    context.resource = &api::ResourceOf<corev1::ConfigMap>();
    context.output = output;
    reply(context);
  });
  auto response = transport->Do(request, std::chrono::seconds(5), {});
  EXPECT_TRUE(response);
  return *response;
}

TEST(Response, EnvelopeIsTheCodecs) {
  corev1::ConfigMap object = MakeConfigMap("a");
  const api::GroupVersionKind gvk{"", "v1", "ConfigMap"};
  EXPECT_EQ(WrapProtobuf(gvk, api::EncodeRaw(object)), api::EncodeProtobuf(object, gvk));
}

TEST(Response, ListsDecodeInBothForms) {
  for (Encoding encoding : {Encoding::kJson, Encoding::kProtobuf}) {
    for (int count : {0, 1, 3}) {
      Output output;
      output.encoding = encoding;
      registry::ObjectList list = MakeList(count);
      list.continue_token = "more";
      list.remaining = 9;
      client::ApiResponse response = Answer(output, [&](Context& context) { ReplyList(context, list); });
      corev1::ConfigMapList decoded;
      api::TypeMeta type;
      Result<> done = encoding == Encoding::kJson ? api::DecodeJson(response.body, decoded, nullptr, &type)
                                                  : api::DecodeProtobuf(response.body, decoded, &type);
      ASSERT_TRUE(done) << done.error().message();
      EXPECT_EQ(type.kind, "ConfigMapList");
      EXPECT_EQ(type.api_version, "v1");
      EXPECT_EQ(decoded.metadata().resource_version(), "77");
      EXPECT_EQ(decoded.metadata().continue_(), "more");
      EXPECT_EQ(decoded.metadata().remaining_item_count(), 9);
      ASSERT_EQ(decoded.items_size(), count);
      for (int i = 0; i < count; ++i) {
        corev1::ConfigMap expected = MakeConfigMap("c" + std::to_string(i));
        expected.mutable_metadata()->set_resource_version(std::to_string(10 + i));
        EXPECT_EQ(api::EncodeRaw(decoded.items(i)), api::EncodeRaw(expected));
      }
    }
  }
}

TEST(Response, PartialMetadata) {
  Output output;
  output.as = As::kPartialMetadataList;
  output.encoding = Encoding::kProtobuf;
  client::ApiResponse response = Answer(output, [](Context& context) { ReplyList(context, MakeList(2)); });
  metav1::PartialObjectMetadataList decoded;
  api::TypeMeta type;
  ASSERT_TRUE(api::DecodeProtobuf(response.body, decoded, &type));
  EXPECT_EQ(type.kind, "PartialObjectMetadataList");
  EXPECT_EQ(type.api_version, "meta.k8s.io/v1");
  EXPECT_EQ(decoded.items(1).metadata().name(), "c1");
  EXPECT_EQ(decoded.items(1).metadata().labels().at("app"), "web");
}

TEST(Response, ErrorsAreStatuses) {
  client::ApiResponse response = Answer({}, [](Context& context) {
    ReplyError(context, registry::NotFoundError(*context.resource, "x"));
    EXPECT_EQ(context.status, 404);
  });
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
            "\"configmaps \\\"x\\\" not found\",\"reason\":\"NotFound\",\"details\":{\"name\":\"x\",\"kind\":"
            "\"configmaps\"},\"code\":404}\n");
}

TEST(Response, FormsThatDoNotFitAreNotAcceptable) {
  Output output;
  output.as = As::kPartialMetadata;
  client::ApiResponse list = Answer(output, [](Context& context) { ReplyList(context, MakeList(1)); });
  EXPECT_EQ(list.status, 406);
  EXPECT_THAT(list.body,
              testing::HasSubstr("you requested PartialObjectMetadata, but the requested object is a "
                                 "list (*core.ConfigMapList)"));
  output.as = As::kPartialMetadataList;
  client::ApiResponse one =
      Answer(output, [](Context& context) { ReplyObject(context, 200, MakeList(1).items[0]); });
  EXPECT_EQ(one.status, 406);
  EXPECT_THAT(one.body,
              testing::HasSubstr("you requested PartialObjectMetadataList, but the requested object is "
                                 "not a list (*core.ConfigMap)"));
}

TEST(Response, TablesTakeNoOtherRows) {
  Output output;
  output.as = As::kTable;
  client::ApiResponse response =
      Answer(output, [](Context& context) { ReplyList(context, MakeList(1)); },
             {.target = "/?includeObject=Everything", .accept = "application/json"});
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body,
              testing::HasSubstr("Unable to convert to Table as requested: includeObject: Invalid value: "
                                 "\\\"Everything\\\": must be 'Metadata', 'Object', 'None', or empty"));
}

TEST(Response, YamlAndPretty) {
  Output output;
  output.encoding = Encoding::kYaml;
  auto reply = [](Context& context) { ReplyObject(context, 200, MakeList(1).items[0]); };
  EXPECT_EQ(Answer(output, reply).body,
            "apiVersion: v1\ndata:\n  key: value \"of\" c0\nkind: ConfigMap\nmetadata:\n  labels:\n"
            "    app: web\n  name: c0\n  namespace: default\n  resourceVersion: \"10\"\n");
  output.encoding = Encoding::kJson;
  output.pretty = true;
  EXPECT_EQ(Answer(output, reply).body.substr(0, 45),
            "{\n  \"kind\": \"ConfigMap\",\n  \"apiVersion\": \"v1\"");
}

TEST(Response, ErrorsComeInTheFormThatTheClientReads) {
  struct Case {
    const char* accept;
    std::string start;
  };
  const Case kCases[] = {
      {"application/yaml", "apiVersion: v1\ncode: 504\n"},
      {"application/vnd.kubernetes.protobuf", std::string("k8s\0", 4)},
      {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "{\"kind\":\"Status\""},
      // Nothing that there is: JSON for people.
      {"application/json;as=Table;v=v1;g=meta.k8s.io", "{\n  \"kind\": \"Status\""},
      {"image/png", "{\n  \"kind\": \"Status\""},
  };
  for (const Case& c : kCases) {
    client::ApiResponse response =
        Answer({}, [](Context& context) { ReplyError(context, Error(Code::kTimeout, "later")); },
               {.accept = c.accept});
    EXPECT_EQ(response.status, 504);
    EXPECT_EQ(response.body.substr(0, c.start.size()), c.start) << c.accept;
  }
}

TEST(Response, HeadersOfErrors) {
  Context context;
  context.warnings = {"careful"};
  context.retry_after_seconds = 3;
  http::Headers headers = ReplyHeaders(context, "application/json");
  EXPECT_EQ(headers.Get("Warning"), "299 - \"careful\"");
  EXPECT_EQ(headers.Get("Retry-After"), "3");
  EXPECT_EQ(headers.Get("Cache-Control"), "no-cache, private");
}

TEST(Gzip, RoundTrips) {
  auto piece = [](std::string text) { return std::make_shared<const std::string>(std::move(text)); };
  std::string big(300000, 'x');
  std::string gzip = http::Gzip({piece("head "), piece(""), piece(big)});
  EXPECT_LT(gzip.size(), 3000u);
  EXPECT_EQ(http::Gunzip(gzip), "head " + big);
  EXPECT_EQ(http::Gunzip(gzip.substr(0, gzip.size() / 2)), "");
  EXPECT_EQ(http::Gunzip("junk"), "");
}

}  // namespace
}  // namespace keelson::apiserver
