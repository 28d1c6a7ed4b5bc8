#include "controlplane/apiserver/aggregator/outgoing.h"

#include <fmt/format.h>

#include "controlplane/apiserver/aggregator/extension_clients.h"
#include "controlplane/apiserver/endpoints/forwarding.h"
#include "controlplane/apiserver/request/audit_id.h"
#include "lib/api/meta.h"
#include "lib/base/percent.h"
#include "lib/base/text.h"
#include "lib/http/streaming/streaming.h"
#include "lib/http/streaming/websocket.h"

namespace keelson::apiserver {
namespace {

// The path that was authorized, whatever its spelling in the request.
std::string EncodePath(std::string_view path) {
  std::string out;
  for (const std::string_view segment : Split(path, '/')) {
    if (!out.empty() || segment.data() != path.data()) out += '/';
    out += PercentEncode(segment);
  }
  return out;
}

std::string HostOf(const std::string& remote_address) {
  std::string host = remote_address.substr(0, remote_address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

OutgoingRequests::OutgoingRequests(IdentityHeaderNames headers)
    : headers_(std::move(headers)), pseudonym_("keelson-" + api::NewUid()) {}

bool OutgoingRequests::IsOwn(std::string_view header) const {
  if (IsIdentityHeader(header)) return true;
  for (const std::string& name : headers_.names) {
    if (EqualsIgnoreCase(header, name)) return true;
  }
  for (const std::string& prefix : headers_.prefixes) {
    if (EqualsIgnoreCase(header.substr(0, prefix.size()), prefix)) return true;
  }
  return false;
}

Result<http::ClientRequest> OutgoingRequests::Make(const Context& context) const {
  const http::ServerRequest& request = *context.request;
  const bool upgrade = http::IsUpgradeRequest(request);
  http::ClientRequest out;
  out.method = request.method;
  out.target = EncodePath(request.path);
  if (!request.raw_query.empty()) out.target += "?" + request.raw_query;
  out.body = request.body;
  out.body_stream = request.body_stream;
  const std::string_view length = request.headers.Get("Content-Length");
  if (out.body_stream && !length.empty()) out.headers.Add("Content-Length", std::string(length));
  std::string via, forwarded;
  for (const auto& [name, value] : request.headers) {
    if (EqualsIgnoreCase(name, "Via")) {
      via += value + ", ";
    } else if (EqualsIgnoreCase(name, "X-Forwarded-For")) {
      forwarded += value + ", ";
    } else if (upgrade && EqualsIgnoreCase(name, "Upgrade")) {
      out.headers.Add(name, value);
    } else if (!IsHopHeader(name) && !IsOwn(name) && !EqualsIgnoreCase(name, "Host") &&
               !EqualsIgnoreCase(name, "Sec-WebSocket-Protocol") && !EqualsIgnoreCase(name, "Expect")) {
      out.headers.Add(name, value);
    }
  }
  if (via.find(pseudonym_) != std::string::npos) {
    return Error(Code::kUnavailable, "the request has come back to the server that passed it on");
  }
  if (upgrade) {
    out.headers.Add("Connection", "Upgrade");
    // Without the client's token, which may stand among the protocols.
    const std::vector<std::string> protocols = http::OfferedSubprotocols(request);
    if (!protocols.empty()) out.headers.Add("Sec-WebSocket-Protocol", Join(protocols, ", "));
  }
  out.headers.Add(
      "Via", fmt::format("{}{}.{} {}", via, request.http_major, request.http_major == 1 ? 1 : 0, pseudonym_));
  out.headers.Add("X-Forwarded-For", forwarded + HostOf(request.remote_address));
  out.headers.Set(std::string(kAuditId), context.audit_id);
  KEELSON_ASSIGN_OR_RETURN(const http::Headers identity, IdentityHeaders(context.user));
  for (const auto& [name, value] : identity) out.headers.Add(name, value);
  return out;
}

}  // namespace keelson::apiserver
