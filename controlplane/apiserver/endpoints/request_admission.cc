#include "controlplane/apiserver/endpoints/request_admission.h"

#include <algorithm>

#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

// Removes duplicate warnings of retries.
void AddWarnings(Context& context, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    auto& known = context.warnings;
    if (std::find(known.begin(), known.end(), warning) == known.end()) known.push_back(warning);
  }
}

bool AsksForDryRun(const metav1::DeleteOptions* deletion) {
  return deletion && std::find(deletion->dry_run().begin(), deletion->dry_run().end(), "All") !=
                         deletion->dry_run().end();
}

}  // namespace

RequestAdmission::RequestAdmission(const AdmissionChain& chain, Context& context, bool dry_run,
                                   const metav1::DeleteOptions* deletion)
    : chain_(chain), context_(context), dry_run_(dry_run) {
  options_.field_manager = context.query().Get("fieldManager");
  options_.field_validation = context.query().Get("fieldValidation");
  options_.deletion = deletion;
}

Result<> RequestAdmission::Run(registry::AdmissionPhase phase, registry::Operation operation,
                               const api::ResourceInfo& info, api::Message* object,
                               const api::Message* old_object) {
  const bool mutate = phase == registry::AdmissionPhase::kMutate;
  std::string_view name = context_.info.name;
  if (name.empty() && old_object) name = api::Meta(*old_object).name();
  AdmissionRequest request{operation,        info,
                           context_.info.ns, name,
                           object,           old_object,
                           context_.user,    dry_run_ || AsksForDryRun(options_.deletion),
                           &notes_,          context_.info.verb};
  request.options = &options_;
  request.deadline = context_.deadline;
  if (mutate) notes_ = {};  // of an attempt that ended in a conflict
  Result<> admitted = mutate ? chain_.Mutate(request) : chain_.Validate(request);
  if (!admitted || !mutate) Publish(admitted.has_value());
  return admitted;
}

Result<> RequestAdmission::RunBoth(registry::Operation operation, const api::ResourceInfo& info,
                                   api::Message* object, const api::Message* old_object) {
  KEELSON_RETURN_IF_ERROR(Run(registry::AdmissionPhase::kMutate, operation, info, object, old_object));
  return Run(registry::AdmissionPhase::kValidate, operation, info, object, old_object);
}

void RequestAdmission::Publish(bool admitted) {
  for (const auto& [key, value] : notes_.annotations) context_.audit_annotations[key] = value;
  if (context_.audit && context_.audit->level() >= audit::Level::kRequest) {
    for (const auto& [key, value] : notes_.body_annotations) context_.audit_annotations[key] = value;
  }
  AddWarnings(context_, notes_.told);
  if (admitted) AddWarnings(context_, notes_.warnings);
  context_.denial = notes_.denial;
}

}  // namespace keelson::apiserver
