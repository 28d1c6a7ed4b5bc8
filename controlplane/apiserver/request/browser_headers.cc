#include "controlplane/apiserver/request/browser_headers.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include "controlplane/apiserver/request/audit_id.h"
#include "controlplane/apiserver/request/header_writer.h"

namespace keelson::apiserver {
namespace {

struct Rules {
  std::vector<std::unique_ptr<RE2>> origins;
  std::string transport_security;  // empty: no such header

  bool Allows(std::string_view origin) const {
    return !origin.empty() && std::any_of(origins.begin(), origins.end(), [&](const auto& expression) {
      return RE2::PartialMatch(re2::StringPiece(origin.data(), origin.size()), *expression);
    });
  }
};

Result<std::unique_ptr<RE2>> CompileOrigin(const std::string& text) {
  if (text.empty()) return Error(Code::kInvalid, "empty value in --cors-allowed-origins");
  auto expression = std::make_unique<RE2>(text, RE2::Quiet);
  std::string wrong = expression->error();
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  if (expression->ok() && !((has("^") || has("//")) && (has("$") || has(":")))) {
    wrong = "regular expression does not pin to start/end of host in the origin header";
  }
  if (wrong.empty()) return expression;
  return Error(Code::kInvalid, "--cors-allowed-origins has an invalid regular expression: " + wrong);
}

Result<> CheckDirective(const std::string& text) {
  if (text.find_first_not_of(' ') == std::string::npos) {
    return Error(Code::kInvalid, "empty value in strict-transport-security-directives");
  }
  const bool age = text.starts_with("max-age=") && std::count(text.begin(), text.end(), '=') == 1;
  if (age || text == "includeSubDomains" || text == "preload") return {};
  return Error(Code::kInvalid,
               "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, "
               "includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more "
               "information");
}

}  // namespace

Result<http::Handler> WithBrowserHeaders(const std::vector<std::string>& origins,
                                         const std::vector<std::string>& directives, http::Handler next) {
  if (origins.empty() && directives.empty()) return next;
  auto rules = std::make_shared<Rules>();
  for (const std::string& origin : origins) {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<RE2> expression, CompileOrigin(origin));
    rules->origins.push_back(std::move(expression));
  }
  for (const std::string& directive : directives) KEELSON_RETURN_IF_ERROR(CheckDirective(directive));
  rules->transport_security = fmt::format("{}", fmt::join(directives, "; "));
  return http::Handler([rules, next = std::move(next)](std::shared_ptr<const http::ServerRequest> request,
                                                       std::shared_ptr<http::ResponseWriter> writer) {
    http::Headers added;
    const std::string origin(request->headers.Get("Origin"));
    const bool allowed = rules->Allows(origin);
    if (allowed) {
      added.Add("Access-Control-Allow-Origin", origin);
      added.Add("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH");
      added.Add("Access-Control-Allow-Headers",
                "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, "
                "X-Requested-With, If-Modified-Since");
      added.Add("Access-Control-Expose-Headers", "Date");
      added.Add("Access-Control-Allow-Credentials", "true");
    }
    if (!rules->transport_security.empty()) {
      added.Add("Strict-Transport-Security", rules->transport_security);
    }
    if (allowed && request->method == "OPTIONS") {
      added.Add(std::string(kAuditId), AuditIdOf(request->headers));
      return writer->Reply(204, std::move(added), "");
    }
    next(std::move(request), std::make_shared<HeaderWriter>(std::move(writer), std::move(added)));
  });
}

}  // namespace keelson::apiserver
