#include "controlplane/apiserver/handlers/resource.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/apiserver/endpoints/body.h"
#include "controlplane/apiserver/endpoints/list_options.h"
#include "controlplane/apiserver/endpoints/request_admission.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/endpoints/write_options.h"
#include "controlplane/apiserver/request/yaml.h"
#include "controlplane/storage/continue_token.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

void ReplyWritten(Context& context, registry::Written written, int status) {
  for (std::string& warning : written.warnings) context.warnings.push_back(std::move(warning));
  if (written.object) return ReplyObject(context, status, written.object);
  // Bindings and evictions are not stored.
  metav1::Status success;
  success.mutable_metadata();
  success.set_status("Success");
  success.set_code(status);
  context.output.as = As::kObject;
  ReplyMessage(context, status, success, {"", "v1", "Status"});
}

// Admission reads its rules from the cache: later requests to this server meet the ones just written.
void AwaitRules(const Context& context, registry::Registry& registry) {
  if (context.info.group != "admissionregistration.k8s.io") return;
  const api::ResourceInfo* main =
      api::FindResource(context.info.group, context.info.version, context.info.resource);
  if (main) (void)registry.Get(*main, "", context.info.name, "", {}, context.deadline);
}

// The Status of a completed deletion, for kinds whose DELETE does not return the object. `object` null: it
// could not be decoded.
metav1::Status DeletedStatus(const Context& context, const storage::Object* object) {
  metav1::Status status;
  status.mutable_metadata();
  status.set_status("Success");
  metav1::StatusDetails& details = *status.mutable_details();
  if (!object) {
    status.set_code(200);
    details.set_name(context.info.name);
    details.set_kind(std::string(context.resource->kind));
    return status;
  }
  details.set_name(std::string(object->name()));
  if (!object->info().group.empty()) details.set_group(std::string(object->info().group));
  details.set_kind(std::string(object->info().resource));
  details.set_uid(api::Meta(*object->Decode()).uid());
  return status;
}

Result<registry::PatchType> PatchTypeOf(const Context& context) {
  std::string type = ParseMediaType(context.request->headers.Get("Content-Type")).type;
  if (type == "application/json-patch+json") return registry::PatchType::kJson;
  if (type == "application/merge-patch+json") return registry::PatchType::kMerge;
  const bool strategic = !apiextensions::CustomOf(*context.resource);  // a schema has no merge keys
  if (strategic && type == "application/strategic-merge-patch+json") {
    return registry::PatchType::kStrategicMerge;
  }
  if (type == "application/apply-patch+yaml") return registry::PatchType::kApply;
  return Error(Code::kUnsupportedMediaType,
               fmt::format("the body of the request was in an unknown format - accepted media types include: "
                           "application/json-patch+json, application/merge-patch+json, "
                           "{}application/apply-patch+yaml",
                           strategic ? "application/strategic-merge-patch+json, " : ""));
}

// The JSON of an apply configuration. Duplicate keys are handled by field validation.
Result<std::string> ConfigurationOf(Context& context, registry::FieldValidation validation) {
  std::vector<std::string> problems;
  Result<std::string> json = YamlToJson(context.request->body, &problems);
  if (!json) return Error(Code::kBadRequest, "error decoding YAML: " + json.error().message());
  for (const std::string& problem : problems) {
    if (validation == registry::FieldValidation::kStrict) {
      return Error(Code::kBadRequest,
                   "error strict decoding YAML: error converting YAML to JSON: " + problem);
    }
    if (validation == registry::FieldValidation::kWarn) WarnOf(context, problem);
  }
  return json;
}

}  // namespace

void ResourceHandler::Handle(Context& context) {
  const std::string& verb = context.info.verb;
  Result<> done;
  if (verb == "get") {
    done = Get(context);
  } else if (verb == "list") {
    done = List(context);
  } else if (verb == "watch") {
    done = Watch(context);
  } else if (verb == "create") {
    done = Create(context);
  } else if (verb == "update") {
    done = Update(context);
  } else if (verb == "patch") {
    done = Patch(context);
  } else if (verb == "delete") {
    done = Delete(context);
  } else {
    done = DeleteCollection(context);
  }
  if (!done) ReplyError(context, done.error());
}

Result<registry::WriteOptions> ResourceHandler::Options(Context& context, bool apply,
                                                        const metav1::DeleteOptions* deletion) const {
  KEELSON_ASSIGN_OR_RETURN(registry::WriteOptions options, ParseWriteOptions(context, apply));
  auto admission = std::make_shared<RequestAdmission>(admission_, context, options.dry_run, deletion);
  options.admission = [this, &context, admission](registry::AdmissionPhase phase,
                                                  registry::Operation operation,
                                                  const api::ResourceInfo& info, api::Message* object,
                                                  const api::Message* old_object) -> Result<> {
    if (phase == registry::AdmissionPhase::kMutate && operation == registry::Operation::kCreate) {
      KEELSON_RETURN_IF_ERROR(MayCreate(context));
    }
    return admission->Run(phase, operation, info, object, old_object);
  };
  return options;
}

// Creating by update or apply needs the `create` permission, too.
Result<> ResourceHandler::MayCreate(const Context& context) const {
  if (context.info.verb == "create") return {};
  RequestInfo info = context.info;
  info.verb = "create";
  Attributes attributes{context.user, info};
  Decision decision = authorizer_.Authorize(attributes);
  if (decision.allowed) return {};
  return ForbiddenTo(attributes, decision.reason);
}

Result<> ResourceHandler::MayDeleteUnreadable(const Context& context) const {
  RequestInfo info = context.info;
  info.verb = "unsafe-delete-ignore-read-errors";
  Decision decision = authorizer_.Authorize({context.user, info});
  if (decision.allowed) return {};
  return registry::ForbiddenError(
      *context.resource, info.name,
      fmt::format("not permitted to do \"{}\", reason: {}", info.verb, decision.reason));
}

