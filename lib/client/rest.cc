#include "lib/client/rest.h"

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/percent.h"
#include "lib/client/json_objects.h"
#include "lib/client/request.h"
#include "lib/client/watch.h"
#include "lib/client/wire.h"

namespace keelson::client {
namespace {

using google::protobuf::Message;

constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf", kJson = "application/json";
constexpr std::string_view kMetadataListOnly =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
    "application/vnd.kubernetes.protobuf,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
    "application/json";

class Query {
 public:
  Query& Add(std::string_view key, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += key;
    text_ += '=';
    text_ += PercentEncode(value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Query SelectionOf(const ListOptions& options) {
  Query query;
  query.Add("labelSelector", options.label_selector)
      .Add("fieldSelector", options.field_selector)
      .Add("resourceVersion", options.resource_version)
      .Add("resourceVersionMatch", options.resource_version_match);
  return query;
}

Result<> DecodeReply(const ApiResponse& response, Message& out) {
  Result<> decoded = api::DecodeProtobuf(response.body, out);
  if (!decoded) return Error(Code::kInternal, decoded.error().Wrap("reply of the API server").message());
  return {};
}

// Parses one page of a list: passes items to `each`, and fills `meta`.
Result<> ReadList(std::string_view raw, metav1::ListMeta& meta,
                  const std::function<Result<>(std::string_view raw)>& each) {
  return ForEachField(raw, [&](int number, std::string_view payload) -> Result<> {
    if (number == 1) return api::DecodeRaw(payload, meta);
    if (number == 2) return each(payload);
    return {};
  });
}

}  // namespace

RestClient::RestClient(std::shared_ptr<Transport> transport, std::chrono::milliseconds timeout)
    : transport_(std::move(transport)), timeout_(timeout) {}

RestClient RestClient::With(std::stop_token stop) const {
  RestClient copy = *this;
  copy.stop_ = std::move(stop);
  return copy;
}

Result<> RestClient::GetInto(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                             Message& out) const {
  ApiRequest request;
  request.target = ResourcePath(info, ns, name, "");
  KEELSON_ASSIGN_OR_RETURN(ApiResponse response, Answered(*transport_, request, timeout_, stop_));
  return DecodeReply(response, out);
}

Result<> RestClient::Write(std::string_view method, const Message& object, std::string_view subresource,
                           Message& out) const {
  const api::ResourceInfo& info = api::ResourceOf(object.GetDescriptor());
  const metav1::ObjectMeta& meta = api::Meta(object);
  bool create = method == "POST";
  ApiRequest request;
  request.method = method;
  request.target =
      ResourcePath(info, meta.namespace_(), create ? std::string_view() : meta.name(), subresource);
  request.content_type = kProtobuf;
  request.body = api::EncodeProtobuf(object, info.Gvk());
  KEELSON_ASSIGN_OR_RETURN(ApiResponse response, Answered(*transport_, request, timeout_, stop_));
  return DecodeReply(response, out);
}

Result<> RestClient::CreateSub(const api::ResourceInfo& parent, std::string_view ns, std::string_view name,
                               std::string_view subresource, const Message& body, Message* out) const {
  ApiRequest request;
  request.method = "POST";
  request.target = ResourcePath(parent, ns, name, subresource);
  request.content_type = kProtobuf;
  request.body = api::EncodeProtobuf(body, api::GvkOf(body.GetDescriptor()));
  KEELSON_ASSIGN_OR_RETURN(ApiResponse response, Answered(*transport_, request, timeout_, stop_));
  return out ? DecodeReply(response, *out) : Result<>();
}

Result<> RestClient::PatchInto(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                               std::string_view subresource, PatchType type, std::string body,
                               Message& out) const {
  ApiRequest request;
  request.method = "PATCH";
  request.target = ResourcePath(info, ns, name, subresource);
  request.content_type = ContentTypeOf(type);
  request.body = std::move(body);
  KEELSON_ASSIGN_OR_RETURN(ApiResponse response, Answered(*transport_, request, timeout_, stop_));
  return DecodeReply(response, out);
}

Result<> RestClient::DeleteObject(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                                  const DeleteOptions& options) const {
  metav1::DeleteOptions body;
  if (options.grace_period_seconds) body.set_grace_period_seconds(*options.grace_period_seconds);
  if (!options.propagation_policy.empty()) body.set_propagation_policy(options.propagation_policy);
  if (!options.uid.empty()) body.mutable_preconditions()->set_uid(options.uid);
  if (!options.resource_version.empty()) {
    body.mutable_preconditions()->set_resource_version(options.resource_version);
  }
  ApiRequest request;
  request.method = "DELETE";
  request.target = ResourcePath(info, ns, name, "");
  request.content_type = kProtobuf;
  request.body = api::EncodeProtobuf(body, api::GvkOf(body.GetDescriptor()));
  KEELSON_RETURN_IF_ERROR(Answered(*transport_, request, timeout_, stop_));
  return {};
}

Result<> RestClient::ListEach(const api::ResourceInfo& info, std::string_view ns, const ListOptions& options,
                              std::string* resource_version,
                              const std::function<Result<>(std::string_view raw)>& each) const {
  ListOptions page = options;
  for (;;) {
    Query query = SelectionOf(page);
    if (page.limit > 0) query.Add("limit", std::to_string(page.limit));
    query.Add("continue", page.continue_token);
    ApiRequest request;
    request.target = ResourcePath(info, ns, "", "") + query.text();
    const JsonObjects form = options.metadata_only ? JsonObjects::kMetadata : JsonObjects::kCustom;
    if (options.metadata_only) {
      request.accept = kMetadataListOnly;
    } else if (info.IsCustom()) {
      request.accept = kJson;
    }
    KEELSON_ASSIGN_OR_RETURN(ApiResponse response, Answered(*transport_, request, timeout_, stop_));
    metav1::ListMeta meta;
    if ((options.metadata_only || info.IsCustom()) && IsJson(response.body)) {
      KEELSON_RETURN_IF_ERROR(ReadJsonList(form, response.body, meta, each));
    } else {
      KEELSON_ASSIGN_OR_RETURN(api::Envelope envelope, api::OpenEnvelope(response.body));
      KEELSON_RETURN_IF_ERROR(ReadList(envelope.raw, meta, each));
    }
    if (resource_version) *resource_version = meta.resource_version();
    if (meta.continue_().empty()) return {};
    page.continue_token = meta.continue_();
    page.resource_version.clear();  // the token includes it
    page.resource_version_match.clear();
  }
}

Result<std::unique_ptr<WatchStream>> RestClient::Watch(const api::ResourceInfo& info, std::string_view ns,
                                                       const ListOptions& options) const {
  Query query = SelectionOf(options);
  query.Add("watch", "true")
      .Add("allowWatchBookmarks", "true")
      .Add("timeoutSeconds", std::to_string(WatchTimeoutSeconds()));
  ApiRequest request;
  request.target = ResourcePath(info, ns, "", "") + query.text();
  JsonObjects form = JsonObjects::kMetadata;
  if (options.metadata_only) {
    request.accept = kMetadataOnly;
  } else if (info.IsCustom()) {
    request.accept = kJson;
    form = JsonObjects::kCustom;
  }
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<ApiStream> stream, transport_->Open(request, stop_));
  return NewWatchStream(std::move(stream), stop_, form);
}

Result<> RestClient::DecodeInto(std::string_view raw, Message& out) { return api::DecodeRaw(raw, out); }

}  // namespace keelson::client
