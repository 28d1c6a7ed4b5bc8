#include "lib/api/codec/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/proto/apiextensions_v1.pb.h"

namespace keelson::api {
namespace {

using testing::ElementsAre;

TEST(EncodeJson, PodAsUpstreamPrintsIt) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name("web");
  pod.mutable_metadata()->mutable_creation_timestamp()->set_seconds(1767225600);
  (*pod.mutable_metadata()->mutable_labels())["b"] = "2";
  (*pod.mutable_metadata()->mutable_labels())["a"] = "1 < 2";
  auto& container = *pod.mutable_spec()->add_containers();
  container.set_name("app");
  auto& probe = *container.mutable_liveness_probe();
  probe.mutable_handler()->mutable_http_get()->mutable_port()->set_int_val(8080);
  probe.set_period_seconds(10);
  (*container.mutable_resources()->mutable_requests())["cpu"].set_string("100m");
  auto& volume = *pod.mutable_spec()->add_volumes();
  volume.set_name("tmp");
  volume.mutable_volume_source()->mutable_empty_dir();
  auto& status = *pod.mutable_status()->add_container_statuses();
  status.set_name("app");
  status.mutable_state()->mutable_running();
  pod.mutable_status()->add_conditions()->set_type("Ready");
  EXPECT_EQ(
      EncodeJson(pod, {"", "v1", "Pod"}),
      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","creationTimestamp":"2026-01-01T00:00:00Z",)"
      R"("labels":{"a":"1 \u003c 2","b":"2"}},"spec":{"volumes":[{"name":"tmp","emptyDir":{}}],)"
      R"("containers":[{"name":"app","resources":{"requests":{"cpu":"100m"}},)"
      R"("livenessProbe":{"httpGet":{"port":8080},"periodSeconds":10}}]},)"
      R"("status":{"conditions":[{"type":"Ready","status":"","lastProbeTime":null,"lastTransitionTime":null}],)"
      R"("containerStatuses":[{"name":"app","state":{"running":{"startedAt":null}},"lastState":{},"ready":false,)"
      R"("restartCount":0,"image":"","imageID":""}]}})");
}

TEST(EncodeJson, EmptyObjectsShowWhatGoAlwaysPrints) {
  EXPECT_EQ(EncodeJson(corev1::Pod()), R"({"metadata":{},"spec":{"containers":null},"status":{}})");
  EXPECT_EQ(EncodeJson(corev1::PodList(), {"", "v1", "PodList"}),
            R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]})");
  EXPECT_EQ(EncodeJson(corev1::Service()), R"({"metadata":{},"spec":{},"status":{"loadBalancer":{}}})");
  EXPECT_EQ(EncodeJson(appsv1::Deployment()),
            R"({"metadata":{},"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},)"
            R"("strategy":{}},"status":{}})");
  EXPECT_EQ(EncodeJson(appsv1::ControllerRevision()), R"({"metadata":{},"data":null,"revision":0})");
  EXPECT_EQ(EncodeJson(metav1::Condition()),
            R"({"type":"","status":"","lastTransitionTime":null,"reason":"","message":""})");
  EXPECT_EQ(EncodeJson(corev1::ResourceFieldSelector()), R"({"resource":"","divisor":"0"})");
  EXPECT_EQ(EncodeJson(discoveryv1::EndpointSlice()),
            R"({"metadata":{},"addressType":"","endpoints":null,"ports":null})");
}

TEST(EncodeJson, ClaimTemplatesSayWhatTheyAre) {
  appsv1::StatefulSetSpec spec;
  spec.add_volume_claim_templates()->mutable_metadata()->set_name("data");
  EXPECT_THAT(EncodeJson(spec),
              testing::HasSubstr(R"([{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{)"
                                 R"("name":"data"},"spec":{"resources":{}},"status":{}}])"));
  metav1::PartialObjectMetadataList list;
  list.add_items();
  EXPECT_EQ(EncodeJson(list), R"({"metadata":{},"items":[{"kind":"PartialObjectMetadata",)"
                              R"("apiVersion":"meta.k8s.io/v1","metadata":{}}]})");
}

