#include "controlplane/apiserver/handlers/response.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/handlers/gzip.h"
#include "controlplane/apiserver/local_transport.h"
#include "lib/api/codec.h"

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
client::ApiResponse Answer(const Output& output, const std::function<void(Context&)>& reply) {
  auto transport = NewLocalTransport([&](auto request, auto writer) {
    Context context;
    context.request = request;
    context.writer = writer;
    context.resource = &api::ResourceOf<corev1::ConfigMap>();
    context.output = output;
    reply(context);
  });
  auto response = transport->Do({}, std::chrono::seconds(5), {});
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
  output.as = As::kPartialMetadata;
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

TEST(Gzip, RoundTrips) {
  auto piece = [](std::string text) { return std::make_shared<const std::string>(std::move(text)); };
  std::string big(300000, 'x');
  std::string gzip = Gzip({piece("head "), piece(""), piece(big)});
  EXPECT_LT(gzip.size(), 3000u);
  EXPECT_EQ(Gunzip(gzip), "head " + big);
  EXPECT_EQ(Gunzip(gzip.substr(0, gzip.size() / 2)), "");
  EXPECT_EQ(Gunzip("junk"), "");
}

}  // namespace
}  // namespace keelson::apiserver
