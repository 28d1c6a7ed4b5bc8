#include <map>

#include <fmt/format.h>

#include "lib/api/descriptions.h"
#include "lib/api/openapi.h"
#include "lib/api/openapi_parts.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

struct Parameter {
  std::string_view name, type;
};

constexpr Parameter kPretty{"pretty", "string"};
constexpr Parameter kListParameters[] = {{"allowWatchBookmarks", "boolean"},
                                         {"continue", "string"},
                                         {"fieldSelector", "string"},
                                         {"labelSelector", "string"},
                                         {"limit", "integer"},
                                         {"resourceVersion", "string"},
                                         {"resourceVersionMatch", "string"},
                                         {"sendInitialEvents", "boolean"},
                                         {"timeoutSeconds", "integer"},
                                         {"watch", "boolean"}};
constexpr Parameter kWriteParameters[] = {
    {"dryRun", "string"}, {"fieldManager", "string"}, {"fieldValidation", "string"}};
constexpr Parameter kForce{"force", "boolean"};
constexpr Parameter kDeleteParameters[] = {{"dryRun", "string"},
                                           {"gracePeriodSeconds", "integer"},
                                           {"ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"},
                                           {"orphanDependents", "boolean"},
                                           {"propagationPolicy", "string"}};
constexpr std::string_view kPatchTypes[] = {"application/apply-patch+yaml", "application/json-patch+json",
                                            "application/merge-patch+json",
                                            "application/strategic-merge-patch+json"};
constexpr std::string_view kObjectTypes[] = {"application/json", "application/vnd.kubernetes.protobuf",
                                             "application/yaml"};

// One thing that can be done at a path.
struct Action {
  std::string_view verb;         // of discovery
  std::string_view method;       // of HTTP
  std::string_view action;       // x-kubernetes-action
  std::string_view prefix;       // of the operation's id
  std::string_view description;  // up to what it is done to
};
constexpr Action kCollectionActions[] = {{"list", "get", "list", "list", "List or watch objects of kind"},
                                         {"create", "post", "post", "create", "Create an object of kind"},
                                         {"deletecollection", "delete", "deletecollection",
                                          "deleteCollection", "Delete a selection of objects of kind"}};
constexpr Action kItemActions[] = {{"get", "get", "get", "read", "Read the"},
                                   {"update", "put", "put", "replace", "Replace the"},
                                   {"patch", "patch", "patch", "patch", "Change parts of the"},
                                   {"delete", "delete", "delete", "delete", "Delete the"}};
constexpr Action kSubresourceActions[] = {{"get", "get", "get", "read", "Read"},
                                          {"update", "put", "put", "replace", "Replace"},
                                          {"patch", "patch", "patch", "patch", "Change parts of"},
                                          {"create", "post", "post", "create", "Create"},
                                          {"delete", "delete", "delete", "delete", "Delete"}};

// What a parameter is for. Most are fields of the options that are described with the types.
std::string_view ParameterText(std::string_view name) {
  if (name == "pretty") return "Whether JSON is indented for people: true or false.";
  if (name == "name") return "Name of the object.";
  if (name == "namespace") return "Namespace of the objects.";
  for (const Descriptor* options : {metav1::ListOptions::descriptor(), metav1::PatchOptions::descriptor(),
                                    metav1::DeleteOptions::descriptor()}) {
    if (const auto* field = options->FindFieldByCamelcaseName(std::string(name))) return DescriptionOf(field);
  }
  return "";
}