TEST(EncodeJson, RawValuesAreCompactAndMayBeProtobuf) {
  appsv1::ControllerRevision revision;
  revision.mutable_data()->set_raw("{ \"a\" : [ 1, \"x y\" ] ,\"b\":\"<\"}");
  EXPECT_THAT(EncodeJson(revision), testing::HasSubstr(R"("data":{"a":[1,"x y"],"b":"\u003c"})"));
  revision.mutable_data()->set_raw("{broken");
  EXPECT_THAT(EncodeJson(revision), testing::HasSubstr(R"("data":null)"));
  corev1::ConfigMap config;
  config.mutable_metadata()->set_name("c");
  revision.mutable_data()->set_raw(EncodeProtobuf(config, {"", "v1", "ConfigMap"}));
  EXPECT_THAT(EncodeJson(revision),
              testing::HasSubstr(R"("data":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"}})"));
}

TEST(EncodeJson, Schemas) {
  auto json =
      R"({"type":"object","maximum":1.5,"items":[{},{"type":"string"}],"properties":{"a":{"default":{"x":1}}},)"
      R"("additionalProperties":false,"dependencies":{"a":["b"],"c":{}},"x-kubernetes-int-or-string":true})";
  apiextensions::v1::JSONSchemaProps schema;
  auto done = DecodeJson(json, schema);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(EncodeJson(schema), json);
  ASSERT_TRUE(DecodeJson(R"({"additionalProperties":{"type":"string"},"items":{}})", schema));
  EXPECT_TRUE(schema.additional_properties().allows());
  EXPECT_EQ(EncodeJson(schema), R"({"items":{},"additionalProperties":{"type":"string"}})");
}

TEST(DecodeJson, ValueZerosAreAbsent) {
  corev1::Pod pod;
  TypeMeta meta;
  auto done = DecodeJson(
      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"","generation":0,"creationTimestamp":null},
      "spec":{"hostNetwork":false,"terminationGracePeriodSeconds":0,"nodeName":null,
              "containers":[{"name":"a","securityContext":{"privileged":false},"resources":{}}],
              "volumes":[{"name":"v","emptyDir":{}}]},"status":{}})",
      pod, nullptr, &meta);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(meta.kind, "Pod");
  EXPECT_EQ(meta.api_version, "v1");
  EXPECT_FALSE(pod.has_metadata());
  EXPECT_FALSE(pod.has_status());
  EXPECT_FALSE(pod.spec().has_host_network());
  EXPECT_TRUE(pod.spec().has_termination_grace_period_seconds());
  EXPECT_FALSE(pod.spec().containers(0).has_resources());
  EXPECT_TRUE(pod.spec().containers(0).security_context().has_privileged());
  EXPECT_TRUE(pod.spec().volumes(0).volume_source().has_empty_dir());
}

TEST(DecodeJson, Forms) {
  corev1::Event event;
  auto done = DecodeJson(
      R"({"firstTimestamp":"2026-01-01T02:00:00.75+02:00","eventTime":"2026-01-01T00:00:00.000250Z"})",
      event);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(event.first_timestamp().seconds(), 1767225600);
  EXPECT_EQ(event.first_timestamp().nanos(), 0);
  EXPECT_EQ(event.event_time().nanos(), 250000);
  corev1::Secret secret;
  ASSERT_TRUE(DecodeJson(R"({"data":{"k":"aGVsbG8=","e":""}})", secret));
  EXPECT_EQ(secret.data().at("k"), "hello");
  EXPECT_EQ(EncodeJson(secret), R"({"metadata":{},"data":{"e":"","k":"aGVsbG8="}})");
  corev1::ResourceRequirements resources;
  ASSERT_TRUE(DecodeJson(R"({"limits":{"cpu":"1000m","memory":"1024Mi","pods":10,"e":"0.5"}})", resources));
  EXPECT_EQ(EncodeJson(resources), R"({"limits":{"cpu":"1","e":"500m","memory":"1Gi","pods":"10"}})");
  corev1::ServicePort port;
  ASSERT_TRUE(DecodeJson(R"({"port":80,"targetPort":"http"})", port));
  EXPECT_EQ(port.target_port().str_val(), "http");
  ASSERT_TRUE(DecodeJson(R"({"port":80,"targetPort":0})", port));
  EXPECT_FALSE(port.has_target_port());
}

