#include "lib/k8s/expressions/environment.h"

#include <map>

#include "lib/base/mutex.h"

namespace keelson::k8s {

namespace {

using cel::DeclField;
using cel::DeclType;
using cel::DeclTypePtr;

DeclField Field(const char* name, DeclTypePtr type) { return {name, name, std::move(type), true, false}; }
DeclField Text(const char* name) { return Field(name, DeclType::String()); }
DeclField Texts(const char* name) { return Field(name, DeclType::List(DeclType::String())); }

DeclTypePtr MakeRequestType() {
  const DeclTypePtr kind =
      DeclType::Object("kubernetes.GroupVersionKind", {Text("group"), Text("version"), Text("kind")});
  const DeclTypePtr resource =
      DeclType::Object("kubernetes.GroupVersionResource", {Text("group"), Text("version"), Text("resource")});
  const DeclTypePtr user = DeclType::Object(
      "kubernetes.UserInfo", {Text("username"), Text("uid"), Texts("groups"),
                              Field("extra", DeclType::Map(DeclType::List(DeclType::String())))});
  return DeclType::Object(
      "kubernetes.AdmissionRequest",
      {Field("kind", kind), Field("resource", resource), Text("subResource"), Field("requestKind", kind),
       Field("requestResource", resource), Text("requestSubResource"), Text("name"), Text("namespace"),
       Text("operation"), Field("userInfo", user), Field("dryRun", DeclType::Bool()),
       Field("options", DeclType::Dyn())});
}

DeclTypePtr MakeNamespaceType() {
  const DeclTypePtr condition =
      DeclType::Object("kubernetes.NamespaceCondition",
                       {Text("status"), Text("type"), Field("lastTransitionTime", DeclType::DateTime()),
                        Text("message"), Text("reason")});
  const DeclTypePtr texts = DeclType::Map(DeclType::String());
  const DeclTypePtr metadata = DeclType::Object(
      "kubernetes.NamespaceMetadata",
      // Upstream's spelling of UID, which no object has.
      {Text("name"), Text("generateName"), Text("namespace"), Field("labels", texts),
       Field("annotations", texts), Text("UID"), Field("creationTimestamp", DeclType::DateTime()),
       Field("deletionGracePeriodSeconds", DeclType::Int()), Field("deletionTimestamp", DeclType::DateTime()),
       Field("generation", DeclType::Int()), Text("resourceVersion"), Texts("finalizers")});
  return DeclType::Object(
      "kubernetes.Namespace",
      {Field("metadata", metadata),
       Field("spec", DeclType::Object("kubernetes.NamespaceSpec", {Texts("finalizers")})),
       Field("status", DeclType::Object("kubernetes.NamespaceStatus",
                                        {Field("conditions", DeclType::List(condition)), Text("phase")}))});
}

const DeclTypePtr& JsonPatchType() {
  static const DeclTypePtr type = DeclType::Object(
      "JSONPatch", {Text("op"), Text("path"), Text("from"), Field("value", DeclType::Dyn())});
  return type;
}

}  // namespace

const DeclTypePtr& AdmissionRequestType() {
  static const DeclTypePtr type = MakeRequestType();
  return type;
}

const DeclTypePtr& NamespaceObjectType() {
  static const DeclTypePtr type = MakeNamespaceType();
  return type;
}

ExpressionEnv MakeExpressionEnv(const ExpressionScope& scope, const ExpressionVariables* variables,
                                const ExpressionTypes& types) {
  cel::EnvOptions options;
  options.version = scope.stored ? cel::kStoredExpressions : cel::kNewExpressions;
  options.check_cost = false;  // only what runs is limited
  const DeclTypePtr object = types.object ? types.object : DeclType::Dyn();
  options.variables = {{"object", object},
                       {"oldObject", object},
                       {"namespaceObject", NamespaceObjectType()},
                       {"request", AdmissionRequestType()}};
  if (scope.params) options.variables.emplace_back("params", types.params ? types.params : DeclType::Dyn());
  if (scope.authorizer) {
    options.variables.emplace_back("authorizer", DeclType::Native(&cel::types::kAuthorizer));
    options.variables.emplace_back("authorizer.requestResource",
                                   DeclType::Native(&cel::types::kResourceCheck));
  }
  if (variables) {
    std::vector<DeclField> fields;
    for (const auto& [name, type] : *variables) fields.push_back({name, name, type, true, false});
    options.variables.emplace_back("variables", DeclType::Object("kubernetes.variables", std::move(fields)));
  }
  if (scope.patch_types) {
    options.json_patch = true;
    options.constructible = {JsonPatchType()};
  }
  ExpressionEnv out;
  out.env = cel::Env::Make(std::move(options));
  const auto index = [&](std::string_view name) { return out.env->VariableIndex(name); };
  out.object = index("object");
  out.old_object = index("oldObject");
  out.ns = index("namespaceObject");
  out.request = index("request");
  out.params = index("params");
  out.authorizer = index("authorizer");
  out.request_resource = index("authorizer.requestResource");
  out.variables = index("variables");
  return out;
}

const ExpressionEnv& ExpressionEnvOf(const ExpressionScope& scope) {
  static Mutex mutex;
  static std::map<ExpressionScope, ExpressionEnv> made;  // elements keep their place
  MutexLock lock(mutex);
  auto [it, added] = made.try_emplace(scope);
  if (added) it->second = MakeExpressionEnv(scope, nullptr);
  return it->second;
}

}  // namespace keelson::k8s