std::string Capitalized(std::string_view word) {
  std::string out(word);
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

// "rbac.authorization.k8s.io", "v1" -> RbacAuthorizationV1; the core group is CoreV1.
std::string GroupVersionName(std::string_view group, std::string_view version) {
  std::string out;
  constexpr std::string_view kDomain = ".k8s.io";
  if (group.size() > kDomain.size() && group.substr(group.size() - kDomain.size()) == kDomain)
    group.remove_suffix(kDomain.size());
  if (group.empty()) out = "Core";
  while (!group.empty()) {
    size_t dot = std::min(group.find('.'), group.size());
    out += Capitalized(group.substr(0, dot));
    group.remove_prefix(std::min(dot + 1, group.size()));
  }
  return out + Capitalized(version);
}

bool IsConnect(const ResourceInfo& info) {
  return info.kind.size() > 7 && info.kind.substr(info.kind.size() - 7) == "Options";
}

const Descriptor* ListOf(const ResourceInfo& info) {
  GroupVersionKind gvk = info.Gvk();
  return FindMessage(gvk.group, gvk.version, gvk.kind + "List");
}

class PathWriter {
 public:
  PathWriter(const ResourceInfo& info, OpenApiVersion version)
      : info_(info), v3_(version == OpenApiVersion::kV3), version_(version) {}

  // The JSON of a path with those of `actions` that the resource has; empty when it has none.
  template <typename Actions>
  std::string Item(const std::string& path, const Actions& actions, std::string_view scope) const {
    std::string members;
    for (const Action& action : actions) {
      if (!info_.HasVerb(action.verb)) continue;
      members +=
          fmt::format("{}\"{}\":{}", members.empty() ? "" : ",", action.method, Operation(action, scope));
    }
    if (members.empty()) return "";
    std::string parameters = ParameterJson(kPretty, "query");
    if (path.find("{name}") != std::string::npos)
      parameters += "," + ParameterJson({"name", "string"}, "path");
    if (path.find("{namespace}") != std::string::npos)
      parameters += "," + ParameterJson({"namespace", "string"}, "path");
    return "{" + members + ",\"parameters\":[" + parameters + "]}";
  }

 private:
  std::string ParameterJson(const Parameter& parameter, std::string_view in) const {
    std::string schema = fmt::format(R"("type":"{}","uniqueItems":true)", parameter.type);
    if (v3_) schema = "\"schema\":{" + schema + "}";
    return fmt::format(R"({{"description":"{}","in":"{}","name":"{}",{}{}}})", ParameterText(parameter.name),
                       in, parameter.name, in == "path" ? "\"required\":true," : "", schema);
  }

  std::string Operation(const Action& action, std::string_view scope) const {
    bool connect = IsConnect(info_);
    std::string parameters, id;
    auto add = [&](const Parameter& parameter) {
      parameters += (parameters.empty() ? "" : ",") + ParameterJson(parameter, "query");
    };
    bool writes = action.action == "post" || action.action == "put" || action.action == "patch";
    if (action.action == "list" || action.action == "deletecollection") {
      for (const Parameter& parameter : kListParameters) add(parameter);
    }
    if (action.action == "delete" || action.action == "deletecollection") {
      for (const Parameter& parameter : kDeleteParameters) add(parameter);
    }
    if (writes && !connect) {
      for (const Parameter& parameter : kWriteParameters) add(parameter);
      if (action.action == "patch") add(kForce);
    }
    id = connect ? "connect" + Capitalized(action.method) : std::string(action.prefix);
    size_t slash = info_.resource.find('/');
    id += GroupVersionName(info_.group, info_.version);
    if (scope != "AllNamespaces" && info_.namespaced) id += "Namespaced";
    id += OwnerKind();
    if (slash != std::string_view::npos) id += Capitalized(info_.resource.substr(slash + 1));
    if (scope == "AllNamespaces") id += "ForAllNamespaces";
    std::string out =
        fmt::format(R"({{"description":"{}.","operationId":"{}",)", OperationText(action, connect), id);
    if (!v3_)
      out +=
          fmt::format(R"("consumes":{},"produces":{},)",
                      action.action == "patch" ? TypeList(kPatchTypes) : "[\"*/*\"]", TypeList(kObjectTypes));
    out += Body(action, connect, parameters);
    if (!parameters.empty()) out += "\"parameters\":[" + parameters + "],";
    out += "\"responses\":" + Responses(action, connect) + ",";
    out += fmt::format(
        R"("x-kubernetes-action":"{}","x-kubernetes-group-version-kind":{{"group":"{}","kind":"{}","version":"{}"}}}})",
        connect ? "connect" : action.action, info_.kind_group, info_.kind, info_.kind_version);
    return out;
  }

  std::string OperationText(const Action& action, bool connect) const {
    size_t slash = info_.resource.find('/');
    if (slash == std::string_view::npos) return fmt::format("{} {}", action.description, info_.kind);
    std::string_view subresource = info_.resource.substr(slash + 1);
    if (connect) return fmt::format("Connect to the {} of the {}", subresource, OwnerKind());
    return fmt::format("{} the {} of the {}", action.description, subresource, OwnerKind());
  }

  // The kind of the main resource, which operations are named after.
  std::string OwnerKind() const {
    const ResourceInfo* owner =
        FindResource(info_.group, info_.version, info_.resource.substr(0, info_.resource.find('/')));
    return std::string((owner ? *owner : info_).kind);
  }

  template <typename Types>
  static std::string TypeList(const Types& types) {
    std::string out;
    for (std::string_view type : types) out += fmt::format("{}\"{}\"", out.empty() ? "" : ",", type);
    return "[" + out + "]";
  }

  template <typename Types>
  std::string Content(const Types& types, const std::string& schema) const {
    std::string out;
    for (std::string_view type : types)
      out += fmt::format("{}\"{}\":{{\"schema\":{}}}", out.empty() ? "" : ",", type, schema);
    return "\"content\":{" + out + "}";
  }

  // Version 3 has a member for the body, version 2 a parameter.
  std::string Body(const Action& action, bool connect, std::string& parameters) const {
    const Descriptor* type = nullptr;
    bool deletes = action.action == "delete" || action.action == "deletecollection";
    if (deletes) type = metav1::DeleteOptions::descriptor();
    if (action.action == "post" || action.action == "put") type = info_.descriptor();
    if (action.action == "patch") type = metav1::Patch::descriptor();
    if (!type || connect) return "";
    std::string schema = SchemaRef(type, version_);
    if (!v3_) {
      parameters = fmt::format(R"({{"in":"body","name":"body",{}"schema":{}}})",
                               deletes ? "" : "\"required\":true,", schema) +
                   (parameters.empty() ? "" : ",") + parameters;
      return "";
    }
    std::string content = action.action == "patch"
                              ? Content(kPatchTypes, schema)
                              : Content(std::initializer_list<std::string_view>{"*/*"}, schema);
    return "\"requestBody\":{" + content + (deletes ? "" : ",\"required\":true") + "},";
  }

  std::string Responses(const Action& action, bool connect) const {
    const Descriptor* type = info_.descriptor();
    if (action.action == "list") type = ListOf(info_);
    if (action.action == "delete" || action.action == "deletecollection") type = metav1::Status::descriptor();
    auto reply = [&](std::string_view code, std::string_view text) {
      std::string schema = connect || !type ? R"({"type":"string"})" : SchemaRef(type, version_);
      std::string payload = v3_ ? Content(kObjectTypes, schema) : "\"schema\":" + schema;
      return fmt::format(R"("{}":{{{},"description":"{}"}})", code, payload, text);
    };
    std::string out = "{" + reply("200", "OK");
    if (!connect && (action.action == "post" || action.action == "put" || action.action == "patch"))
      out += "," + reply("201", "Created");
    if (action.action == "delete" || (action.action == "post" && !connect))
      out += "," + reply("202", "Accepted");
    return out + R"(,"401":{"description":"Unauthorized"}})";
  }

  const ResourceInfo& info_;
  bool v3_;
  OpenApiVersion version_;
};

}  // namespace