TEST(DecodeJson, StrictValidationReportsInOrder) {
  corev1::Pod pod;
  DecodeReport report;
  auto done =
      DecodeJson(R"({"apiVersion":"v1","metadata":{"labels":{"a":"1","a":"2"},"bogus":{"x":[1]}},"Spec":{},
      "spec":{"containers":[{"name":"a"},{"name":"b","foo":1,"image":"x","image":"y"}],"nodeName":"n1","nodeName":"n2",
              "volumes":[{"name":"v","emptyDir":{"medium":"Memory"},"emptyDir":{},"kind":"x"}]},"kind":"Pod","kind":"Pod"})",
                 pod, &report);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_THAT(
      report.problems,
      ElementsAre(R"(duplicate field "metadata.labels.a")", R"(unknown field "metadata.bogus")",
                  R"(unknown field "Spec")", R"(unknown field "spec.containers[1].foo")",
                  R"(duplicate field "spec.containers[1].image")", R"(duplicate field "spec.nodeName")",
                  R"(duplicate field "spec.volumes[0].emptyDir")", R"(unknown field "spec.volumes[0].kind")",
                  R"(duplicate field "kind")"));
  EXPECT_EQ(pod.metadata().labels().at("a"), "2");
  EXPECT_EQ(pod.spec().containers(1).image(), "y");
  EXPECT_EQ(pod.spec().node_name(), "n2");
  EXPECT_FALSE(pod.spec().volumes(0).volume_source().empty_dir().has_medium());
  EXPECT_TRUE(pod.spec().volumes(0).volume_source().has_empty_dir());
}

TEST(DecodeJson, ErrorsInUpstreamsWords) {
  static constexpr std::pair<const char*, const char*> kCases[] = {
      {R"({"spec":{"replicas":"3"}})",
       "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"},
      {R"({"spec":{"replicas":1.5}})",
       "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"},
      {R"({"spec":{"replicas":3000000000}})",
       "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type "
       "int32"},
      {R"({"spec":[]})",
       "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec"},
      {R"({"spec":{"template":{"spec":{"containers":{}}}}})",
       "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type "
       "[]v1.Container"},
      {R"({"spec":{"template":{"spec":{"containers":[{"image":5}]}}}})",
       "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of "
       "type string"},
      {R"({"metadata":{"labels":{"a":true}}})",
       "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string"},
      {R"([])", "json: cannot unmarshal array into Go value of type v1.Deployment"},
      {R"({"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"1x"}}}]}}}})",
       "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {R"({"metadata":{"creationTimestamp":"today"}})",
       R"(parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006")"},
      {R"({"spec")", "unexpected end of JSON input"},
      {R"({"spec" 1})", "invalid character '1' after object key"},
      {R"({"spec":{}]})", "invalid character ']' after object key:value pair"},
      {R"({"spec":{}} x)", "invalid character 'x' after top-level value"},
      {R"({"spec":nil})", "invalid character 'i' in literal null (expecting 'u')"},
      {"{\"metadata\":{\"name\":\"a\nb\"}}", "invalid character '\\n' in string literal"},
      {R"({spec:1})", "invalid character 's' looking for beginning of object key string"},
  };
  for (const auto& [json, message] : kCases) {
    appsv1::Deployment object;
    auto done = DecodeJson(json, object);
    ASSERT_FALSE(done) << json;
    EXPECT_EQ(done.error().code(), Code::kBadRequest);
    EXPECT_EQ(done.error().message(), message) << json;
  }
}

TEST(DecodeJson, TextIsDecodedAsGoDoes) {
  corev1::ConfigMap config;
  ASSERT_TRUE(DecodeJson(
      "{\"data\":{\"a\":\"\\u00e9\\ud83d\\udc33\\/\\n\",\"b\":\"\\ud800x\",\"c\":\"\xff\"}}", config));
  EXPECT_EQ(config.data().at("a"), "\xc3\xa9\xf0\x9f\x90\xb3/\n");
  EXPECT_EQ(config.data().at("b"), "\xef\xbf\xbdx");
  EXPECT_EQ(config.data().at("c"), "\xef\xbf\xbd");
}

