#include "controlplane/storage/encryption/kms_metrics.h"

#include <fmt/format.h>

#include "lib/crypto/digest.h"
#include "lib/crypto/server_identity.h"
#include "lib/metrics/metrics.h"

namespace keelson::storage {
namespace {

metrics::Family& call_seconds = metrics::Histograms(
    "apiserver_envelope_encryption_kms_operations_latency_seconds",
    "KMS operation duration with gRPC error code status total.", metrics::ExponentialBuckets(0.0001, 2, 20),
    {"provider_name", "method_name", "grpc_status_code"});
metrics::Family& key_uses =
    metrics::Counter("apiserver_envelope_encryption_key_id_hash_total",
                     "Number of times a keyID is used split by transformation type, provider, and apiserver "
                     "identity.",
                     {"transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"});
metrics::Family& key_used_at =
    metrics::Gauge("apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
                   "The last time in seconds when a keyID was used.",
                   {"transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"});
metrics::Family& key_told_at =
    metrics::Gauge("apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
                   "The last time in seconds when a keyID was returned by the Status RPC call.",
                   {"provider_name", "key_id_hash", "apiserver_id_hash"});
metrics::Family& invalid_keys =
    metrics::Counter("apiserver_envelope_encryption_invalid_key_id_from_status_total",
                     "Number of times an invalid keyID is returned by the Status RPC call split by error.",
                     {"provider_name", "error"});
metrics::Family& seeds_kept =
    metrics::Gauge("apiserver_envelope_encryption_dek_source_cache_size",
                   "Number of records in data encryption key (DEK) source cache.", {"provider_name"});
metrics::Histogram& data_key_seconds =
    metrics::Histograms("apiserver_storage_data_key_generation_duration_seconds",
                        "Latencies in seconds of data encryption key(DEK) generation operations.",
                        metrics::ExponentialBuckets(5e-6, 2, 14))
        .HistogramWith();
// The kernel's random numbers do not fail.
[[maybe_unused]] metrics::Value& data_key_failures =
    metrics::Counter("apiserver_storage_data_key_generation_failures_total",
                     "Total number of failed data encryption key(DEK) generation operations.")
        .With();
metrics::Value& seed_misses =
    metrics::Counter("apiserver_storage_envelope_transformation_cache_misses_total",
                     "Total number of cache misses while accessing key decryption key(KEK).")
        .With();

std::string HashOf(const std::string& key_id) {
  return key_id.empty() ? "" : "sha256:" + crypto::Sha256Hex(key_id);
}
double Now() { return std::chrono::duration<double>(Clock::Real().Now().time_since_epoch()).count(); }

// As gRPC's own libraries write them.
const char* CodeName(int code) {
  static constexpr const char* kNames[] = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  constexpr int kCount = static_cast<int>(std::size(kNames));
  return code >= 0 && code < kCount ? kNames[code] : "Unknown";
}

}  // namespace

void CountKmsCall(const std::string& provider, const char* method, int code, SteadyTime begin) {
  const std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
  call_seconds.HistogramWith({provider, fmt::format("/v2.KeyManagementService/{}", method), CodeName(code)})
      .Observe(took.count());
}

void CountKeyUse(const std::string& provider, const char* direction, const std::string& key_id) {
  const std::vector<std::string> labels = {direction, provider, HashOf(key_id), crypto::ApiServerIdHash()};
  key_uses.With(labels).Increment();
  key_used_at.With(labels).Set(Now());
}

void CountKeyStatus(const std::string& provider, const std::string& key_id, const char* problem) {
  if (*problem) return invalid_keys.With({provider, problem}).Increment();
  key_told_at.With({provider, HashOf(key_id), crypto::ApiServerIdHash()}).Set(Now());
}

void CountDataKey(SteadyTime begin) {
  data_key_seconds.Observe(std::chrono::duration<double>(SteadyTime::clock::now() - begin).count());
}
void CountSeedMiss() { seed_misses.Increment(); }
void TellSeedsKept(const std::string& provider, size_t count) {
  seeds_kept.With({provider}).Set(static_cast<double>(count));
}

}  // namespace keelson::storage
