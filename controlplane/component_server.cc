#include "controlplane/component_server.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "controlplane/memory_file.h"
#include "controlplane/options/tls_options.h"
#include "lib/base/text.h"
#include "lib/component/component_pages.h"
#include "lib/component/flags.h"
#include "lib/crypto/certificates.h"
#include "lib/http/server/metrics_page.h"
#include "lib/metrics/metrics.h"

namespace keelson::controlplane {
namespace {

using Request = std::shared_ptr<const http::ServerRequest>;
using Writer = std::shared_ptr<http::ResponseWriter>;

constexpr std::chrono::hours kCertificateLife{24 * 365};
const std::vector<std::string> kPaths = {"/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz"};

void ReplyText(http::ResponseWriter& writer, int status, std::string text) {
  writer.Reply(status, {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
               std::move(text));
}

bool Matches(std::string_view pattern, std::string_view path) {
  if (pattern.ends_with("*")) return path.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == path;
}

std::string BearerToken(const http::ServerRequest& request) {
  std::string_view value = request.headers.Get("Authorization");
  if (value.size() < 7 || !EqualsIgnoreCase(value.substr(0, 7), "Bearer ")) return "";
  value.remove_prefix(7);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  return std::string(value);
}

std::string VerbOf(const std::string& method) {
  const std::pair<const char*, const char*> kVerbs[] = {
      {"POST", "post"}, {"PUT", "put"}, {"PATCH", "patch"}, {"DELETE", "delete"}, {"HEAD", "head"}};
  for (const auto& [name, verb] : kVerbs) {
    if (method == name) return verb;
  }
  return "get";
}

class Pages {
 public:
  Pages(ComponentPages pages, client::DelegatedAuth& auth)
      : pages_(std::move(pages)), flags_(FlagsByName(pages_.flags)), auth_(auth) {
    pages_.checks.insert(pages_.checks.begin(), {"ping", [] { return Result<>(); }});
  }

  void Handle(const http::ServerRequest& request, http::ResponseWriter& writer) const {
    if (Result<> allowed = Admit(request); !allowed) {
      return ReplyText(writer, HttpStatus(allowed.error().code()), allowed.error().message() + "\n");
    }
    if (request.path == "/metrics") {
      http::ReplyMetrics(request, writer, metrics::Print());
    } else if (request.path == "/configz") {
      writer.Reply(200, {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}},
                   pages_.configz);
    } else if (request.path == "/metrics/slis") {
      http::ReplyMetrics(request, writer, component::HealthMetrics());
    } else if (request.path == "/metrics/resources" && pages_.resources) {
      http::ReplyMetrics(request, writer, pages_.resources());
    } else if (request.path == "/flagz" && pages_.flagz) {
      Page(writer, component::AnswerFlagz(pages_.component, flags_, request.headers.Get("Accept")));
    } else if (request.path == "/statusz" && pages_.statusz) {
      Page(writer, component::AnswerStatusz({pages_.component, started_, Clock::Real().Now(), kPaths},
                                            request.headers.Get("Accept")));
    } else if (!Health(request, writer)) {
      ReplyText(writer, 404, "404 page not found\n");
    }
  }

 private:
  Result<> Admit(const http::ServerRequest& request) const {
    for (const std::string& pattern : pages_.always_allow) {
      if (Matches(pattern, request.path)) return {};
    }
    KEELSON_ASSIGN_OR_RETURN(client::ReviewedUser user, Who(request));
    for (const std::string& group : user.groups) {
      if (group == "system:masters") return {};
    }
    authorizationv1::SubjectAccessReviewSpec what;
    what.mutable_non_resource_attributes()->set_path(request.path);
    what.mutable_non_resource_attributes()->set_verb(VerbOf(request.method));
    KEELSON_ASSIGN_OR_RETURN(bool allowed, auth_.Allowed(user, what));
    if (allowed) return {};
    return Error(Code::kForbidden, fmt::format("forbidden: User \"{}\" cannot {} path \"{}\"", user.name,
                                               VerbOf(request.method), request.path));
  }

  Result<client::ReviewedUser> Who(const http::ServerRequest& request) const {
    if (std::optional<client::ReviewedUser> user = UserOfProxy(request)) return *std::move(user);
    const bool refused =
        request.peer_refused || (request.peer && !request.peer->NamesUser(Clock::Real().Now()));
    if (request.peer && !refused && !request.peer->common_name.empty()) {
      client::ReviewedUser user{
          request.peer->common_name, request.peer->uid, request.peer->organizations, {}};
      user.groups.push_back("system:authenticated");
      return user;
    }
    std::string token = BearerToken(request);
    if (!token.empty()) return auth_.Review(token);
    if (refused) return Error(Code::kUnauthenticated, "Unauthorized");
    return client::ReviewedUser{"system:anonymous", "", {"system:unauthenticated"}, {}};
  }

  std::optional<client::ReviewedUser> UserOfProxy(const http::ServerRequest& request) const {
    if (!pages_.request_header) return std::nullopt;
    std::optional<apiserver::User> user = apiserver::UserOfProxy(pages_.request_header(), request);
    if (!user) return std::nullopt;
    if (!user->InGroup("system:authenticated") && !user->InGroup("system:unauthenticated")) {
      user->groups.emplace_back("system:authenticated");
    }
    return client::ReviewedUser{user->name, user->uid, user->groups, user->extra};
  }

  static void Page(http::ResponseWriter& writer, component::PageAnswer answer) {
    writer.Reply(answer.status,
                 {{"Content-Type", answer.content_type}, {"X-Content-Type-Options", "nosniff"}},
                 std::move(answer.text));
  }

  // /healthz, /livez and /readyz with all checks, and each check by its name below them.
  bool Health(const http::ServerRequest& request, http::ResponseWriter& writer) const {
    const std::string_view path = request.path;
    std::string_view root;
    for (std::string_view one : {"/healthz", "/livez", "/readyz"}) {
      if (path == one || (path.starts_with(one) && path[one.size()] == '/')) root = one;
    }
    if (root.empty()) return false;
    const std::string_view name = path.size() > root.size() ? path.substr(root.size() + 1) : "";
    component::HealthAnswer answer = component::AnswerHealth(
        pages_.checks, {root.substr(1), name, request.query.All("exclude"), request.query.Has("verbose")});
    ReplyText(writer, answer.status, std::move(answer.text));
    return true;
  }

  ComponentPages pages_;
  const std::map<std::string, std::string> flags_;
  const WallTime started_ = Clock::Real().Now();
  client::DelegatedAuth& auth_;
};

}  // namespace

http::Handler MakeComponentHandler(ComponentPages pages, client::DelegatedAuth& auth) {
  auto served = std::make_shared<Pages>(std::move(pages), auth);
  return [served](Request request, Writer writer) { served->Handle(*request, *writer); };
}

Result<std::unique_ptr<http::Server>> ListenForComponent(const Options& options, http::Handler handler) {
  http::ServerOptions server;
  server.address = options.bind_address;
  server.port = static_cast<uint16_t>(options.secure_port);
  server.worker_threads = 2;
  KEELSON_ASSIGN_OR_RETURN(server.tls, TlsOptionsOf(options));
  server.tls->proxy_ca_file = options.auth.requestheader_client_ca_file;
  SetConnections(options, server);
  if (server.tls->certificate_file.empty()) {
    char host[256] = {};
    (void)gethostname(host, sizeof host - 1);
    KEELSON_ASSIGN_OR_RETURN(std::string key, crypto::NewPrivateKey());
    crypto::CertificateSubject subject{
        .common_name = host, .dns_names = {host, "localhost"}, .ip_addresses = {"127.0.0.1"}};
    KEELSON_ASSIGN_OR_RETURN(std::string certificate, crypto::NewSelfSigned(key, subject, kCertificateLife));
    KEELSON_ASSIGN_OR_RETURN(MemoryFile certificate_file,
                             MemoryFile::Make("serving certificate", certificate));
    KEELSON_ASSIGN_OR_RETURN(MemoryFile key_file, MemoryFile::Make("serving key", key));
    server.tls->certificate_file = std::move(certificate_file).Keep();
    server.tls->key_file = std::move(key_file).Keep();
  }
  return http::Server::Listen(std::move(server), std::move(handler));
}

}  // namespace keelson::controlplane
