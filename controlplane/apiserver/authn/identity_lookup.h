// Lookups in the store for authentication.
#pragma once

#include "controlplane/apiserver/authn/bootstrap_tokens.h"
#include "controlplane/apiserver/authn/token.h"
#include "controlplane/storage/store.h"

namespace keelson::apiserver {

// `store` must outlive the functions.
IdentityLookup NewIdentityLookup(storage::Store& store);
BootstrapSecretLookup NewBootstrapSecretLookup(storage::Store& store);

}  // namespace keelson::apiserver
