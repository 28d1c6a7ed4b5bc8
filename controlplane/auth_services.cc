#include "controlplane/auth_services.h"

#include "controlplane/apiserver/authn/config.h"
#include "controlplane/apiserver/authn/webhook_tokens.h"
#include "controlplane/apiserver/authz/abac.h"
#include "controlplane/apiserver/authz/config.h"
#include "lib/api/duration.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/crypto/certificate_checks.h"

namespace keelson::controlplane {
namespace {

using apiserver::ApiServerOptions;

constexpr std::chrono::seconds kTokenWebhookTimeout{10};

Result<std::chrono::milliseconds> FlagDuration(const char* flag, const std::string& text) {
  const Result<int64_t> nanos = api::ParseGoDuration(text);
  if (!nanos) return nanos.error().Wrap(flag);
  if (*nanos < 0) return Error(Code::kInvalid, "invalid duration \"" + text + "\"").Wrap(flag);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(*nanos));
}

Result<> ReadKeys(const Options& options, ApiServerOptions& out) {
  for (const std::string& path : options.service_account_key_files) {
    KEELSON_ASSIGN_OR_RETURN(std::string pem, ReadFile(path));
    auto keys = crypto::SigningKey::FromPem(pem);
    if (!keys) return keys.error().Wrap(path);
    out.verify_keys.insert(out.verify_keys.end(), keys->begin(), keys->end());
  }
  if (options.service_account_signing_key_file.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(std::string pem, ReadFile(options.service_account_signing_key_file));
  auto keys = crypto::SigningKey::FromPem(pem);
  if (!keys) return keys.error().Wrap(options.service_account_signing_key_file);
  if (!keys->front().is_private()) {
    return Error(Code::kInvalid, options.service_account_signing_key_file + ": no private key");
  }
  out.signing_key = keys->front();
  out.verify_keys.push_back(keys->front());
  return {};
}

Result<> ReadServiceAccounts(const AuthFlags& flags, ApiServerOptions& out) {
  out.look_tokens_up = flags.service_account_lookup;
  out.extend_token_expiration = flags.service_account_extend_token_expiration;
  out.jwks_uri = flags.service_account_jwks_uri;
  if (!out.jwks_uri.empty() && out.jwks_uri.compare(0, 8, "https://") != 0) {
    return Error(Code::kInvalid, "--service-account-jwks-uri requires https scheme");
  }
  if (flags.service_account_max_token_expiration.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(auto longest, FlagDuration("--service-account-max-token-expiration",
                                                      flags.service_account_max_token_expiration));
  out.max_token_expiration = std::chrono::duration_cast<std::chrono::seconds>(longest);
  if (longest < std::chrono::hours(1) || out.max_token_expiration.count() > int64_t{1} << 32) {
    return Error(Code::kInvalid,
                 "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds");
  }
  return {};
}

// The provider of the --oidc-* flags.
Result<apiserver::OidcOptions> OidcOfFlags(const AuthFlags& flags) {
  apiserver::OidcOptions out;
  out.issuer_url = flags.oidc_issuer_url;
  if (flags.oidc_client_id.empty()) {
    return Error(Code::kInvalid, "oidc-issuer-url and oidc-client-id must be specified together");
  }
  out.audiences = {flags.oidc_client_id};
  out.algorithms = flags.oidc_signing_algs;
  out.username_claim = flags.oidc_username_claim;
  out.username_prefix = flags.oidc_username_prefix;
  if (out.username_prefix == "-") {
    out.username_prefix.clear();
  } else if (out.username_prefix.empty() && out.username_claim != "email") {
    out.username_prefix = out.issuer_url + "#";
  }
  out.groups_claim = flags.oidc_groups_claim;
  out.groups_prefix = flags.oidc_groups_prefix;
  for (const std::string& claim : flags.oidc_required_claims) {
    auto equals = claim.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error(Code::kInvalid, "--oidc-required-claim: expected key=value");
    }
    out.required_claims[claim.substr(0, equals)] = claim.substr(equals + 1);
  }
  if (!flags.oidc_ca_file.empty()) {
    KEELSON_ASSIGN_OR_RETURN(out.ca_pem, ReadFile(flags.oidc_ca_file));
  }
  return out;
}

Result<> ReadProviders(const AuthFlags& flags, ApiServerOptions& out) {
  std::vector<apiserver::OidcOptions> providers;
  if (!flags.authentication_config.empty()) {
    if (!flags.oidc_issuer_url.empty()) {
      return Error(Code::kInvalid, "authentication-config file and oidc-* flags are mutually exclusive");
    }
    KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(flags.authentication_config));
    auto config = apiserver::ParseAuthenticationConfig(text, out.issuers);
    if (!config) return config.error().Wrap(flags.authentication_config);
    providers = std::move(config->jwt);
    if (config->anonymous) out.anonymous = std::move(*config->anonymous);
  } else if (!flags.oidc_issuer_url.empty()) {
    KEELSON_ASSIGN_OR_RETURN(apiserver::OidcOptions provider, OidcOfFlags(flags));
    providers.push_back(std::move(provider));
  }
  for (apiserver::OidcOptions& provider : providers) {
    KEELSON_ASSIGN_OR_RETURN(auto verifier, apiserver::NewOidcVerifier(std::move(provider)));
    out.token_verifiers.push_back(std::move(verifier));
  }
  if (flags.token_webhook_config_file.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(auto client, apiserver::WebhookClient::FromKubeconfig(
                                            flags.token_webhook_config_file, kTokenWebhookTimeout));
  apiserver::WebhookTokenOptions options;
  options.version = flags.token_webhook_version;
  if (options.version != "v1" && options.version != "v1beta1") {
    return Error(Code::kInvalid, "--authentication-token-webhook-version must be v1 or v1beta1");
  }
  KEELSON_ASSIGN_OR_RETURN(options.cache_ttl, FlagDuration("--authentication-token-webhook-cache-ttl",
                                                           flags.token_webhook_cache_ttl));
  options.api_audiences = out.api_audiences.empty() ? out.issuers : out.api_audiences;
  out.token_verifiers.push_back(apiserver::NewWebhookTokenVerifier(std::move(client), std::move(options)));
  return {};
}

Result<std::vector<apiserver::AuthorizerConfig>> AuthorizerConfigs(const AuthFlags& flags) {
  if (!flags.authorization_config.empty()) {
    if (!flags.authorization_modes.empty() || !flags.authorization_webhook_config_file.empty() ||
        !flags.authorization_policy_file.empty()) {
      return Error(Code::kInvalid,
                   "--authorization-config can not be specified when --authorization-mode or "
                   "--authorization-webhook-* flags are defined");
    }
    KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(flags.authorization_config));
    auto parsed = apiserver::ParseAuthorizationConfig(text);
    if (!parsed) return parsed.error().Wrap(flags.authorization_config);
    return parsed;
  }
  apiserver::AuthorizerConfig webhook;
  webhook.kubeconfig_file = flags.authorization_webhook_config_file;
  webhook.webhook.version = flags.authorization_webhook_version;
  if (webhook.webhook.version != "v1" && webhook.webhook.version != "v1beta1") {
    return Error(Code::kInvalid, "--authorization-webhook-version must be v1 or v1beta1");
  }
  KEELSON_ASSIGN_OR_RETURN(webhook.webhook.authorized_ttl,
                           FlagDuration("--authorization-webhook-cache-authorized-ttl",
                                        flags.authorization_webhook_authorized_ttl));
  KEELSON_ASSIGN_OR_RETURN(webhook.webhook.unauthorized_ttl,
                           FlagDuration("--authorization-webhook-cache-unauthorized-ttl",
                                        flags.authorization_webhook_unauthorized_ttl));
  std::vector<std::string> modes = flags.authorization_modes;
  if (modes.empty()) modes = {"Node", "RBAC"};
  return apiserver::AuthorizersOfModes(modes, webhook, flags.authorization_policy_file);
}

Result<> ReadAuthorizers(const AuthFlags& flags, ApiServerOptions& out) {
  using Entry = ApiServerOptions::AuthorizerEntry;
  KEELSON_ASSIGN_OR_RETURN(std::vector<apiserver::AuthorizerConfig> configs, AuthorizerConfigs(flags));
  out.authorizers.clear();
  for (apiserver::AuthorizerConfig& config : configs) {
    Entry entry{Entry::Kind::kOther};
    entry.type = config.type;
    entry.name = config.name.empty() ? Lower(config.type) : config.name;
    if (config.type == "Node") {
      entry.kind = Entry::Kind::kNode;
    } else if (config.type == "RBAC") {
      entry.kind = Entry::Kind::kRbac;
    } else if (config.type == "Webhook") {
      KEELSON_ASSIGN_OR_RETURN(
          auto client, apiserver::WebhookClient::FromKubeconfig(config.kubeconfig_file, config.timeout));
      entry.other = apiserver::NewWebhookAuthorizer(std::move(client), std::move(config.webhook));
    } else if (config.type == "ABAC") {
      KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(config.policy_file));
      KEELSON_ASSIGN_OR_RETURN(entry.other, apiserver::NewAbacAuthorizer(config.policy_file, text));
    } else {
      bool allow = config.type == "AlwaysAllow";
      if (allow) out.anonymous.enabled = false;  // with AlwaysAllow anonymous users could do everything
      entry.other = apiserver::NewAlwaysAuthorizer(allow);
    }
    out.authorizers.push_back(std::move(entry));
  }
  return {};
}

