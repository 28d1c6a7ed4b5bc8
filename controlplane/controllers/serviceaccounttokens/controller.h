// Tokens of ServiceAccounts that Secrets hold (type kubernetes.io/service-account-token), for those who make
// such a Secret: it is filled in, and goes with its account.
#pragma once

#include <optional>

#include "controlplane/controllers/common/controller.h"
#include "lib/crypto/signing_key.h"

namespace keelson::controllers {

// Names and labels that these Secrets carry.
inline constexpr char kAccountName[] = "kubernetes.io/service-account.name";
inline constexpr char kAccountUid[] = "kubernetes.io/service-account.uid";
inline constexpr char kLastUsed[] = "kubernetes.io/legacy-token-last-used";
inline constexpr char kInvalidSince[] = "kubernetes.io/legacy-token-invalid-since";

// The informer of these Secrets alone.
client::Informer<corev1::Secret>& TokenSecrets(client::InformerFactory& informers);
// The name of the account that a Secret says it is of; empty when it says nothing.
std::string AccountOf(const corev1::Secret& secret);
// Whether that is this one, and not another one of the same name: a Secret may say its account's uid.
bool IsOf(const corev1::Secret& secret, const corev1::ServiceAccount& account);

class ServiceAccountTokensController : public Controller {
 public:
  // `root_ca_pem`: what verifies the API server; empty: Secrets get none.
  ServiceAccountTokensController(client::RestClient api, client::InformerFactory& informers,
                                 client::EventRecorder&, Clock& clock, http::SigningKey key,
                                 std::string root_ca_pem);
  // Keys are those of Secrets.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  // Null: there is none, or it is another one of the same name.
  Result<std::optional<corev1::ServiceAccount>> FindAccount(const corev1::Secret& secret,
                                                            const client::RestClient& api) const;
  Result<> Fill(const corev1::Secret& secret, const corev1::ServiceAccount& account,
                const client::RestClient& api);
  // Takes a Secret that is no more off the accounts that list it.
  Result<> Unlist(const std::string& key, const client::RestClient& api);

  client::RestClient api_;
  client::Informer<corev1::ServiceAccount>& accounts_;
  client::Informer<corev1::Secret>& secrets_;
  const http::SigningKey key_;
  const std::string root_ca_pem_;
};

// The token of an account that a Secret of that name holds: without an end, good as long as both are there.
Result<std::string> LegacyToken(const http::SigningKey& key, const corev1::ServiceAccount& account,
                                const std::string& secret);

}  // namespace keelson::controllers
