// Metrics of KMS plugins: upstream's apiserver_envelope_encryption_* and data keys.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/clock.h"

namespace keelson::storage {

// `method`: "Encrypt"; `code`: gRPC's.
void CountKmsCall(const std::string& provider, const char* method, int code, SteadyTime begin);
// Counts a value that was decrypted or encrypted with this key. `direction`: from_storage, to_storage.
void CountKeyUse(const std::string& provider, const char* direction, const std::string& key_id);
// Counts a plugin's status; `problem`: why its key id is invalid, or empty.
void CountKeyStatus(const std::string& provider, const std::string& key_id, const char* problem);
void CountDataKey(SteadyTime begin);
void CountSeedMiss();
void TellSeedsKept(const std::string& provider, size_t count);

}  // namespace keelson::storage
