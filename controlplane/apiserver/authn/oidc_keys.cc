#include "controlplane/apiserver/authn/oidc_keys.h"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/authn/jwt.h"
#include "lib/base/log.h"
#include "lib/crypto/digest.h"
#include "lib/crypto/server_identity.h"
#include "lib/http/client/client.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kFetchTimeout{5};
constexpr std::chrono::seconds kFetchPause{10};
constexpr size_t kMaxDocument = 1 << 20;
constexpr size_t kMaxKeys = 100;

metrics::Family& fetched_at = metrics::Gauge(
    "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
    "Timestamp of the last successful or failed JWKS fetch split by result, api server identity "
    "and jwt issuer for the JWT authenticator.",
    {"result", "jwt_issuer_hash", "apiserver_id_hash"});

Result<json::object> ParseDocument(const std::string& text) {
  if (text.size() > kMaxDocument) return Error(Code::kInvalid, "document is too large");
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return Error(Code::kInvalid, "document is no JSON object");
  return std::move(value.get_object());
}

}  // namespace

OidcKeys::OidcKeys(std::string issuer_url, std::string discovery_url, std::string ca_pem, Clock& clock)
    : issuer_url_(std::move(issuer_url)),
      discovery_url_(std::move(discovery_url)),
      ca_pem_(std::move(ca_pem)),
      clock_(clock) {}

Result<std::string> OidcKeys::Get(const std::string& url) const {
  constexpr std::string_view kHttps = "https://";
  if (url.compare(0, kHttps.size(), kHttps) != 0) return Error(Code::kInvalid, url + " is no https URL");
  auto slash = url.find('/', kHttps.size());
  http::ClientOptions options;
  options.base_url = url.substr(0, slash);
  options.tls.ca_pem = ca_pem_;
  options.connect_timeout = kFetchTimeout;
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> client, http::Client::Create(std::move(options)));
  http::ClientRequest request;
  request.target = slash == std::string::npos ? "/" : url.substr(slash);
  request.headers.Set("Accept", "application/json");
  KEELSON_ASSIGN_OR_RETURN(http::ClientResponse response, client->Do(request, kFetchTimeout));
  if (response.status != 200) {
    return Error(Code::kUnavailable, fmt::format("{} answered with status {}", url, response.status));
  }
  return std::move(response.body);
}

Result<OidcKeys::KeysPtr> OidcKeys::Fetch() const {
  KEELSON_ASSIGN_OR_RETURN(std::string discovery, Get(discovery_url_));
  KEELSON_ASSIGN_OR_RETURN(json::object configuration, ParseDocument(discovery));
  if (TextClaim(configuration, "issuer") != issuer_url_) {
    return Error(Code::kInvalid, "the provider calls itself by another issuer");
  }
  KEELSON_ASSIGN_OR_RETURN(std::string jwks, Get(std::string(TextClaim(configuration, "jwks_uri"))));
  KEELSON_ASSIGN_OR_RETURN(json::object document, ParseDocument(jwks));
  auto keys = std::make_shared<Keys>();
  const json::value* listed = document.if_contains("keys");
  if (!listed || !listed->is_array()) return Error(Code::kInvalid, "the key set has no keys");
  for (const json::value& one : listed->get_array()) {
    if (!one.is_object() || keys->size() == kMaxKeys) continue;
    const json::object& members = one.get_object();
    std::string_view use = TextClaim(members, "use");
    if (!use.empty() && use != "sig") continue;
    auto key = crypto::VerifyKey::FromJwk(
        [&](std::string_view name) { return std::string(TextClaim(members, name)); });
    if (key) keys->push_back({std::string(TextClaim(members, "kid")), std::move(*key)});
  }
  return KeysPtr(std::move(keys));
}

OidcKeys::KeysPtr OidcKeys::Known() {
  MutexLock lock(mutex_);
  return keys_;
}

OidcKeys::KeysPtr OidcKeys::Refresh() {
  {
    MutexLock lock(mutex_);
    if (fetching_ || clock_.Now() < next_fetch_) return keys_;
    fetching_ = true;
  }
  Result<KeysPtr> fetched = Fetch();
  fetched_at
      .With({fetched ? "success" : "failure", "sha256:" + crypto::Sha256Hex(issuer_url_),
             crypto::ApiServerIdHash()})
      .Set(std::chrono::duration<double>(clock_.Now().time_since_epoch()).count());
  if (!fetched) log::Warn("Cannot get an issuer's keys", {{"issuer", issuer_url_}, {"err", fetched.error()}});
  MutexLock lock(mutex_);
  fetching_ = false;
  next_fetch_ = clock_.Now() + kFetchPause;
  if (fetched) keys_ = std::move(*fetched);
  return keys_;
}

Result<bool> OidcKeys::Verify(const std::string& id, std::string_view algorithm, std::string_view data,
                              std::string_view signature) {
  auto verified = [&](const KeysPtr& keys) {
    for (const Key& key : *keys) {
      if (!id.empty() && key.id != id) continue;
      if (key.key.Verify(algorithm, data, signature)) return true;
    }
    return false;
  };
  KeysPtr known = Known();
  if (known && verified(known)) return true;
  KeysPtr fresh = Refresh();
  if (!fresh) return Error(Code::kUnavailable, "oidc: authenticator not initialized");
  return fresh != known && verified(fresh);
}

}  // namespace keelson::apiserver
