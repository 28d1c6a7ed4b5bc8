#include "controlplane/options/auth_flags.h"
#include "lib/component/flag_adder.h"

namespace keelson::controlplane {

using component::FlagAdder;

namespace {

void AddAuthentication(const FlagAdder& add, AuthFlags& flags) {
  add("--anonymous-auth", flags.anonymous_auth, "Requests without credentials are system:anonymous's");
  add("--authentication-config", flags.authentication_config, "File with an AuthenticationConfiguration");
  add("--enable-bootstrap-token-auth", flags.enable_bootstrap_token_auth,
      "Secrets of type bootstrap.kubernetes.io/token in kube-system let nodes in");
  add("--requestheader-client-ca-file", flags.requestheader_client_ca_file,
      "CA of proxies that name the user in headers");
  add("--requestheader-allowed-names", flags.requestheader_allowed_names,
      "Common names of such proxies; none: any");
  add("--requestheader-username-headers", flags.requestheader_username_headers, "Headers with the user name");
  add("--requestheader-uid-headers", flags.requestheader_uid_headers, "Headers with the user's uid");
  add("--requestheader-group-headers", flags.requestheader_group_headers, "Headers with groups");
  add("--requestheader-extra-headers-prefix", flags.requestheader_extra_headers_prefix,
      "Prefixes of headers with extra values");
  add("--service-account-lookup", flags.service_account_lookup,
      "Tokens end with the objects that they are bound to");
  add("--service-account-extend-token-expiration", flags.service_account_extend_token_expiration,
      "Pods' tokens live on for a year where a client does not renew them, and are counted");
  add("--service-account-max-token-expiration", flags.service_account_max_token_expiration,
      "The longest life of a token, such as 24h");
  add("--service-account-jwks-uri", flags.service_account_jwks_uri,
      "Where the issuer's keys are said to be; default: at this server");
}

void AddProviders(const FlagAdder& add, AuthFlags& flags) {
  add("--oidc-issuer-url", flags.oidc_issuer_url, "OpenID Connect provider, https");
  add("--oidc-client-id", flags.oidc_client_id, "Audience of the provider's tokens for this server");
  add("--oidc-ca-file", flags.oidc_ca_file, "CA of the provider; default: the system's");
  add("--oidc-username-claim", flags.oidc_username_claim, "Claim with the user name");
  add("--oidc-username-prefix", flags.oidc_username_prefix,
      "Put before user names; - for none; default: the issuer and #, except for email");
  add("--oidc-groups-claim", flags.oidc_groups_claim, "Claim with the groups");
  add("--oidc-groups-prefix", flags.oidc_groups_prefix, "Put before groups");
  add("--oidc-signing-algs", flags.oidc_signing_algs, "Algorithms that tokens may be signed with");
  add("--oidc-required-claim", flags.oidc_required_claims, "key=value that a token has to have");
  add("--authentication-token-webhook-config-file", flags.token_webhook_config_file,
      "kubeconfig of a service that knows tokens");
  add("--authentication-token-webhook-version", flags.token_webhook_version,
      "Version of TokenReviews sent to it");
  add("--authentication-token-webhook-cache-ttl", flags.token_webhook_cache_ttl,
      "How long its answers are kept");
}

void AddAuthorization(const FlagAdder& add, AuthFlags& flags) {
  add("--authorization-mode", flags.authorization_modes,
      "ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook, in order; default: Node,RBAC");
  add("--authorization-policy-file", flags.authorization_policy_file,
      "File with ABAC policies, one a line, for --authorization-mode=ABAC");
  add("--authorization-config", flags.authorization_config, "File with an AuthorizationConfiguration");
  add("--authorization-webhook-config-file", flags.authorization_webhook_config_file,
      "kubeconfig of a service that authorizes");
  add("--authorization-webhook-version", flags.authorization_webhook_version,
      "Version of SubjectAccessReviews sent to it");
  add("--authorization-webhook-cache-authorized-ttl", flags.authorization_webhook_authorized_ttl,
      "How long its consent is kept");
  add("--authorization-webhook-cache-unauthorized-ttl", flags.authorization_webhook_unauthorized_ttl,
      "How long its refusal is kept");
}

}  // namespace

void AddAuthFlags(CLI::App& app, AuthFlags& flags) {
  const FlagAdder add{app};
  AddAuthentication(add, flags);
  AddProviders(add, flags);
  AddAuthorization(add, flags);
}

}  // namespace keelson::controlplane
