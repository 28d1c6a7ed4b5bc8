#include "controlplane/apiextensions/custom_resource.h"

#include "controlplane/apiextensions/converter.h"

#include <algorithm>

namespace keelson::apiextensions {
namespace {

constexpr std::string_view kVerbs = "delete,deletecollection,get,list,patch,create,update,watch";
constexpr std::string_view kSubresourceVerbs = "get,patch,update";

}  // namespace

const CustomRow* CustomOf(const api::ResourceInfo& info) {
  // Every row outside of the static table is one of ours; those of scale have a built-in type.
  const auto table = api::Resources();
  const std::less<const api::ResourceInfo*> before;
  const bool is_static = !before(&info, table.data()) && before(&info, table.data() + table.size());
  return is_static ? nullptr : static_cast<const CustomRow*>(&info);
}

CustomResource::CustomResource(const Definition& definition, const CustomResources& table)
    : group(definition.group),
      plural(definition.plural),
      kind(definition.kind),
      list_kind(definition.list_kind),
      namespaced(definition.namespaced),
      etcd_prefix("/registry/" + group + "/" + plural + "/"),
      table_(table) {}

std::shared_ptr<Converter> CustomResource::converter() const { return table_.converter(); }

bool CustomResource::Fits(const Definition& definition) const {
  return group == definition.group && plural == definition.plural && kind == definition.kind &&
         list_kind == definition.list_kind && namespaced == definition.namespaced;
}

const CustomRow& CustomResource::Row(std::string_view version, std::string_view subresource) {
  const CustomRow* main = subresource.empty() ? nullptr : &Row(version);
  MutexLock lock(mutex_);
  for (const OwnedRow& owned : rows_) {
    const size_t slash = owned.resource.find('/');
    const std::string_view sub =
        slash == std::string::npos ? std::string_view() : std::string_view(owned.resource).substr(slash + 1);
    if (owned.version == version && sub == subresource) return owned.row;
  }
  OwnedRow& owned = rows_.emplace_back();
  owned.version = version;
  owned.resource = plural;
  if (main) owned.resource.append("/").append(subresource);
  CustomRow& row = owned.row;
  const bool scale = subresource == "scale";
  row.group = group;
  row.version = owned.version;
  row.resource = owned.resource;
  row.kind_group = scale ? std::string_view("autoscaling") : group;
  row.kind_version = scale ? std::string_view("v1") : owned.version;
  row.kind = scale ? std::string_view("Scale") : kind;
  row.message = scale ? std::string_view("keelson.api.autoscaling.v1.Scale") : api::kCustomMessage;
  row.namespaced = namespaced;
  row.verbs = main ? kSubresourceVerbs : kVerbs;
  if (!main) row.etcd_prefix = etcd_prefix;
  row.owner = this;
  row.main = main ? main : &row;
  return row;
}

std::shared_ptr<const Version> CustomResource::VersionOf(const api::ResourceInfo& row) const {
  std::shared_ptr<const Definition> present = definition();
  if (!present) return nullptr;
  for (const auto& version : present->versions) {
    if (version->name == row.version) return version;
  }
  return nullptr;
}

CustomResource& CustomResources::Update(std::shared_ptr<const Definition> definition) {
  MutexLock lock(mutex_);
  CustomResource*& present = present_[definition->name()];
  if (!present || !present->Fits(*definition)) {
    if (present) present->Set(nullptr);
    auto found = std::find_if(all_.begin(), all_.end(),
                              [&](const CustomResource& one) { return one.Fits(*definition); });
    present = found != all_.end() ? &*found : &all_.emplace_back(*definition, *this);
  }
  present->Set(std::move(definition));
  return *present;
}

void CustomResources::Remove(const std::string& name) {
  MutexLock lock(mutex_);
  auto found = present_.find(name);
  if (found == present_.end()) return;
  found->second->Set(nullptr);
  present_.erase(found);
}

CustomResource* CustomResources::Find(const std::string& name) const {
  MutexLock lock(mutex_);
  auto found = present_.find(name);
  return found == present_.end() ? nullptr : found->second;
}

void CustomResources::ForEach(const std::function<void(CustomResource&)>& each) const {
  std::vector<CustomResource*> all;
  {
    MutexLock lock(mutex_);
    for (const auto& entry : present_) all.push_back(entry.second);
  }
  for (CustomResource* one : all) each(*one);
}

}  // namespace keelson::apiextensions
