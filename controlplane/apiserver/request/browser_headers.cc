#include "controlplane/apiserver/request/browser_headers.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

namespace keelson::apiserver {
namespace {

using Shared = std::shared_ptr<const std::string>;

// Adds headers to the reply.
class HeaderWriter : public http::ResponseWriter {
 public:
  HeaderWriter(std::shared_ptr<http::ResponseWriter> next, http::Headers added)
      : next_(std::move(next)), added_(std::move(added)) {}

  void Reply(int status, http::Headers headers, std::string body) override {
    next_->Reply(status, With(std::move(headers)), std::move(body));
  }
  void ReplyShared(int status, http::Headers headers, std::vector<Shared> body) override {
    next_->ReplyShared(status, With(std::move(headers)), std::move(body));
  }
  void Start(int status, http::Headers headers) override { next_->Start(status, With(std::move(headers))); }
  bool Write(Shared data) override { return next_->Write(std::move(data)); }
  void Finish() override { next_->Finish(); }
  size_t queued_bytes() const override { return next_->queued_bytes(); }
  void OnClose(std::function<void()> callback) override { next_->OnClose(std::move(callback)); }
  bool closed() const override { return next_->closed(); }
  Result<std::unique_ptr<http::Stream>> Upgrade(http::Headers headers) override {
    return next_->Upgrade(With(std::move(headers)));
  }

 private:
  // A backend behind this server may have set them too.
  http::Headers With(http::Headers headers) const {
    for (const auto& [name, value] : added_) headers.Set(name, value);
    return headers;
  }

  const std::shared_ptr<http::ResponseWriter> next_;
  const http::Headers added_;
};

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
    if (allowed && request->method == "OPTIONS") return writer->Reply(204, std::move(added), "");
    next(std::move(request), std::make_shared<HeaderWriter>(std::move(writer), std::move(added)));
  });
}

}  // namespace keelson::apiserver
