#include "controlplane/apiserver/crd/conversion_review.h"

#include <fmt/format.h>

#include "controlplane/apiextensions/custom_resource.h"
#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/api/meta.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/text/json_problem.h"
#include "lib/k8s/validation/extension/conversion.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using apiextensionsv1::ConversionReview;

constexpr std::string_view kGroup = "apiextensions.k8s.io", kKind = "ConversionReview";

Error Wrong(std::string message) { return Error(Code::kInternal, std::move(message)); }

std::string PrintKind(std::string_view api_version, std::string_view kind) {
  return fmt::format("{}, Kind={}", api_version.empty() ? "/" : api_version, kind);
}

std::string_view TextOf(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

}  // namespace

ConversionRequest MakeConversionRequest(std::string_view version, std::string_view desired,
                                        const std::vector<std::string>& objects) {
  ConversionReview review;
  auto& out = *review.mutable_request();
  ConversionRequest request{std::string(version), api::NewUid(), ""};
  out.set_uid(request.uid);
  out.set_desired_api_version(std::string(desired));
  for (const std::string& object : objects) out.add_objects()->set_raw(object);
  request.json = api::EncodeJson(review, {std::string(kGroup), request.version, std::string(kKind)});
  return request;
}

Result<std::vector<std::string>> ReadConversionResponse(std::string_view json,
                                                        const ConversionRequest& request) {
  ConversionReview review;
  api::TypeMeta type;
  if (Result<> decoded = api::DecodeJson(json, review, nullptr, &type); !decoded) {
    const std::string problem = k8s::JsonObjectProblem(json);
    if (problem.empty()) return Wrong(decoded.error().message());
    return Wrong("couldn't get version/kind; json parse error: " + problem);
  }
  const std::string expected = fmt::format("{}/{}", kGroup, request.version);
  const bool is_v1 = request.version == "v1";
  if (is_v1 && (type.kind != kKind || type.api_version != expected)) {
    return Wrong(fmt::format("expected webhook response of {}, got {}", PrintKind(expected, kKind),
                             PrintKind(type.api_version, type.kind)));
  }
  if (!review.has_response()) return Wrong("no response provided");
  const apiextensionsv1::ConversionResponse& response = review.response();
  if (is_v1 && response.uid() != request.uid) {
    return Wrong(
        fmt::format("expected response.uid={}, got {}", k8s::Quote(request.uid), k8s::Quote(response.uid())));
  }
  if (response.result().status() != "Success") {
    if (!response.result().message().empty()) return Wrong(response.result().message());
    return Wrong(fmt::format("response.result.status was '{}', not 'Success'", response.result().status()));
  }
  std::vector<std::string> objects;
  for (const auto& object : response.converted_objects()) objects.push_back(object.raw());
  return objects;
}

Result<std::unique_ptr<api::Message>> TakeConverted(std::string_view text,
                                                    const apiextensions::Versioned& original,
                                                    const apiextensions::CustomRow& to) {
  Result<json::value> tree = api::ParseTree(text);
  if (!tree) return Wrong("invalid object: " + tree.error().message());
  json::object* object = tree->if_object();
  if (!object || TextOf(*object, "kind").empty()) {
    return Wrong(fmt::format("invalid object: Object 'Kind' is missing in '{}'", text));
  }
  const std::string desired = to.ApiVersion();
  if (const std::string_view got = TextOf(*object, "apiVersion"); got != desired) {
    return Wrong(
        fmt::format("invalid object: invalid groupVersion (expected {}, received {})", desired, got));
  }
  if (const std::string_view got = TextOf(*object, "kind"); got != to.kind) {
    return Wrong(fmt::format("invalid object: invalid kind (expected {}, received {})", to.kind, got));
  }
  const metav1::ObjectMeta& meta = api::Meta(*original.object);
  if (Result<> same = k8s::ValidateConvertedObject(meta, *object); !same) {
    return Wrong("invalid object: " + same.error().message());
  }
  if (Result<> restored = k8s::RestoreObjectMeta(meta, *object); !restored) {
    return Wrong("invalid metadata: " + restored.error().message());
  }
  Result<std::unique_ptr<api::Message>> made = api::FromTree(std::move(*object));
  if (!made) return Wrong("invalid metadata: " + made.error().message());
  return made;
}

}  // namespace keelson::apiserver
