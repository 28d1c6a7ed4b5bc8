// Input from operators and etcd: encrypted values, encryption configurations, audit policies.
#include "controlplane/apiserver/audit/policy.h"
#include "controlplane/storage/encryption/config.h"
#include "controlplane/storage/encryption/kms.h"
#include "controlplane/storage/encryption/transformer.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

constexpr std::string_view kPlace = "/registry/secrets/default/a";

// Authenticated ciphers reject values that were not written with the keys; no cipher crashes, and each reads
// its own output.
void EncryptionEnvelope(std::string_view value) {
  using storage::PrefixTransformer;
  static const storage::TransformerPtr authenticated[] = {storage::NewAesGcm(std::string(32, 'k')),
                                                          storage::NewSecretbox(std::string(32, 'k')),
                                                          storage::NewDerivedAesGcm(std::string(32, 'k'))};
  static const storage::TransformerPtr all = storage::NewPrefixTransformers(
      {{"k8s:enc:aescbc:v1:key1:", storage::NewAesCbc(std::string(32, 'k'))},
       {"k8s:enc:aesgcm:v1:key1:", authenticated[0]},
       {"k8s:enc:secretbox:v1:key1:", authenticated[1]},
       {"k8s:enc:kms:v2:none:", std::make_shared<storage::KmsTransformer>(storage::KmsTransformer::Options{
                                    "none", "unix:///nonexistent/kms.sock", std::chrono::milliseconds(1)})},
       {"", storage::NewIdentity()}},
      "no matching prefix found");
  (void)all->FromStorage(value, kPlace);
  for (const storage::TransformerPtr& one : authenticated) {
    FUZZ_CHECK(!one->FromStorage(value, kPlace), "a value that nobody wrote was read");
  }
  Result<std::string> sealed = all->ToStorage(value, kPlace);
  FUZZ_CHECK(sealed, value);
  Result<storage::Opened> opened = all->FromStorage(*sealed, kPlace);
  FUZZ_CHECK(opened && opened->bytes == value && !opened->stale, value);
}
const Registration kEnvelope("encryption_envelope", EncryptionEnvelope);

void EncryptionConfig(std::string_view text) {
  Result<storage::EncryptionConfig> config = storage::ParseEncryptionConfig(text);
  if (!config) return;
  FUZZ_CHECK(!config->rules.empty(), text);
  for (const storage::EncryptionRule& rule : config->rules) {
    FUZZ_CHECK(!rule.resources.empty() && !rule.providers.empty(), text);
  }
}
const Registration kConfig("encryption_config", EncryptionConfig);

void AuditPolicy(std::string_view text) {
  Result<apiserver::audit::Policy> policy = apiserver::audit::Policy::Parse(text);
  if (!policy) return;
  const apiserver::User user{"jane", "", {"dev"}, {}};
  for (const char* path : {"/api/v1/namespaces/a/pods/b/exec", "/apis/apps/v1/deployments", "/healthz"}) {
    apiserver::RequestInfo info = apiserver::ParseRequestInfo("GET", path, {});
    apiserver::audit::Verdict known = policy->Evaluate(&user, info), again = policy->Evaluate(&user, info);
    FUZZ_CHECK(known.level == again.level && known.omitted_stages == again.omitted_stages, text);
    (void)policy->Evaluate(nullptr, info);
  }
}
const Registration kPolicy("audit_policy", AuditPolicy);

}  // namespace
}  // namespace keelson::fuzz
