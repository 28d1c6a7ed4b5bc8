#include "controlplane/apiserver/admission/admission.h"

#include "lib/api/meta.h"

namespace keelson::apiserver {

Result<> AdmissionChain::Run(const AdmissionRequest& request) const {
  for (const auto& plugin : plugins_) RETURN_IF_ERROR(plugin->Mutate(request));
  for (const auto& plugin : plugins_) RETURN_IF_ERROR(plugin->Validate(request));
  return {};
}

Error NotAdmitted(const AdmissionRequest& request, std::string_view why) {
  std::string name(request.name);
  if (name.empty() && request.object && api::HasObjectMeta(request.object->GetDescriptor())) {
    name = api::Meta(*request.object).name();
  }
  return registry::ForbiddenError(request.info, name, why);
}

}  // namespace keelson::apiserver
