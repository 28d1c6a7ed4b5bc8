// unity: alone. Only programs that serve OpenAPI pay for it.
// The paths of a group and version: the operations on its resources.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "lib/api/deleted_object.h"
#include "lib/api/openapi/operation.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

constexpr std::string_view kPatchTypes[] = {"application/json-patch+json", "application/merge-patch+json",
                                            "application/strategic-merge-patch+json",
                                            "application/apply-patch+yaml"};
constexpr std::string_view kObjectTypes[] = {"application/json", "application/yaml",
                                             "application/vnd.kubernetes.protobuf"};
constexpr std::string_view kListTypes[] = {
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"};
constexpr std::string_view kLogTypes[] = {"text/plain", "application/json", "application/yaml",
                                          "application/vnd.kubernetes.protobuf"};
constexpr std::string_view kAnything[] = {"*/*"};
constexpr std::string_view kTextSchema = R"({"type":"string"})";

// One operation at a path.
struct Action {
  std::string_view verb;         // of discovery
  std::string_view method;       // of HTTP
  std::string_view action;       // x-kubernetes-action
  std::string_view prefix;       // of the operation's id
  std::string_view description;  // ends where the object's name follows
};
constexpr Action kCollectionActions[] = {
    {"list", "get", "list", "list", "List or watch objects of kind"},
    {"create", "post", "post", "create", "Create an object of kind"},
    {"deletecollection", "delete", "deletecollection", "delete", "Delete a selection of objects of kind"}};
constexpr Action kItemActions[] = {{"get", "get", "get", "read", "Read the"},
                                   {"update", "put", "put", "replace", "Replace the"},
                                   {"patch", "patch", "patch", "patch", "Change parts of the"},
                                   {"delete", "delete", "delete", "delete", "Delete the"}};
constexpr Action kSubresourceActions[] = {{"get", "get", "get", "read", "Read"},
                                          {"update", "put", "put", "replace", "Replace"},
                                          {"patch", "patch", "patch", "patch", "Change parts of"},
                                          {"create", "post", "post", "create", "Create"},
                                          {"delete", "delete", "delete", "delete", "Delete"}};
constexpr Action kWatchList{"watch", "get", "watchlist", "watch", "Watch all objects of kind"};
constexpr Action kWatchOne{"watch", "get", "watch", "watch", "Watch one object of kind"};
// A proxy forwards every method.
constexpr std::string_view kProxyMethods[] = {"get", "put", "post", "delete", "options", "head", "patch"};
constexpr std::string_view kStreamMethods[] = {"get", "post"};

// Where an operation looks for objects; part of its id.
enum class Scope { kOwn, kAllNamespaces };

bool IsConnect(const ResourceInfo& info) { return info.kind.ends_with("Options"); }

const Descriptor* ListOf(const ResourceInfo& info) {
  GroupVersionKind gvk = info.Gvk();
  return FindMessage(gvk.group, gvk.version, gvk.kind + "List");
}

class ResourcePaths {
 public:
  ResourcePaths(const ResourceInfo& info, OpenApiVersion version, const PathVisitor& visit)
      : info_(info), version_(version), visit_(visit) {
    base_ = info.group.empty() ? fmt::format("/api/{}/", info.version)
                               : fmt::format("/apis/{}/{}/", info.group, info.version);
  }

  void Visit() const {
    std::string scope = info_.namespaced ? "namespaces/{namespace}/" : "";
    std::string_view resource = info_.resource;
    if (size_t slash = resource.find('/'); slash != std::string_view::npos) {
      std::string path =
          fmt::format("{}{}{}/{{name}}{}", base_, scope, resource.substr(0, slash), resource.substr(slash));
      if (IsConnect(info_)) return VisitConnections(path);
      return Emit(path, kSubresourceActions);
    }
    std::string path = fmt::format("{}{}{}", base_, scope, resource);
    Emit(path, kCollectionActions);
    Emit(path + "/{name}", kItemActions);
    constexpr Action kListAll[] = {kCollectionActions[0]};
    if (info_.namespaced) Emit(fmt::format("{}{}", base_, resource), kListAll, Scope::kAllNamespaces);
    path = fmt::format("{}watch/{}{}", base_, scope, resource);
    Emit(path, {&kWatchList, 1});
    if (info_.HasVerb("get")) Emit(path + "/{name}", {&kWatchOne, 1});
    if (info_.namespaced) {
      Emit(fmt::format("{}watch/{}", base_, resource), {&kWatchList, 1}, Scope::kAllNamespaces);
    }
  }

 private:
  // Emits those of `actions` that the resource has; no path item if there are none.
  void Emit(const std::string& path, std::span<const Action> actions, Scope scope = Scope::kOwn) const {
    std::vector<OpenApiOperation> operations;
    for (const Action& action : actions) {
      if (info_.HasVerb(action.verb)) operations.push_back(Operation(path, action, scope));
    }
    if (!operations.empty()) visit_(path, PathItemJson(std::move(operations), version_));
  }

  OpenApiOperation Operation(const std::string& path, const Action& action, Scope scope) const {
    OpenApiOperation out = Begin(path, action.method, action.action);
    out.parameters.push_back(PrettyParameter());
    out.description = OperationText(action);
    std::string_view rest = action.action == "deletecollection" ? "Collection" : "";
    out.id = std::string(action.prefix) + GroupVersion() + std::string(rest) + ObjectName(scope);
    if (action.action == "watchlist") out.id += "List";
    if (scope == Scope::kAllNamespaces) out.id += "ForAllNamespaces";
    AddParameters(action, out);
    AddBody(action, out);
    AddReplies(action, out);
    return out;
  }

  OpenApiOperation Begin(const std::string& path, std::string_view method, std::string_view action) const {
    OpenApiOperation out;
    out.method = method;
    out.tag = OpenApiTag(info_.group, info_.version);
    out.parameters = PathParameters(path);
    auto text = [](std::string_view view) { return boost::json::string_view(view.data(), view.size()); };
    out.extensions = {{"x-kubernetes-action", text(action)},
                      {"x-kubernetes-group-version-kind",
                       {{"group", text(info_.kind_group)},
                        {"kind", text(info_.kind)},
                        {"version", text(info_.kind_version)}}}};
    return out;
  }

  void VisitConnections(const std::string& path) const {
    bool proxy = info_.HasVerb("update");
    std::vector<std::string> paths = {path};
    if (proxy) paths.push_back(path + "/{path}");
    for (const std::string& place : paths) {
      std::vector<OpenApiOperation> operations;
      for (std::string_view method : proxy ? std::span<const std::string_view>(kProxyMethods)
                                           : std::span<const std::string_view>(kStreamMethods)) {
        OpenApiOperation out = Begin(place, method, "connect");
        for (OpenApiParameter& option : OptionParameters(info_.descriptor())) {
          out.parameters.push_back(std::move(option));
        }
        out.description = fmt::format("Connect to the {} of the {}.", Subresource(), OwnerKind());
        out.id = "connect" + GroupVersion() + Capitalized(method) + ObjectName(Scope::kOwn) +
                 (place == path ? "" : "WithPath");
        out.produces = kAnything;
        out.reply_schema = kTextSchema;
        out.replies = {{200, "OK"}};
        operations.push_back(std::move(out));
      }
      visit_(place, PathItemJson(std::move(operations), version_));
    }
  }

  std::string GroupVersion() const { return OpenApiGroupName(info_.group) + Capitalized(info_.version); }

  std::string_view Subresource() const {
    size_t slash = info_.resource.find('/');
    return slash == std::string_view::npos ? std::string_view() : info_.resource.substr(slash + 1);
  }

  // "NamespacedPodLog"
  std::string ObjectName(Scope scope) const {
    return (info_.namespaced && scope == Scope::kOwn ? "Namespaced" : "") + OwnerKind() +
           Capitalized(Subresource());
  }

  // The kind of the main resource, which appears in operation ids.
  std::string OwnerKind() const {
    const ResourceInfo* owner =
        FindResource(info_.group, info_.version, info_.resource.substr(0, info_.resource.find('/')));
    return std::string((owner ? *owner : info_).kind);
  }

  std::string OperationText(const Action& action) const {
    std::string_view subresource = Subresource();
    if (subresource.empty()) return fmt::format("{} {}.", action.description, info_.kind);
    return fmt::format("{} the {} of the {}.", action.description, subresource, OwnerKind());
  }

  bool IsLog() const { return info_.resource == "pods/log"; }

  void AddParameters(const Action& action, OpenApiOperation& out) const {
    std::vector<OpenApiParameter> more;
    if (action.action == "list" || action.verb == "watch") more = ListParameters();
    if (action.action == "deletecollection") more = DeleteCollectionParameters();
    if (action.action == "delete") more = DeleteParameters();
    if (action.action == "post" || action.action == "put") more = WriteParameters(false);
    if (action.action == "patch") more = WriteParameters(true);
    if (IsLog()) more = OptionParameters(corev1::PodLogOptions::descriptor());
    out.parameters.insert(out.parameters.end(), more.begin(), more.end());
  }

  void AddBody(const Action& action, OpenApiOperation& out) const {
    out.consumes = kAnything;
    if (action.method == "delete") {
      out.body_schema = SchemaRef(metav1::DeleteOptions::descriptor(), version_);
      out.body_required = false;
    }
    if (action.action == "post" || action.action == "put") {
      out.body_schema = SchemaRef(info_.descriptor(), version_);
    }
    if (action.action == "patch") {
      out.body_schema = SchemaRef(metav1::Patch::descriptor(), version_);
      out.consumes = kPatchTypes;
    }
  }

  void AddReplies(const Action& action, OpenApiOperation& out) const {
    const Descriptor* type = info_.descriptor();
    out.produces = kObjectTypes;
    out.replies = {{200, "OK"}};
    if (action.action == "list") type = ListOf(info_);
    if (action.verb == "watch") type = metav1::WatchEvent::descriptor();
    if (action.action == "list" || action.verb == "watch") out.produces = kListTypes;
    bool deletes = action.action == "delete";
    if (action.action == "deletecollection" || (deletes && !DeleteReturnsObject(info_))) {
      type = metav1::Status::descriptor();
    }
    if (action.method == "post" || action.method == "put" || action.method == "patch") {
      out.replies.emplace_back(201, "Created");
    }
    if (deletes || action.method == "post") out.replies.emplace_back(202, "Accepted");
    if (IsLog()) {
      out.produces = kLogTypes;
      type = nullptr;
    }
    out.reply_schema = type ? SchemaRef(type, version_) : std::string(kTextSchema);
  }

  const ResourceInfo& info_;
  OpenApiVersion version_;
  const PathVisitor& visit_;
  std::string base_;
};

}  // namespace

