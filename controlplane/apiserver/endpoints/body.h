// Request bodies as objects.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

inline constexpr size_t kMaxBody = 3u << 20;

// The object of a create or update. Unknown and duplicate fields are errors under kStrict, warnings under
// kWarn. All problems are kBadRequest, worded as upstream does.
Result<std::unique_ptr<api::Message>> DecodeObject(Context& context, registry::FieldValidation validation);

// What is wrong with a body and not refused, as warnings: the YAML reader tells of several keys in one text.
void WarnOf(Context& context, std::string_view problem);

// DeleteOptions from the body or, without one, from the query.
Result<metav1::DeleteOptions> DecodeDeleteOptions(Context& context);

}  // namespace keelson::apiserver
