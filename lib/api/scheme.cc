#include "lib/api/scheme.h"

#include <cstdlib>
#include <memory>
#include <unordered_map>

#include "lib/api/resource_table.h"
#include "lib/base/log.h"

namespace keelson::api {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::MessageFactory;

struct Index {
  std::unordered_map<std::string, const ResourceInfo*> by_resource, by_kind;
  std::unordered_map<std::string_view, const ResourceInfo*> by_message;

  static std::string Key(std::string_view a, std::string_view b, std::string_view c) {
    std::string key(a);
    (key += '|') += b;
    (key += '|') += c;
    return key;
  }

  Index() {
    for (const ResourceInfo& row : Resources()) {
      by_resource.emplace(Key(row.group, row.version, row.resource), &row);
      if (row.IsSubresource()) continue;
      by_kind.emplace(Key(row.kind_group, row.kind_version, row.kind), &row);
      by_message.emplace(row.message, &row);
    }
  }
};

const Index& TheIndex() {
  static const Index* index = new Index;
  return *index;
}

template <typename Map>
auto Lookup(const Map& map, std::string_view a, std::string_view b, std::string_view c) ->
    typename Map::mapped_type {
  auto it = map.find(Index::Key(a, b, c));
  return it == map.end() ? nullptr : it->second;
}

}  // namespace

std::pair<std::string, std::string> SplitApiVersion(std::string_view api_version) {
  auto slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", std::string(api_version)};
  return {std::string(api_version.substr(0, slash)), std::string(api_version.substr(slash + 1))};
}

std::string ResourceInfo::ApiVersion() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

GroupVersionKind ResourceInfo::Gvk() const {
  return {std::string(kind_group), std::string(kind_version), std::string(kind)};
}

const Descriptor* ResourceInfo::descriptor() const {
  return DescriptorPool::generated_pool()->FindMessageTypeByName(std::string(message));
}

const Message& ResourceInfo::prototype() const {
  return *MessageFactory::generated_factory()->GetPrototype(descriptor());
}

bool ResourceInfo::HasVerb(std::string_view verb) const {
  for (size_t start = 0; start <= verbs.size();) {
    size_t end = std::min(verbs.find(',', start), verbs.size());
    if (verbs.substr(start, end - start) == verb) return true;
    start = end + 1;
  }
  return false;
}

std::string ResourceInfo::GroupResource() const {
  std::string name(resource.substr(0, resource.find('/')));
  return group.empty() ? name : name + "." + std::string(group);
}

std::span<const ResourceInfo> Resources() { return {kResourceTable, kResourceTableSize}; }

const ResourceInfo* FindResource(std::string_view group, std::string_view version,
                                 std::string_view resource) {
  return Lookup(TheIndex().by_resource, group, version, resource);
}

const ResourceInfo* FindKind(std::string_view group, std::string_view version, std::string_view kind) {
  return Lookup(TheIndex().by_kind, group, version, kind);
}

const ResourceInfo& ResourceOf(const Descriptor* descriptor) {
  auto it = TheIndex().by_message.find(descriptor->full_name());
  if (it == TheIndex().by_message.end()) {
    log::Error("Message type is no API resource", {{"type", descriptor->full_name()}});
    std::abort();
  }
  return *it->second;
}

std::unique_ptr<Message> NewObject(const Descriptor* descriptor) {
  return std::unique_ptr<Message>(MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
}

}  // namespace keelson::api
