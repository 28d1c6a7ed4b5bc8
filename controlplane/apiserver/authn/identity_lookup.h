// What authentication asks of stored objects.
#pragma once

#include "controlplane/apiserver/authn/bootstrap_tokens.h"
#include "controlplane/apiserver/authn/token.h"
#include "controlplane/storage/store.h"

namespace keelson::apiserver {

// `store` outlives them.
IdentityLookup NewIdentityLookup(storage::Store& store);
BootstrapSecretLookup NewBootstrapSecretLookup(storage::Store& store);

}  // namespace keelson::apiserver
