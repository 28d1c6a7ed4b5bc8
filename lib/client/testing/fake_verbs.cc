#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/patch/patch.h"
#include "lib/client/testing/fake_api_impl.h"

namespace keelson::client {
namespace {

using google::protobuf::Message;
using Object = FakeStore::Object;

constexpr char kJson[] = "application/json";

// The object alone, or what of it the request asks for.
ApiResponse AnswerTo(const FakeRequest& at, const ApiRequest& request, const Message& object,
                     int status = 200) {
  const bool metadata = request.accept.find("as=PartialObjectMetadata") != std::string::npos;
  return {status, !metadata && at.info->IsCustom() ? kJson : kProtobuf, Encode(*at.info, object, metadata)};
}

Result<std::unique_ptr<Message>> DecodeBody(const api::ResourceInfo& info, const ApiRequest& request) {
  std::unique_ptr<Message> object = api::NewObject(info.descriptor());
  if (!info.IsCustom()) {
    KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf(request.body, *object));
    return object;
  }
  if (request.content_type != kJson) return Error(Code::kUnsupportedMediaType, "custom resources are JSON");
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(request.body, *object));
  return object;
}

// One page in JSON.
std::string EncodeCustomList(const api::ResourceInfo& info, const metav1::ListMeta& meta,
                             const std::vector<Object>& items) {
  std::string out = fmt::format(R"({{"kind":"{}List","apiVersion":"{}","metadata":{},"items":[)", info.kind,
                                info.ApiVersion(), api::EncodeJson(meta));
  for (const Object& item : items) out += (item == items.front() ? "" : ",") + Encode(info, *item, false);
  return out + "]}";
}

Result<std::unique_ptr<Message>> Patched(const Message& object, const ApiRequest& request) {
  boost::json::value document = boost::json::parse(api::EncodeJson(object));
  boost::system::error_code malformed;
  boost::json::value patch = boost::json::parse(request.body, malformed);
  if (malformed) return Error(Code::kBadRequest, "malformed patch: " + malformed.message());
  if (request.content_type == "application/json-patch+json") {
    KEELSON_ASSIGN_OR_RETURN(document, api::ApplyJsonPatch(std::move(document), patch));
  } else if (request.content_type == "application/merge-patch+json") {
    document = api::ApplyMergePatch(std::move(document), patch);
  } else if (request.content_type == "application/strategic-merge-patch+json") {
    KEELSON_ASSIGN_OR_RETURN(
        document,
        api::ApplyStrategicMergePatch(std::move(document), patch, api::TypeViewOf(object.GetDescriptor())));
  } else {
    return Error(Code::kUnsupportedMediaType, "unsupported patch type " + request.content_type);
  }
  std::unique_ptr<Message> out(object.New());
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(boost::json::serialize(document), *out));
  return out;
}

}  // namespace

Result<ApiResponse> FakeApi::Impl::Post(const FakeRequest& at, const ApiRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> object, DecodeBody(*at.info, request));
  if (at.info->namespaced) api::MutableMeta(*object).set_namespace_(at.ns);
  KEELSON_ASSIGN_OR_RETURN(Object stored, store.Create(*at.info, *object));
  return AnswerTo(at, {}, *stored, 201);
}

Result<ApiResponse> FakeApi::Impl::PostSub(const FakeRequest& at, const ApiRequest& request) {
  metav1::Status done;
  done.set_status("Success");
  done.set_code(201);
  if (at.subresource == "binding") {
    corev1::Binding binding;
    KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf(request.body, binding));
    KEELSON_RETURN_IF_ERROR(store.Bind(at.Key(), binding));
    return ApiResponse{201, kProtobuf, api::EncodeProtobuf(done, {"", "v1", "Status"})};
  }
  if (at.subresource == "eviction") {
    KEELSON_RETURN_IF_ERROR(store.Delete(*at.info, at.Key(), metav1::DeleteOptions()));
    return ApiResponse{201, kProtobuf, api::EncodeProtobuf(done, {"", "v1", "Status"})};
  }
  if (at.subresource == "token") {
    KEELSON_RETURN_IF_ERROR(store.Get(*at.info, at.Key()));
    authenticationv1::TokenRequest token;
    KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf(request.body, token));
    int64_t seconds = token.spec().has_expiration_seconds() ? token.spec().expiration_seconds() : 3600;
    token.mutable_status()->set_token(fmt::format("token-of-{}-{}", at.name, store.version()));
    *token.mutable_status()->mutable_expiration_timestamp() =
        api::ToTime(clock.Now() + std::chrono::seconds(seconds));
    return Answer(token, 201);
  }
  return Error(Code::kNotFound, "the server could not find the requested resource");
}

