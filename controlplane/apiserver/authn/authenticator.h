// Authenticates a request: authenticating proxy, client certificate, bearer token, else anonymous if allowed.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/authn/request_header.h"
#include "controlplane/apiserver/authn/token_verifier.h"
#include "lib/base/clock.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

struct AnonymousOptions {
  bool enabled = true;
  std::vector<std::string> paths;  // exact paths; empty: all

  bool operator==(const AnonymousOptions&) const = default;
};

class Authenticator {  // thread safe
 public:
  struct Options {
    // In order; the first that recognizes a token decides
    std::vector<std::shared_ptr<TokenVerifier>> tokens;
    std::vector<std::string> api_audiences;  // of this server
    RequestHeaderOptions request_header;
    AnonymousOptions anonymous;
  };
  explicit Authenticator(Options options, Clock& clock = Clock::Real())
      : options_(std::make_shared<const Options>(std::move(options))), clock_(clock) {}

  // Applies to later requests.
  void Replace(Options options) { options_.store(std::make_shared<const Options>(std::move(options))); }

  // kUnauthenticated ("Unauthorized") without valid credentials.
  Result<User> Authenticate(const http::ServerRequest& request) const;
  // For TokenReview. The error message states the reason. `audiences` empty: the server's audiences.
  Result<TokenAnswer> AuthenticateToken(std::string_view token,
                                        const std::vector<std::string>& audiences) const;

 private:
  Result<User> Identify(const http::ServerRequest& request) const;
  static Result<TokenAnswer> Ask(const Options& options, std::string_view token,
                                 const std::vector<std::string>& audiences);

  std::atomic<std::shared_ptr<const Options>> options_;
  Clock& clock_;
};

}  // namespace keelson::apiserver
