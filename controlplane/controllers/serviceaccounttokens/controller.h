// Fills in manually created Secrets of type kubernetes.io/service-account-token, and deletes them with their
// ServiceAccount.
#pragma once

#include <optional>

#include "controlplane/controllers/common/controller.h"
#include "lib/crypto/signing_key.h"

namespace keelson::controllers {

// Annotations and labels of these Secrets.
inline constexpr char kAccountName[] = "kubernetes.io/service-account.name";
inline constexpr char kAccountUid[] = "kubernetes.io/service-account.uid";
inline constexpr char kLastUsed[] = "kubernetes.io/legacy-token-last-used";
inline constexpr char kInvalidSince[] = "kubernetes.io/legacy-token-invalid-since";

// Returns the informer for these Secrets only.
client::Informer<corev1::Secret>& TokenSecrets(client::InformerFactory& informers);
// The name of the ServiceAccount that a Secret refers to; empty when it has none.
std::string AccountOf(const corev1::Secret& secret);
// True when the Secret refers to this ServiceAccount. If the Secret has a UID, the UID must match.
bool IsOf(const corev1::Secret& secret, const corev1::ServiceAccount& account);

class ServiceAccountTokensController : public Controller {
 public:
  // `root_ca_pem`: the CA bundle to store in the Secrets; empty: none.
  ServiceAccountTokensController(client::RestClient api, client::InformerFactory& informers,
                                 client::EventRecorder&, Clock& clock, crypto::SigningKey key,
                                 std::string root_ca_pem);
  // Key: a Secret.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  // Nullopt when the ServiceAccount does not exist or has another UID.
  Result<std::optional<corev1::ServiceAccount>> FindAccount(const corev1::Secret& secret,
                                                            const client::RestClient& api) const;
  Result<> Fill(const corev1::Secret& secret, const corev1::ServiceAccount& account,
                const client::RestClient& api);
  // Removes a deleted Secret from the ServiceAccounts that list it.
  Result<> Unlist(const std::string& key, const client::RestClient& api);

  client::RestClient api_;
  client::Informer<corev1::ServiceAccount>& accounts_;
  client::Informer<corev1::Secret>& secrets_;
  const crypto::SigningKey key_;
  const std::string root_ca_pem_;
};

// Returns a token without expiration for the Secret of that name, valid while both Secret and ServiceAccount
// exist.
Result<std::string> LegacyToken(const crypto::SigningKey& key, const corev1::ServiceAccount& account,
                                const std::string& secret);

}  // namespace keelson::controllers
