#include "controlplane/apiserver/endpoints/response.h"

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/request_metrics.h"
#include "controlplane/apiserver/endpoints/table.h"
#include "controlplane/apiserver/request/yaml.h"
#include "controlplane/storage/stored_value_decoder.h"
#include "controlplane/storage/wire.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/http/gzip.h"

namespace keelson::apiserver {
namespace {

using Piece = std::shared_ptr<const std::string>;
using Pieces = std::vector<Piece>;

constexpr size_t kGzipAbove = 128 * 1024;

Piece Own(std::string text) { return std::make_shared<const std::string>(std::move(text)); }
const Piece& Newline() {
  static const Piece piece = Own("\n");
  return piece;
}
const Piece& Comma() {
  static const Piece piece = Own(",");
  return piece;
}

size_t Size(const Pieces& pieces) {
  size_t size = 0;
  for (const Piece& piece : pieces) size += piece->size();
  return size;
}

std::string Join(const Pieces& pieces) {
  std::string out;
  out.reserve(Size(pieces));
  for (const Piece& piece : pieces) out += *piece;
  return out;
}

// Compact JSON ends with a newline, pretty JSON does not.
void ReplyJson(Context& context, int status, Pieces pieces) {
  if (context.output.encoding == Encoding::kYaml) {
    pieces = {Own(JsonToYaml(Join(pieces)))};
  } else if (context.output.pretty) {
    pieces = {Own(api::PrettyJson(Join(pieces)))};
  } else {
    pieces.push_back(Newline());
  }
  ReplyBytes(context, status, context.output.ContentType(), std::move(pieces));
}

// "*core.PodList": the Go type name in messages.
std::string TypeName(const api::ResourceInfo& info, std::string_view suffix) {
  std::string_view package = info.kind_group.substr(0, info.kind_group.find('.'));
  return fmt::format("*{}.{}{}", package.empty() ? "core" : package, info.kind, suffix);
}

metav1::ListMeta ListMetaOf(const registry::ObjectList& list) {
  metav1::ListMeta meta;
  if (list.revision > 0) meta.set_resource_version(std::to_string(list.revision));
  if (!list.continue_token.empty()) meta.set_continue_(list.continue_token);
  if (list.remaining) meta.set_remaining_item_count(*list.remaining);
  return meta;
}

api::GroupVersionKind ListKind(const Context& context) {
  if (context.output.as == As::kPartialMetadataList) {
    return {"meta.k8s.io", context.output.version, "PartialObjectMetadataList"};
  }
  api::GroupVersionKind gvk = context.resource->Gvk();
  gvk.kind += "List";
  return gvk;
}

}  // namespace

http::Headers ReplyHeaders(const Context& context, std::string_view content_type) {
  http::Headers headers{{"Content-Type", std::string(content_type)}, {"Cache-Control", "no-cache, private"}};
  for (std::string& warning : WarningHeaders(context.warnings)) headers.Add("Warning", std::move(warning));
  if (context.retry_after_seconds > 0) {
    headers.Add("Retry-After", std::to_string(context.retry_after_seconds));
  }
  return headers;
}

void ReplyBytes(Context& context, int status, std::string_view content_type, Pieces pieces) {
  http::Headers headers = ReplyHeaders(context, content_type);
  context.status = status;
  if (context.audit) context.audit->SetResponse(content_type, pieces);
  if (context.output.gzip && Size(pieces) >= kGzipAbove) {
    headers.Add("Content-Encoding", "gzip");
    headers.Add("Vary", "Accept-Encoding");
    std::string body = http::Gzip(pieces);
    ObserveResponseSize(context, body.size());
    context.writer->Reply(status, std::move(headers), std::move(body));
    return;
  }
  ObserveResponseSize(context, Size(pieces));
  context.writer->ReplyShared(status, std::move(headers), std::move(pieces));
}

void ReplyText(Context& context, int status, std::string_view content_type, std::string body) {
  ReplyBytes(context, status, content_type, {Own(std::move(body))});
}

std::string WrapProtobuf(const api::GroupVersionKind& gvk, std::string_view raw) {
  std::string type;
  storage::AppendBytes(1, gvk.ApiVersion(), type);
  storage::AppendBytes(2, gvk.kind, type);
  std::string out(api::kProtobufMagic);
  out.reserve(raw.size() + type.size() + 32);
  storage::AppendBytes(1, type, out);
  storage::AppendBytes(2, raw, out);
  storage::AppendBytes(3, "", out);  // Go writes empty strings, too
  storage::AppendBytes(4, "", out);
  return out;
}

void ReplyMessage(Context& context, int status, const api::Message& message,
                  const api::GroupVersionKind& gvk) {
  if (context.output.encoding == Encoding::kProtobuf) {
    ReplyText(context, status, context.output.ContentType(), WrapProtobuf(gvk, api::EncodeRaw(message)));
  } else {
    ReplyJson(context, status, {Own(api::EncodeJson(message, gvk))});
  }
}

void ReplyMessage(Context& context, int status, const api::Message& message) {
  ReplyMessage(context, status, message, api::GvkOf(message.GetDescriptor()));
}

void ReplyStatus(Context& context, const metav1::Status& status) {
  Result<Output> output = NegotiateOutput(*context.request, Forms::kPlain);
  context.output = output ? *output : PlainOutput(*context.request);
  if (!output) context.output.pretty = true;
  if (status.details().retry_after_seconds() > 0) {
    context.retry_after_seconds = status.details().retry_after_seconds();
  }
  if (context.audit) context.audit->SetStatus(status);
  ReplyMessage(context, status.code(), status, {"", "v1", "Status"});
}

void ReplyError(Context& context, const Error& given) {
  if (context.denial && context.denial->message() == given.message()) {
    metav1::Status denial = *context.denial;
    denial.mutable_metadata();
    return ReplyStatus(context, denial);
  }
  // Every failure after the deadline is a timeout; timers may be slightly early.
  constexpr std::chrono::milliseconds kEarly{5};
  const bool late =
      (given.Is(Code::kTimeout) || given.Is(Code::kUnavailable) || given.Is(Code::kCancelled)) &&
      SteadyTime::clock::now() + kEarly >= context.deadline;
  const Error error =
      late ? Error(Code::kTimeout, "Timeout: request did not complete within the allotted timeout")
                 .WithDetails({})
           : given;
  metav1::Status status = api::ToStatus(error);
  if (storage::IsReadError(error)) {
    status.set_reason("StorageReadError");
  } else if (error.Is(Code::kInternal) && !error.message().starts_with("Internal error occurred")) {
    status.clear_reason();  // plain errors of upstream have no reason
  }
  status.mutable_metadata();
  ReplyStatus(context, status);
}

Error MethodNotAllowed() {
  return Error(Code::kMethodNotAllowed, "the server does not allow this method on the requested resource");
}

bool IsRead(const Context& context) {
  return context.request->method == "GET" || context.request->method == "HEAD";
}

std::string PartialMetadataJson(const storage::Object& object, std::string_view version) {
  const api::GroupVersionKind gvk{"meta.k8s.io", std::string(version), "PartialObjectMetadata"};
  std::string json;
  api::WireToJson(metav1::PartialObjectMetadata::descriptor(), storage::MetadataOnly(object.raw()), &gvk,
                  json);
  return json;
}

std::string PartialMetadataProtobuf(const storage::Object& object, std::string_view version) {
  return WrapProtobuf({"meta.k8s.io", std::string(version), "PartialObjectMetadata"},
                      storage::MetadataOnly(object.raw()));
}

void ReplyObject(Context& context, int status, const registry::ObjectPtr& object) {
  const Output& output = context.output;
  if (output.as == As::kTable) {
    if (Result<> good = TableMaker::Check(context.query()); !good) return ReplyError(context, good.error());
    TableMaker table(object->info(), context.query(), output.version);
    return ReplyJson(context, status, table.Table({object}, metav1::ListMeta(), object->revision()));
  } else if (output.as == As::kPartialMetadata) {
    if (output.encoding == Encoding::kProtobuf) {
      return ReplyText(context, status, output.ContentType(),
                       PartialMetadataProtobuf(*object, output.version));
    }
    return ReplyJson(context, status, {Own(PartialMetadataJson(*object, output.version))});
  } else if (output.as == As::kPartialMetadataList) {
    return ReplyError(context, Error(Code::kNotAcceptable,
                                     fmt::format("you requested PartialObjectMetadataList, but the requested "
                                                 "object is not a list ({})",
                                                 TypeName(object->info(), ""))));
  }
  if (output.encoding == Encoding::kProtobuf) {
    return ReplyText(context, status, output.ContentType(), std::string(object->Protobuf()));
  }
  ReplyJson(context, status, {Own(object->TypedJson())});
}

void ReplyList(Context& context, const registry::ObjectList& list) {
  const Output& output = context.output;
  metav1::ListMeta meta = ListMetaOf(list);
  if (output.as == As::kPartialMetadata) {
    return ReplyError(context, Error(Code::kNotAcceptable,
                                     fmt::format("you requested PartialObjectMetadata, but the requested "
                                                 "object is a list ({})",
                                                 TypeName(*context.resource, "List"))));
  }
  bool partial = output.as == As::kPartialMetadataList;
  api::GroupVersionKind gvk = ListKind(context);
  if (output.as == As::kTable) {
    if (Result<> good = TableMaker::Check(context.query()); !good) return ReplyError(context, good.error());
    TableMaker table(*context.resource, context.query(), output.version);
    return ReplyJson(context, 200, table.Table(list.items, meta, list.revision));
  }
  if (output.encoding == Encoding::kProtobuf) {
    std::string raw;
    size_t size = 64;
    for (const registry::ObjectPtr& item : list.items) size += item->raw().size() + 8;
    raw.reserve(size);
    storage::AppendBytes(1, api::EncodeRaw(meta), raw);
    for (const registry::ObjectPtr& item : list.items) {
      storage::AppendBytes(2, partial ? storage::MetadataOnly(item->raw()) : item->raw(), raw);
    }
    return ReplyText(context, 200, output.ContentType(), WrapProtobuf(gvk, raw));
  }
  Pieces pieces;
  pieces.reserve(2 * list.items.size() + 3);
  pieces.push_back(Own("{\"kind\":\"" + gvk.kind + "\",\"apiVersion\":\"" + gvk.ApiVersion() +
                       "\",\"metadata\":" + api::EncodeJson(meta) + ",\"items\":["));
  for (const registry::ObjectPtr& item : list.items) {
    if (pieces.size() > 1) pieces.push_back(Comma());
    pieces.push_back(partial ? Own(PartialMetadataJson(*item, output.version)) : item->Json());
  }
  pieces.push_back(Own("]}"));
  ReplyJson(context, 200, std::move(pieces));
}

}  // namespace keelson::apiserver
