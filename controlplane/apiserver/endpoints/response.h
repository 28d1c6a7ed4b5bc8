// Writes responses in the negotiated encoding. Each function ends the request.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

// Errors are Statuses in an encoding that the client accepts, JSON if there is none.
void ReplyError(Context& context, const Error& error);
void ReplyStatus(Context& context, const metav1::Status& status);
// MethodNotAllowed(): for paths that do not support the method. IsRead(): GET or HEAD.
Error MethodNotAllowed();
bool IsRead(const Context& context);
// Headers of a watch response: the same as those of other responses.
http::Headers ReplyHeaders(const Context& context, std::string_view content_type);
void ReplyObject(Context& context, int status, const registry::ObjectPtr& object);
// Joins the cached encodings of the items: encodes nothing again.
void ReplyList(Context& context, const registry::ObjectList& list);
void ReplyMessage(Context& context, int status, const api::Message& message,
                  const api::GroupVersionKind& gvk);
void ReplyMessage(Context& context, int status, const api::Message& message);
// Responses with a fixed content type, regardless of negotiation.
void ReplyText(Context& context, int status, std::string_view content_type, std::string body);
void ReplyBytes(Context& context, int status, std::string_view content_type,
                std::vector<std::shared_ptr<const std::string>> pieces);

// Adds the application/vnd.kubernetes.protobuf envelope to an object's bytes.
std::string WrapProtobuf(const api::GroupVersionKind& gvk, std::string_view raw);
// Extracts PartialObjectMetadata from an object's bytes.
std::string PartialMetadataJson(const storage::Object& object, std::string_view version);
std::string PartialMetadataProtobuf(const storage::Object& object, std::string_view version);

}  // namespace keelson::apiserver
