#include "controlplane/apiserver/admission/expressions/request_message.h"

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

using registry::Operation;

void SetKind(const api::ResourceInfo& row, metav1::GroupVersionKind& out) {
  out.set_group(std::string(row.kind_group));
  out.set_version(std::string(row.kind_version));
  out.set_kind(std::string(row.kind));
}

void SetResource(const api::ResourceInfo& row, metav1::GroupVersionResource& out) {
  out.set_group(std::string(row.group));
  out.set_version(std::string(row.version));
  out.set_resource(std::string(row.resource.substr(0, row.resource.find('/'))));
}

std::string SubresourceOf(const api::ResourceInfo& row) {
  const size_t slash = row.resource.find('/');
  return slash == std::string_view::npos ? "" : std::string(row.resource.substr(slash + 1));
}

// The name as upstream sends it: empty for the objects of a collection and for names to be generated.
std::string NameIn(const AdmissionRequest& request) {
  if (request.verb == "deletecollection") return "";
  if (!request.name.empty()) return std::string(request.name);
  const bool has_name = request.object && api::HasObjectMeta(request.object->GetDescriptor());
  return has_name ? api::Meta(*request.object).name() : "";
}

template <typename Options>
std::string EncodeOptions(const AdmissionRequest& request, const char* kind) {
  Options options;
  if (request.dry_run) options.add_dry_run("All");
  if (!request.options->field_manager.empty()) options.set_field_manager(request.options->field_manager);
  if (!request.options->field_validation.empty()) {
    options.set_field_validation(request.options->field_validation);
  }
  return api::EncodeJson(options, {"meta.k8s.io", "v1", kind});
}

std::string OptionsOf(const AdmissionRequest& request) {
  if (!request.options) return "";
  switch (request.operation) {
    case Operation::kCreate:
      return EncodeOptions<metav1::CreateOptions>(request, "CreateOptions");
    case Operation::kUpdate:
      return EncodeOptions<metav1::UpdateOptions>(request, "UpdateOptions");
    case Operation::kDelete: {
      metav1::DeleteOptions options =
          request.options->deletion ? *request.options->deletion : metav1::DeleteOptions();
      if (request.dry_run && options.dry_run().empty()) options.add_dry_run("All");
      return api::EncodeJson(options, {"meta.k8s.io", "v1", "DeleteOptions"});
    }
    case Operation::kConnect:
      break;
  }
  return "";
}

void SetUser(const User& user, authenticationv1::UserInfo& out) {
  if (!user.name.empty()) out.set_username(user.name);
  if (!user.uid.empty()) out.set_uid(user.uid);
  for (const std::string& group : user.groups) out.add_groups(group);
  for (const auto& [key, values] : user.extra) {
    auto& items = *(*out.mutable_extra())[key].mutable_items();
    for (const std::string& value : values) *items.Add() = value;
  }
}

}  // namespace

void FillRequestMessage(const AdmissionRequest& request, const api::ResourceInfo& row,
                        api::admission::v1::AdmissionRequest& out) {
  SetKind(row, *out.mutable_kind());
  SetResource(row, *out.mutable_resource());
  if (std::string sub = SubresourceOf(row); !sub.empty()) {
    out.set_sub_resource(sub);
    out.set_request_sub_resource(sub);
  }
  SetKind(request.info, *out.mutable_request_kind());
  SetResource(request.info, *out.mutable_request_resource());
  const std::string name = NameIn(request);
  if (!name.empty()) out.set_name(name);
  const bool is_namespace = request.info.group.empty() && request.MainResource() == "namespaces";
  const std::string ns = is_namespace ? name : std::string(request.ns);
  if (!ns.empty()) out.set_namespace_(ns);
  out.set_operation(std::string(NameOf(request.operation)));
  SetUser(request.user, *out.mutable_user_info());
  out.set_dry_run(request.dry_run);
  if (std::string options = OptionsOf(request); !options.empty()) {
    out.mutable_options()->set_raw(std::move(options));
  }
}

}  // namespace keelson::apiserver
