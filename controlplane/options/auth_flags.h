// Flags for authentication and authorization. Names and defaults are upstream's, except that
// --authorization-mode defaults to Node,RBAC.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace keelson::controlplane {

struct AuthFlags {
  bool anonymous_auth = true, enable_bootstrap_token_auth = false;
  std::string authentication_config;

  std::string requestheader_client_ca_file;
  std::vector<std::string> requestheader_allowed_names, requestheader_username_headers,
      requestheader_uid_headers, requestheader_group_headers, requestheader_extra_headers_prefix;

  bool service_account_lookup = true, service_account_extend_token_expiration = true;
  std::string service_account_max_token_expiration, service_account_jwks_uri;

  std::string oidc_issuer_url, oidc_client_id, oidc_ca_file,
      oidc_username_claim = "sub", oidc_username_prefix, oidc_groups_claim, oidc_groups_prefix;
  std::vector<std::string> oidc_signing_algs = {"RS256"}, oidc_required_claims;

  std::string token_webhook_config_file, token_webhook_version = "v1beta1", token_webhook_cache_ttl = "2m";

  std::vector<std::string> authorization_modes;  // empty: Node, RBAC
  std::string authorization_config, authorization_policy_file;
  std::string authorization_webhook_config_file, authorization_webhook_version = "v1beta1",
                                                 authorization_webhook_authorized_ttl = "5m",
                                                 authorization_webhook_unauthorized_ttl = "30s";
};

void AddAuthFlags(CLI::App& app, AuthFlags& flags);

}  // namespace keelson::controlplane
