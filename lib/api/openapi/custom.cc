#include "lib/api/openapi/custom.h"

#include <fmt/format.h>

#include "lib/api/openapi/operation.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

constexpr std::string_view kCustomTypes[] = {"application/json", "application/yaml"};
constexpr std::string_view kCustomPatchTypes[] = {
    "application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"};

const Descriptor* ScaleType() { return FindMessage("autoscaling", "v1", "Scale"); }

// What an operation sends or takes.
enum class CustomBody { kNone, kObject, kList, kStatus, kPatch, kDeleteOptions };

struct CustomAction {
  std::string_view method, action, prefix, description;
  CustomBody body, reply;
};
constexpr CustomAction kList = {
    "get", "list", "list", "List or watch objects of kind", CustomBody::kNone, CustomBody::kList};
constexpr CustomAction kOfCollections[] = {
    kList,
    {"post", "post", "create", "Create an object of kind", CustomBody::kObject, CustomBody::kObject},
    {"delete", "deletecollection", "delete", "Delete a selection of objects of kind", CustomBody::kNone,
     CustomBody::kStatus}};
constexpr CustomAction kOfObjects[] = {
    {"get", "get", "read", "Read the", CustomBody::kNone, CustomBody::kObject},
    {"put", "put", "replace", "Replace the", CustomBody::kObject, CustomBody::kObject},
    {"patch", "patch", "patch", "Change parts of the", CustomBody::kPatch, CustomBody::kObject},
    {"delete", "delete", "delete", "Delete the", CustomBody::kDeleteOptions, CustomBody::kStatus}};
constexpr std::span<const CustomAction> kOfSubresources = std::span(kOfObjects).first(3);

class CustomPaths {
 public:
  CustomPaths(const OpenApiCustomResource& resource, OpenApiVersion version)
      : resource_(resource), version_(version) {}

  OpenApiNamed Make() {
    const std::string root = fmt::format("/apis/{}/{}/", resource_.group, resource_.version);
    std::string collection = root + resource_.plural;
    if (resource_.namespaced) {
      Emit(collection, {&kList, 1}, "", false);
      collection = root + "namespaces/{namespace}/" + resource_.plural;
    }
    Emit(collection, kOfCollections, "", resource_.namespaced);
    const std::string object = collection + "/{name}";
    Emit(object, kOfObjects, "", resource_.namespaced);
    if (resource_.has_status) Emit(object + "/status", kOfSubresources, "status", resource_.namespaced);
    if (resource_.has_scale) Emit(object + "/scale", kOfSubresources, "scale", resource_.namespaced);
    return std::move(out_);
  }

 private:
  void Emit(std::string path, std::span<const CustomAction> actions, std::string_view subresource,
            bool in_namespace) {
    std::vector<OpenApiOperation> operations;
    for (const CustomAction& action : actions) {
      operations.push_back(Operation(path, action, subresource, in_namespace));
    }
    std::string json = PathItemJson(std::move(operations), version_);
    out_.emplace_back(std::move(path), std::move(json));
  }

  OpenApiOperation Operation(std::string_view path, const CustomAction& action, std::string_view subresource,
                             bool in_namespace) const {
    OpenApiOperation out;
    out.method = action.method;
    out.id = Id(action, subresource, in_namespace);
    out.tag = OpenApiTag(resource_.group, resource_.version);
    out.description = subresource.empty()
                          ? fmt::format("{} {}.", action.description, resource_.kind)
                          : fmt::format("{} {} of the {}.", action.description, subresource, resource_.kind);
    out.parameters = PathParameters(path);
    out.parameters.push_back(PrettyParameter());
    for (OpenApiParameter& parameter : ParametersOf(action.action)) {
      out.parameters.push_back(std::move(parameter));
    }
    const bool scale = subresource == "scale";
    out.body_schema = Schema(action.body, scale);
    out.body_required = action.body != CustomBody::kDeleteOptions;
    out.reply_schema = Schema(action.reply, scale);
    out.consumes = kCustomTypes;
    if (action.body == CustomBody::kPatch) out.consumes = kCustomPatchTypes;
    out.produces = kCustomTypes;
    out.replies = {{200, "OK"}};
    if (action.action == "post" || action.action == "put") out.replies.emplace_back(201, "Created");
    if (action.action == "post" || action.action == "delete") out.replies.emplace_back(202, "Accepted");
    // The kind of the resource, for scale too.
    out.extensions = {{"x-kubernetes-action", Text(action.action)},
                      {"x-kubernetes-group-version-kind",
                       {{"group", Text(resource_.group)},
                        {"kind", Text(resource_.kind)},
                        {"version", Text(resource_.version)}}}};
    return out;
  }