Result<> ReadStaticTokens(const Options& options, ApiServerOptions& out) {
  if (options.token_auth_file.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(options.token_auth_file));
  KEELSON_ASSIGN_OR_RETURN(out.static_tokens, apiserver::ParseTokenFile(text));
  return {};
}

void ReadIssuers(const Options& options, ApiServerOptions& out) {
  out.issuers = options.service_account_issuers;
  out.api_audiences = options.api_audiences;
  out.anonymous.enabled = options.auth.anonymous_auth;
}

// With one CA for both, a client with a certificate of its own could name another user in a header. A file that cannot be
// read is reported where it is used.
Result<> CheckProxyAuthority(const Options& options) {
  const AuthFlags& flags = options.auth;
  if (options.client_ca_file.empty() || flags.requestheader_client_ca_file.empty() ||
      !flags.requestheader_allowed_names.empty()) {
    return {};
  }
  const Result<std::string> clients = ReadFile(options.client_ca_file),
                            proxies = ReadFile(flags.requestheader_client_ca_file);
  if (!clients || !proxies || !crypto::HaveCertificateInCommon(*clients, *proxies)) return {};
  return Error(
      Code::kInvalid,
      "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; "
      "--requestheader-allowed-names must be specified to ensure regular client certificates cannot set "
      "authenticating proxy headers for arbitrary users");
}

}  // namespace

