// Replies in the negotiated form. Each ends the request.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

// Errors are Statuses in the form that the client accepts, JSON when it accepts none.
void ReplyError(Context& context, const Error& error);
void ReplyStatus(Context& context, const metav1::Status& status);
// For what is there and does not know the method; IsRead: GET and HEAD, all that documents know.
Error MethodNotAllowed();
bool IsRead(const Context& context);
// A watch that has not begun (a stream has its own errors): the same headers as other replies.
http::Headers ReplyHeaders(const Context& context, std::string_view content_type);
void ReplyObject(Context& context, int status, const registry::ObjectPtr& object);
// Cached bytes of the items, one after another: nothing is encoded again.
void ReplyList(Context& context, const registry::ObjectList& list);
void ReplyMessage(Context& context, int status, const api::Message& message,
                  const api::GroupVersionKind& gvk);
void ReplyMessage(Context& context, int status, const api::Message& message);
// Bodies that are what they are, whatever was asked for.
void ReplyText(Context& context, int status, std::string_view content_type, std::string body);
void ReplyBytes(Context& context, int status, std::string_view content_type,
                std::vector<std::shared_ptr<const std::string>> pieces);

// The application/vnd.kubernetes.protobuf envelope around an object's bytes.
std::string WrapProtobuf(const api::GroupVersionKind& gvk, std::string_view raw);
// PartialObjectMetadata of an object, from its bytes.
std::string PartialMetadataJson(const storage::Object& object, std::string_view version);
std::string PartialMetadataProtobuf(const storage::Object& object, std::string_view version);

}  // namespace keelson::apiserver