TEST(DecodeJson, DepthIsLimited) {
  std::string deep = R"({"metadata":)" + std::string(100'000, '[');
  corev1::Pod pod;
  auto done = DecodeJson(deep, pod);
  ASSERT_FALSE(done);
  std::string skipped = R"({"x":)" + std::string(100'000, '[');
  done = DecodeJson(skipped, pod);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "exceeded max depth");
  std::string schema = R"({"type":"object")", close = "}";
  for (int i = 0; i < 200; ++i) schema = R"({"properties":{"a":)" + schema, close += "}}";
  apiextensions::v1::JSONSchemaProps props;
  done = DecodeJson(schema + close, props);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(EncodeJson(props), schema + close);
}

TEST(PeekTypeMeta, ReadsOnlyTheTopLevel) {
  auto meta = PeekTypeMeta(R"({"spec":{"kind":"no"},"kind":"Pod","apiVersion":"v1"})");
  ASSERT_TRUE(meta);
  EXPECT_EQ(meta->kind, "Pod");
  EXPECT_EQ(meta->api_version, "v1");
  EXPECT_FALSE(PeekTypeMeta("[1]"));
  EXPECT_FALSE(PeekTypeMeta(R"({"kind":1})"));
  EXPECT_FALSE(PeekTypeMeta(R"({"kind":"Pod")"));
}

TEST(PrettyJson, IndentsByTwo) {
  EXPECT_EQ(
      PrettyJson(R"({"a":[1,{"b":"x:,{}"}],"c":{},"d":[ ]})"),
      "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x:,{}\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}");
}

TEST(Protobuf, EnvelopeIsWireCompatible) {
  corev1::Namespace ns;
  ns.mutable_metadata()->set_name("x");
  std::string bytes = EncodeProtobuf(ns, {"", "v1", "Namespace"});
  EXPECT_EQ(bytes,
            std::string("k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01x\x1a\0\x22\0", 32));
  auto envelope = OpenEnvelope(bytes);
  ASSERT_TRUE(envelope);
  EXPECT_EQ(envelope->type_meta.kind, "Namespace");
  EXPECT_EQ(envelope->raw, EncodeRaw(ns));
  EXPECT_FALSE(OpenEnvelope("{}"));
  EXPECT_FALSE(OpenEnvelope(std::string_view("k8s\0\x0a\x7f", 6)));
}

// The zero Time is absent; the epoch is not.
TEST(Protobuf, TimesKeepTheEpoch) {
  metav1::ObjectMeta meta;
  meta.mutable_creation_timestamp()->set_seconds(0);
  meta.mutable_deletion_timestamp()->set_seconds(7);
  meta.mutable_deletion_timestamp()->set_nanos(5);
  metav1::ObjectMeta copy;
  ASSERT_TRUE(DecodeRaw(EncodeRaw(meta), copy));
  EXPECT_TRUE(copy.has_creation_timestamp());
  EXPECT_EQ(EncodeJson(copy),
            R"({"creationTimestamp":"1970-01-01T00:00:00Z","deletionTimestamp":"1970-01-01T00:00:07Z"})");
  EXPECT_FALSE(copy.deletion_timestamp().has_nanos());
}

TEST(Protobuf, TimesThatCannotBeWrittenAreRefused) {
  for (int64_t seconds : {int64_t{253402300800}, int64_t{-62167219201}}) {
    metav1::ObjectMeta meta, copy;
    meta.mutable_creation_timestamp()->set_seconds(seconds);
    EXPECT_FALSE(DecodeRaw(EncodeRaw(meta), copy)) << seconds;
  }
}

TEST(Protobuf, YearOneIsNoTime) {
  metav1::ObjectMeta meta, copy;
  meta.mutable_creation_timestamp()->set_seconds(-62135596800);
  meta.mutable_deletion_timestamp()->set_seconds(-62135596800);
  ASSERT_TRUE(DecodeRaw(EncodeRaw(meta), copy));
  EXPECT_FALSE(copy.has_creation_timestamp());
  EXPECT_FALSE(copy.has_deletion_timestamp());
}

TEST(Protobuf, UnknownFieldsAreDropped) {
  corev1::Pod pod;
  std::string bytes("\x0a\x03\x0a\x01x\xfa\x3f\x01y", 9);  // metadata.name and field 1023
  ASSERT_TRUE(DecodeRaw(bytes, pod));
  EXPECT_EQ(EncodeRaw(pod), std::string("\x0a\x03\x0a\x01x", 5));
  EXPECT_FALSE(DecodeRaw("\x0a\x7f", pod));
}

}  // namespace
}  // namespace keelson::api