  static boost::json::string_view Text(std::string_view text) { return {text.data(), text.size()}; }

  std::string Id(const CustomAction& action, std::string_view subresource, bool in_namespace) const {
    std::string id =
        fmt::format("{}{}{}{}{}{}{}", action.prefix, OpenApiGroupName(resource_.group),
                    Capitalized(resource_.version), action.action == "deletecollection" ? "Collection" : "",
                    in_namespace ? "Namespaced" : "", resource_.kind, Capitalized(subresource));
    if (resource_.namespaced && !in_namespace) id += "ForAllNamespaces";
    return id;
  }

  // Deleting a collection takes its options from the URL alone, and only those of lists.
  static std::vector<OpenApiParameter> ParametersOf(std::string_view action) {
    if (action == "get") return {ResourceVersionParameter()};
    if (action == "delete") return DeleteParameters();
    if (action == "list" || action == "deletecollection") return ListParameters();
    return WriteParameters(action == "patch");
  }

  std::string Schema(CustomBody body, bool scale) const {
    switch (body) {
      case CustomBody::kNone:
        return "";
      case CustomBody::kObject:
        return scale ? SchemaRef(ScaleType(), version_) : SchemaRef(resource_.schemas.at(0).first, version_);
      case CustomBody::kList:
        return SchemaRef(resource_.schemas.at(1).first, version_);
      case CustomBody::kStatus:
        return SchemaRef(metav1::Status::descriptor(), version_);
      case CustomBody::kPatch:
        return SchemaRef(metav1::Patch::descriptor(), version_);
      case CustomBody::kDeleteOptions:
        return SchemaRef(metav1::DeleteOptions::descriptor(), version_);
    }
    return "";
  }

  const OpenApiCustomResource& resource_;
  const OpenApiVersion version_;
  OpenApiNamed out_;
};

std::string MembersOf(const OpenApiNamed& named) {
  std::string out;
  for (const auto& [name, json] : named) {
    if (!out.empty()) out += ',';
    out.append("\"").append(name).append("\":").append(json);
  }
  return out;
}

}  // namespace

OpenApiFragment CustomOpenApiJson(const OpenApiCustomResource& resource, OpenApiVersion version) {
  return {MembersOf(CustomPaths(resource, version).Make()), MembersOf(resource.schemas)};
}

std::string CustomOpenApiProtobuf(const OpenApiCustomResource& resource, OpenApiVersion version) {
  const OpenApiNamed paths = CustomPaths(resource, version).Make();
  return version == OpenApiVersion::kV2 ? GnosticPartV2(paths, resource.schemas)
                                        : GnosticPartV3(paths, resource.schemas);
}

std::set<const Descriptor*> CustomOpenApiTypes(bool has_scale) {
  std::set<const Descriptor*> types;
  for (const Descriptor* type :
       {metav1::ObjectMeta::descriptor(), metav1::ListMeta::descriptor(), metav1::Status::descriptor(),
        metav1::Patch::descriptor(), metav1::DeleteOptions::descriptor()}) {
    AddReferencedTypes(type, types);
  }
  if (has_scale) AddReferencedTypes(ScaleType(), types);
  return types;
}

OpenApiParts OpenApiV3PartsForCustom(std::string_view document, bool has_scale, const OpenApiFilter& served) {
  return OpenApiV3PartsWith(document, CustomOpenApiTypes(has_scale), served);
}

std::string OpenApiV3ProtobufForCustom(std::string_view document, bool has_scale,
                                       const OpenApiFilter& served) {
  return GnosticDocumentV3(OpenApiV3PartsForCustom(document, has_scale, served).Joined());
}

}  // namespace keelson::api
