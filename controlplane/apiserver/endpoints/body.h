// Decodes request bodies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

inline constexpr size_t kMaxBody = 3u << 20;

// Decodes the object of a create or update. Unknown and duplicate fields are errors with kStrict, warnings
// with kWarn. Errors are kBadRequest in upstream's wording.
Result<std::unique_ptr<api::Message>> DecodeObject(Context& context, registry::FieldValidation validation);

// Adds the warnings for a body that was accepted; the YAML reader joins several duplicate keys in one text.
void WarnOf(Context& context, std::string_view problem);

// Decodes DeleteOptions from the body, or without a body from the query.
Result<metav1::DeleteOptions> DecodeDeleteOptions(Context& context);

}  // namespace keelson::apiserver