std::string Capitalized(std::string_view word) {
  std::string out(word);
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

std::string OpenApiGroupName(std::string_view group) {
  constexpr std::string_view kDomain = ".k8s.io";
  if (group.size() > kDomain.size() && group.ends_with(kDomain)) group.remove_suffix(kDomain.size());
  if (group.empty()) return "Core";
  std::string out;
  while (!group.empty()) {
    size_t dot = std::min(group.find('.'), group.size());
    out += Capitalized(group.substr(0, dot));
    group.remove_prefix(std::min(dot + 1, group.size()));
  }
  return out;
}

std::string OpenApiTag(std::string_view group, std::string_view version) {
  std::string out = OpenApiGroupName(group);
  out[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(out[0])));
  if (!version.empty()) out.append("_").append(version);
  return out;
}

void ForEachPath(std::string_view group, std::string_view version, OpenApiVersion form,
                 const OpenApiFilter& served, const PathVisitor& visit) {
  OpenApiOperation discovery;
  discovery.method = "get";
  discovery.id = "get" + OpenApiGroupName(group) + Capitalized(version) + "APIResources";
  discovery.tag = OpenApiTag(group, version);
  discovery.description = "List the resources of the group and version.";
  discovery.consumes = discovery.produces = kObjectTypes;
  discovery.reply_schema = SchemaRef(metav1::APIResourceList::descriptor(), form);
  discovery.replies = {{200, "OK"}};
  visit(group.empty() ? fmt::format("/api/{}/", version) : fmt::format("/apis/{}/{}/", group, version),
        PathItemJson({discovery}, form));
  for (const ResourceInfo& info : Resources()) {
    if (info.group == group && info.version == version && IsServed(served, info)) {
      ResourcePaths(info, form, visit).Visit();
    }
  }
}

std::set<const Descriptor*> TypesOf(std::string_view group, std::string_view version,
                                    const OpenApiFilter& served) {
  std::set<const Descriptor*> types;
  for (const ResourceInfo& info : Resources()) {
    if (info.group != group || info.version != version || IsConnect(info) || !IsServed(served, info)) {
      continue;
    }
    AddReferencedTypes(info.descriptor(), types);
    if (const Descriptor* list = ListOf(info)) AddReferencedTypes(list, types);
  }
  if (types.empty()) return types;
  for (const Descriptor* type :
       {metav1::DeleteOptions::descriptor(), metav1::Patch::descriptor(), metav1::Status::descriptor(),
        metav1::WatchEvent::descriptor(), metav1::APIResourceList::descriptor()}) {
    AddReferencedTypes(type, types);
  }
  return types;
}

}  // namespace keelson::api
