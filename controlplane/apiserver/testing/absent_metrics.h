// For tests: metrics of kube-apiserver that this server does not have, and why.
#pragma once

#include "lib/metrics/conformance.h"

namespace keelson::apiserver {

namespace absence {

inline constexpr char kNoDelegation[] = "it asks nobody else who somebody is";
inline constexpr char kNoEgress[] = "there is no egress selector";
inline constexpr char kNoSigner[] = "tokens are signed here, by no signer elsewhere";
inline constexpr char kNoKmsV1[] = "KMS v1 is not there; Kubernetes has it off too";
inline constexpr char kNotCounted[] = "not counted; no dashboard or rule of kubernetes-mixin reads it";
inline constexpr char kOneWatch[] =
    "one watch of etcd feeds all caches, and asks for no progress notifications";
inline constexpr char kHidden[] = "deprecated, and hidden by Kubernetes 1.36";
inline constexpr char kOther[] = "of other programs that share the library";

}  // namespace absence

inline constexpr metrics::Exception kAbsentMetrics[] = {
    {"apiextensions_apiserver_validation_ratcheting_seconds", absence::kNotCounted},
    {"apiserver_admission_step_admission_duration_seconds_summary", "the histogram of this name has more"},
    {"apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info", absence::kNotCounted},
    {"apiserver_certificates_registry_", absence::kNotCounted},
    {"apiserver_conversion_webhook_", absence::kNotCounted},
    {"apiserver_delegated_", absence::kNoDelegation},
    {"apiserver_egress_", absence::kNoEgress},
    {"apiserver_envelope_encryption_dek_cache_", absence::kNoKmsV1},
    {"apiserver_externaljwt_", absence::kNoSigner},
    {"apiserver_flowcontrol_epoch_advance_total", "turns are kept in numbers that do not run out"},
    {"apiserver_flowcontrol_next_discounted_s_bounds", "turns are not discounted"},
    {"apiserver_flowcontrol_request_concurrency_", absence::kHidden},
    {"apiserver_flowcontrol_seat_fair_frac", absence::kNotCounted},
    {"apiserver_kube_aggregator_", absence::kNotCounted},
    {"apiserver_request_aborts_total", "a reply that has begun is never cut short"},
    {"apiserver_request_post_timeout_total", "nothing goes on for a request after its time is up"},
    {"apiserver_request_slo_duration_seconds", absence::kHidden},
    {"apiserver_request_timestamp_comparison_time", absence::kNotCounted},
    {"apiserver_storage_consistency_checks_total", absence::kOneWatch},
    {"apiserver_storage_db_total_size_in_bytes", absence::kHidden},
    {"apiserver_stream_", "streams go to the kubelet in the protocol that they come in"},
    {"apiserver_validation_declarative_", "there is one validation: nothing to compare it with"},
    {"apiserver_webhooks_x509_", absence::kNotCounted},
    {"etcd_bookmark_", absence::kOneWatch},
    {"informer_", absence::kNotCounted},
    {"kube_apiserver_pod_logs_", absence::kNotCounted},
    {"leader_election_", absence::kOther},
    {"node_authorizer_graph_actions_duration_seconds", absence::kNotCounted},
    {"pod_security_errors_total", "what cannot be judged is refused before: there are no errors"},
    {"rest_client_dns_resolution_duration_seconds", "names are resolved inside of connecting"},
    {"rest_client_exec_plugin_", "credential plugins are not run"},
    {"rest_client_rate_limiter_duration_seconds", "it does not limit its own requests"},
    {"rest_client_request_retries_total", "the transport tries nothing again: callers do"},
    {"rest_client_transport_", "transports are not shared between clients"},
    {"running_managed_controllers", absence::kOther},
    {"serviceaccount_legacy_auto_token_uses_total", absence::kNotCounted},
    {"serviceaccount_legacy_manual_token_uses_total", absence::kNotCounted},
    {"watch_cache_capacity_decrease_total", "windows have one size"},
    {"watch_cache_capacity_increase_total", "windows have one size"},
};

}  // namespace keelson::apiserver
