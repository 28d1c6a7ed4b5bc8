// The published keys (JWKS) of an OpenID Connect provider. Internal to authn/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"
#include "lib/crypto/verify_key.h"

namespace keelson::apiserver {

class OidcKeys {  // thread safe
 public:
  OidcKeys(std::string issuer_url, std::string discovery_url, std::string ca_pem, Clock& clock);

  // True when a key with that ID (empty: any) verifies the signature of `data`. Error: no keys are available.
  Result<bool> Verify(const std::string& id, std::string_view algorithm, std::string_view data,
                      std::string_view signature);

 private:
  struct Key {
    std::string id;
    crypto::VerifyKey key;
  };
  using Keys = std::vector<Key>;
  using KeysPtr = std::shared_ptr<const Keys>;

  KeysPtr Known() KEELSON_EXCLUDES(mutex_);
  // Fetches the keys, unless another thread does or did recently. Returns the keys known then.
  KeysPtr Refresh() KEELSON_EXCLUDES(mutex_);
  Result<KeysPtr> Fetch() const;
  Result<std::string> Get(const std::string& url) const;

  const std::string issuer_url_, discovery_url_, ca_pem_;
  Clock& clock_;
  Mutex mutex_;
  KeysPtr keys_ KEELSON_GUARDED_BY(mutex_);  // null: never fetched
  bool fetching_ KEELSON_GUARDED_BY(mutex_) = false;
  WallTime next_fetch_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