Result<> ReadAuthOptions(const Options& options, ApiServerOptions& out) {
  const AuthFlags& flags = options.auth;
  ReadIssuers(options, out);
  KEELSON_RETURN_IF_ERROR(CheckProxyAuthority(options));
  out.bootstrap_tokens = flags.enable_bootstrap_token_auth;
  out.authentication.client_ca_file = options.client_ca_file;
  out.authentication.request_header = {
      flags.requestheader_client_ca_file,   flags.requestheader_allowed_names,
      flags.requestheader_username_headers, flags.requestheader_uid_headers,
      flags.requestheader_group_headers,    flags.requestheader_extra_headers_prefix};
  KEELSON_RETURN_IF_ERROR(ReadKeys(options, out));
  KEELSON_RETURN_IF_ERROR(ReadStaticTokens(options, out));
  KEELSON_RETURN_IF_ERROR(ReadServiceAccounts(flags, out));
  KEELSON_RETURN_IF_ERROR(ReadProviders(flags, out));
  return ReadAuthorizers(flags, out);
}

void WatchAuthFiles(const Options& options, apiserver::ApiServer& server, http::FileReloader& files) {
  std::vector<std::string> keys = options.service_account_key_files;
  keys.push_back(options.service_account_signing_key_file);
  files.Add({"service-account-key-file", keys, [&options, &server]() -> Result<> {
               ApiServerOptions fresh;
               KEELSON_RETURN_IF_ERROR(ReadKeys(options, fresh));
               server.SetKeys(std::move(fresh.verify_keys), std::move(fresh.signing_key));
               return {};
             }});
  files.Add({"token-auth-file", {options.token_auth_file}, [&options, &server]() -> Result<> {
               ApiServerOptions fresh;
               KEELSON_RETURN_IF_ERROR(ReadStaticTokens(options, fresh));
               server.SetStaticTokens(std::move(fresh.static_tokens));
               return {};
             }});
  ApiServerOptions first;
  ReadIssuers(options, first);
  if (!options.auth.authentication_config.empty()) (void)ReadProviders(options.auth, first);
  files.Add({"authentication-config",
             {options.auth.authentication_config},
             [&options, &server, anonymous = first.anonymous]() -> Result<> {
               ApiServerOptions fresh;
               ReadIssuers(options, fresh);
               KEELSON_RETURN_IF_ERROR(ReadProviders(options.auth, fresh));
               if (fresh.anonymous != anonymous) {
                 return Error(Code::kInvalid, "anonymous: cannot be changed while the server runs");
               }
               server.SetTokenVerifiers(std::move(fresh.token_verifiers));
               return {};
             },
             "authentication_config_controller"});
  files.Add({"authorization-config",
             {options.auth.authorization_config},
             [&options, &server]() -> Result<> {
               ApiServerOptions fresh;
               KEELSON_RETURN_IF_ERROR(ReadAuthorizers(options.auth, fresh));
               server.SetAuthorizers(std::move(fresh.authorizers));
               return {};
             },
             "authorization_config_controller"});
}

}  // namespace keelson::controlplane
