// The resources that exist and the message type of each: the static part of API discovery.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>

namespace keelson::api {

using google::protobuf::Descriptor;
using google::protobuf::Message;

struct GroupVersionKind {
  std::string group, version, kind;
  // "v1" for the core group, "apps/v1" otherwise.
  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  auto operator<=>(const GroupVersionKind&) const = default;
};

// "apps/v1" -> {"apps", "v1"}; "v1" -> {"", "v1"}.
std::pair<std::string, std::string> SplitApiVersion(std::string_view api_version);

inline constexpr std::string_view kCustomMessage = "keelson.api.custom.CustomObject";

// One row of the API: a resource ("pods") or a subresource ("pods/status"). Rows live as long as the
// process; those of custom resources live as long as the API server that made them.
struct ResourceInfo {
  std::string_view group, version, resource;
  std::string_view singular;                        // empty for subresources
  std::string_view kind_group, kind_version, kind;  // of a request's body
  std::string_view message;                         // full protobuf name
  bool namespaced;
  std::string_view verbs, short_names, categories;  // comma separated, in discovery's order
  std::string_view etcd_prefix;                     // "/registry/pods/"; empty if not stored

  std::string ApiVersion() const;  // of the resource's group and version
  GroupVersionKind Gvk() const;    // of the body
  // Null when the program does not link the type: nothing in it names the type or calls FindMessage().
  const Descriptor* descriptor() const;
  const Message& prototype() const;                            // default instance
  bool IsCustom() const { return message == kCustomMessage; }  // a CustomResourceDefinition describes it
  bool IsSubresource() const { return resource.find('/') != std::string_view::npos; }
  bool HasVerb(std::string_view verb) const;
  // "deployments.apps", "pods": the resource's name in messages.
  std::string GroupResource() const;
};

// All rows, in discovery's order: the core group first, then groups and resources by name.
std::span<const ResourceInfo> Resources();

// Null when there is none. `resource` may be a subresource: "pods/status".
const ResourceInfo* FindResource(std::string_view group, std::string_view version, std::string_view resource);
// The main resource (never a subresource) of a kind; null when there is none.
const ResourceInfo* FindKind(std::string_view group, std::string_view version, std::string_view kind);
// The main resource of a message type: ResourceOf(corev1::Pod::descriptor()). Aborts if there is none.
const ResourceInfo& ResourceOf(const Descriptor* descriptor);
template <typename T>
const ResourceInfo& ResourceOf() {
  return ResourceOf(T::descriptor());
}

// The kind of any API message, resource or not (Status, DeleteOptions, PodList). Group and version come
// from the message's package. Kinds in meta.v1 count as "v1".
GroupVersionKind GvkOf(const Descriptor* descriptor);
// The message type of a kind, or null: ("apps", "v1", "DeploymentList"). Makes the program link all types.
const Descriptor* FindMessage(std::string_view group, std::string_view version, std::string_view kind);
// Whether the type is that of all custom resources (custom_object.h). Its objects do not know their kind.
bool IsCustom(const Descriptor* descriptor);
// A new, empty object of the type.
std::unique_ptr<Message> NewObject(const Descriptor* descriptor);

}  // namespace keelson::api