Result<ApiResponse> FakeApi::Impl::Put(const FakeRequest& at, const ApiRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> object, DecodeBody(*at.info, request));
  if (api::KeyOf(*object) != at.Key()) {
    return Error(Code::kBadRequest, "the name of the object does not match the name on the URL");
  }
  KEELSON_ASSIGN_OR_RETURN(Object stored, store.Update(*at.info, at.subresource, *object));
  return AnswerTo(at, {}, *stored);
}

Result<ApiResponse> FakeApi::Impl::Patch(const FakeRequest& at, const ApiRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(Object before, store.Get(*at.info, at.Key()));
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> after, Patched(*before, request));
  KEELSON_ASSIGN_OR_RETURN(Object stored, store.Update(*at.info, at.subresource, *after));
  return AnswerTo(at, request, *stored);
}

Result<ApiResponse> FakeApi::Impl::Delete(const FakeRequest& at, const ApiRequest& request) {
  metav1::DeleteOptions options;
  if (request.content_type == "application/json") {
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(request.body, options));
  } else if (!request.body.empty()) {
    KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf(request.body, options));
  }
  if (!at.name.empty()) {
    KEELSON_ASSIGN_OR_RETURN(Object last, store.Delete(*at.info, at.Key(), options));
    return AnswerTo(at, request, *last);
  }
  KEELSON_ASSIGN_OR_RETURN(FakeSelection selection, FakeSelection::From(at, request));
  for (const Object& object : store.List(*at.info, at.ns)) {
    if (selection.Matches(*object)) {
      KEELSON_RETURN_IF_ERROR(store.Delete(*at.info, api::KeyOf(*object), options));
    }
  }
  metav1::Status done;
  done.set_status("Success");
  return ApiResponse{200, kProtobuf, api::EncodeProtobuf(done, {"", "v1", "Status"})};
}

Result<ApiResponse> FakeApi::Impl::List(const FakeRequest& at, const ApiRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(FakeSelection selection, FakeSelection::From(at, request));
  auto query = [&](const char* name) {
    auto it = at.query.find(name);
    return it == at.query.end() ? std::string() : it->second;
  };
  const size_t limit = query("limit").empty() ? SIZE_MAX : std::stoul(query("limit"));
  const std::string after = query("continue");

  api::GroupVersionKind gvk = at.info->Gvk();
  if (selection.metadata_only) gvk = {"meta.k8s.io", "v1", "PartialObjectMetadata"};
  gvk.kind += "List";
  // Custom objects have no list type.
  const api::Descriptor* type = selection.metadata_only || at.info->IsCustom()
                                    ? metav1::PartialObjectMetadataList::descriptor()
                                    : api::FindMessage(gvk.group, gvk.version, gvk.kind);
  if (!type) return Error(Code::kInternal, "no list type for " + gvk.kind);
  std::unique_ptr<Message> list = api::NewObject(type);
  const auto* items = type->FindFieldByName("items");
  metav1::ListMeta& meta = api::MutableListMeta(*list);
  meta.set_resource_version(std::to_string(store.version()));
  size_t count = 0;
  std::string last;
  std::vector<Object> custom_items;
  for (const Object& object : store.List(*at.info, at.ns)) {
    const std::string key = api::KeyOf(*object);
    if (key <= after || !selection.Matches(*object)) continue;
    if (count++ == limit) {
      meta.set_continue_(last);
      break;
    }
    last = key;
    if (at.info->IsCustom() && !selection.metadata_only) {
      custom_items.push_back(object);
      continue;
    }
    Message* item = list->GetReflection()->AddMessage(list.get(), items);
    if (selection.metadata_only) {
      item->CopyFrom(MetadataOf(*object));
    } else {
      item->CopyFrom(*object);
    }
  }
  if (at.info->IsCustom() && !selection.metadata_only) {
    return ApiResponse{200, kJson, EncodeCustomList(*at.info, meta, custom_items)};
  }
  return ApiResponse{200, kProtobuf, api::EncodeProtobuf(*list, gvk)};
}

Result<ApiResponse> FakeApi::Impl::Serve(const ApiRequest& request) {
  if (request.method == "GET" && request.target == "/apis") return custom.Discovery();
  KEELSON_ASSIGN_OR_RETURN(FakeRequest at, FakeRequest::Parse(request.target, custom.rows()));
  if (request.method == "POST") return at.subresource.empty() ? Post(at, request) : PostSub(at, request);
  if (request.method == "PUT") return Put(at, request);
  if (request.method == "PATCH") return Patch(at, request);
  if (request.method == "DELETE") return Delete(at, request);
  if (request.method != "GET") return Error(Code::kMethodNotAllowed, "method not allowed");
  if (at.name.empty()) return List(at, request);
  KEELSON_ASSIGN_OR_RETURN(Object object, store.Get(*at.info, at.Key()));
  return AnswerTo(at, request, *object);
}

}  // namespace keelson::client
