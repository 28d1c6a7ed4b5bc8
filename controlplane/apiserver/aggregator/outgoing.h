// Requests as this server passes them on to another API server, which learns the user from headers that it believes because
// of this server's client certificate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "lib/http/client/client.h"

namespace keelson::apiserver {

// Headers that name users to this server (--requestheader-*), besides X-Remote-*: names, and prefixes of names.
struct IdentityHeaderNames {
  std::vector<std::string> names, prefixes;
};

class OutgoingRequests {  // thread safe
 public:
  explicit OutgoingRequests(IdentityHeaderNames headers);

  // The request with its body, without the client's credentials and without headers of one connection.
  // kUnavailable: it has been here before; kInvalid: the user cannot stand in headers.
  Result<http::ClientRequest> Make(const Context& context) const;

 private:
  bool IsOwn(std::string_view header) const;

  const IdentityHeaderNames headers_;
  const std::string pseudonym_;  // this server's name in Via headers
};

}  // namespace keelson::apiserver