Result<> ResourceHandler::Get(Context& context) {
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectPtr object,
                           registry_.Get(*context.resource, context.info.ns, context.info.name,
                                         context.query().Get("resourceVersion"), {}, context.deadline));
  ReplyObject(context, 200, object);
  return {};
}

Result<> ResourceHandler::List(Context& context) {
  KEELSON_ASSIGN_OR_RETURN(registry::ListOptions options, ParseListOptions(context));
  Result<registry::ObjectList> list = registry_.List(*context.resource, context.info.ns, options);
  if (!list && list.error().Is(Code::kGone) && !options.continue_token.empty()) {
    // The continue token for an inconsistent rest of the list, for clients that accept that.
    metav1::Status status = api::ToStatus(list.error());
    status.mutable_metadata()->set_continue_(storage::InconsistentToken(options.continue_token));
    ReplyStatus(context, status);
    return {};
  }
  if (!list) return list.error();
  ReplyList(context, *list);
  return {};
}

Result<> ResourceHandler::Watch(Context& context) {
  KEELSON_ASSIGN_OR_RETURN(registry::ListOptions options, ParseListOptions(context));
  watches_.Start(context, options);
  return {};
}

Result<> ResourceHandler::Create(Context& context) {
  KEELSON_ASSIGN_OR_RETURN(registry::WriteOptions options, Options(context));
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<api::Message> object,
                           DecodeObject(context, options.field_validation));
  options.coerced = true;  // DecodeObject() has done it
  const api::ResourceInfo* resource = context.resource;
  std::string name = context.info.name;
  if (resource->resource == "bindings") {
    // The legacy binding API: the pod's name is in the body.
    resource = api::FindResource("", "v1", "pods/binding");
    name = api::Meta(*object).name();
  }
  KEELSON_ASSIGN_OR_RETURN(registry::Written written,
                           registry_.Create(*resource, context.info.ns, name, std::move(object), options));
  AwaitRules(context, registry_);
  ReplyWritten(context, std::move(written), 201);
  return {};
}

Result<> ResourceHandler::Update(Context& context) {
  KEELSON_ASSIGN_OR_RETURN(registry::WriteOptions options, Options(context));
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<api::Message> object,
                           DecodeObject(context, options.field_validation));
  options.coerced = true;  // DecodeObject() has done it
  KEELSON_ASSIGN_OR_RETURN(
      registry::Written written,
      registry_.Update(*context.resource, context.info.ns, context.info.name, std::move(object), options));
  int status = written.created ? 201 : 200;
  AwaitRules(context, registry_);
  ReplyWritten(context, std::move(written), status);
  return {};
}

Result<> ResourceHandler::Patch(Context& context) {
  KEELSON_ASSIGN_OR_RETURN(registry::PatchType type, PatchTypeOf(context));
  const bool apply = type == registry::PatchType::kApply;
  KEELSON_ASSIGN_OR_RETURN(registry::WriteOptions options, Options(context, apply));
  std::string configuration;
  if (apply) {
    KEELSON_ASSIGN_OR_RETURN(configuration, ConfigurationOf(context, options.field_validation));
  }
  KEELSON_ASSIGN_OR_RETURN(registry::Written written,
                           registry_.Patch(*context.resource, context.info.ns, context.info.name, type,
                                           apply ? configuration : context.request->body, options));
  int status = written.created ? 201 : 200;
  AwaitRules(context, registry_);
  ReplyWritten(context, std::move(written), status);
  return {};
}

Result<> ResourceHandler::Delete(Context& context) {
  metav1::DeleteOptions delete_options;
  KEELSON_ASSIGN_OR_RETURN(registry::WriteOptions options, Options(context, false, &delete_options));
  KEELSON_ASSIGN_OR_RETURN(delete_options, DecodeDeleteOptions(context));
  for (const std::string& value : delete_options.dry_run()) options.dry_run |= value == "All";
  if (delete_options.ignore_store_read_error_with_cluster_breaking_potential()) {
    KEELSON_RETURN_IF_ERROR(MayDeleteUnreadable(context));
  }
  KEELSON_ASSIGN_OR_RETURN(
      registry::Deleted deleted,
      registry_.Delete(*context.resource, context.info.ns, context.info.name, delete_options, options));
  AwaitRules(context, registry_);
  bool waits_for_dependents = delete_options.has_orphan_dependents() && !delete_options.orphan_dependents();
  int status = !deleted.gone && waits_for_dependents ? 202 : 200;
  if (deleted.return_object || !deleted.gone) {
    ReplyObject(context, status, deleted.object);
  } else {
    context.output.as = As::kObject;
    ReplyMessage(context, status, DeletedStatus(context, deleted.object.get()), {"", "v1", "Status"});
  }
  return {};
}

Result<> ResourceHandler::DeleteCollection(Context& context) {
  metav1::DeleteOptions delete_options;
  KEELSON_ASSIGN_OR_RETURN(registry::WriteOptions options, Options(context, false, &delete_options));
  KEELSON_ASSIGN_OR_RETURN(registry::ListOptions list, ParseListOptions(context));
  KEELSON_ASSIGN_OR_RETURN(delete_options, DecodeDeleteOptions(context));
  for (const std::string& value : delete_options.dry_run()) options.dry_run |= value == "All";
  KEELSON_ASSIGN_OR_RETURN(
      registry::ObjectList deleted,
      registry_.DeleteCollection(*context.resource, context.info.ns, list, delete_options, options));
  AwaitRules(context, registry_);
  ReplyList(context, deleted);
  return {};
}

}  // namespace keelson::apiserver