void ForEachPath(std::string_view group, std::string_view version, OpenApiVersion form,
                 const std::function<void(const std::string&, const std::string&)>& visit) {
  std::string base =
      group.empty() ? fmt::format("/api/{}/", version) : fmt::format("/apis/{}/{}/", group, version);
  auto emit = [&](const std::string& path, const std::string& json) {
    if (!json.empty()) visit(path, json);
  };
  for (const ResourceInfo& info : Resources()) {
    if (info.group != group || info.version != version) continue;
    PathWriter writer(info, form);
    std::string scope = info.namespaced ? base + "namespaces/{namespace}/" : base;
    if (size_t slash = info.resource.find('/'); slash != std::string_view::npos) {
      std::string path = scope + std::string(info.resource.substr(0, slash)) + "/{name}" +
                         std::string(info.resource.substr(slash));
      emit(path, writer.Item(path, kSubresourceActions, ""));
      continue;
    }
    std::string path = scope + std::string(info.resource);
    emit(path, writer.Item(path, kCollectionActions, ""));
    emit(path + "/{name}", writer.Item(path + "/{name}", kItemActions, ""));
    constexpr Action kListAll[] = {kCollectionActions[0]};
    if (info.namespaced)
      emit(base + std::string(info.resource), writer.Item(base, kListAll, "AllNamespaces"));
  }
}

std::set<const Descriptor*> TypesOf(std::string_view group, std::string_view version) {
  std::set<const Descriptor*> types;
  for (const ResourceInfo& info : Resources()) {
    if (info.group != group || info.version != version || IsConnect(info)) continue;
    AddReferencedTypes(info.descriptor(), types);
    if (const Descriptor* list = ListOf(info)) AddReferencedTypes(list, types);
  }
  if (types.empty()) return types;
  for (const Descriptor* type :
       {metav1::DeleteOptions::descriptor(), metav1::Patch::descriptor(), metav1::Status::descriptor()}) {
    AddReferencedTypes(type, types);
  }
  return types;
}

}  // namespace keelson::api
