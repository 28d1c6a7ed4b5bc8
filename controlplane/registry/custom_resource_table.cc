#include "controlplane/registry/custom_resource_table.h"

#include <set>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::registry {
namespace {

using apiextensions::CustomResource;
using apiextensions::Definition;
using CRD = apiextensionsv1::CustomResourceDefinition;

// With etcd, when the cache of a new resource is filled.
constexpr std::chrono::seconds kPatience{10};

const api::ResourceInfo& Definitions() {
  static const api::ResourceInfo& row = api::ResourceOf<CRD>();
  return row;
}

// Whether the definitions differ in what objects look like to readers.
bool ShowsInObjects(const CRD& before, const CRD& after) {
  if (before.metadata().generation() == after.metadata().generation() &&
      before.metadata().uid() == after.metadata().uid()) {
    return false;
  }
  auto text = [](const CRD& crd) {
    std::string out;
    for (const auto& version : crd.spec().versions()) {
      out += version.name() + '\0' + api::EncodeRaw(version.schema());
      for (const auto& field : version.selectable_fields()) out += field.json_path() + '\0';
    }
    return out;
  };
  return text(before) != text(after);
}

}  // namespace

CustomResource& CustomResourceTable::Take(const storage::ObjectPtr& stored) {
  auto load = [stored] { return std::static_pointer_cast<const CRD>(stored->Decode()); };
  return known_.Update(std::make_shared<const Definition>(*load(), stored->revision(), load));
}

void CustomResourceTable::RefreshObjects(CustomResource& resource, const Definition& before,
                                         const storage::Limits& limits) {
  std::shared_ptr<const Definition> now = resource.definition();
  if (!now || !ShowsInObjects(*before.Load(), *now->Load())) return;
  const api::ResourceInfo& row = resource.Row(now->StorageVersion().name);
  if (Result<> refreshed = store_.Refresh(row, limits); !refreshed) {
    log::Warn("Cannot read custom objects again", {{"crd", now->name()}, {"err", refreshed.error()}});
  }
}

Result<CustomResource*> CustomResourceTable::Find(std::string_view group, std::string_view plural,
                                                  const storage::Limits& limits) {
  const std::string name = std::string(plural) + "." + std::string(group);
  const storage::ObjectPtr stored = store_.Peek(Definitions(), name);
  CustomResource* resource = known_.Find(name);
  if (!stored) {
    if (resource) Forget(name);
    return nullptr;
  }
  std::shared_ptr<const Definition> known = resource ? resource->definition() : nullptr;
  if (!known || known->revision != stored->revision()) {
    MutexLock lock(mutex_);
    resource = &Take(stored);
    if (known) RefreshObjects(*resource, *known, limits);
    known = resource->definition();
  }
  if (known && known->served) {
    KEELSON_RETURN_IF_ERROR(store_.Ensure(resource->Row(known->StorageVersion().name), limits));
  }
  return resource;
}

void CustomResourceTable::Forget(const std::string& name) {
  CustomResource* resource = known_.Find(name);
  if (!resource || store_.Peek(Definitions(), name)) return;
  std::shared_ptr<const Definition> last = resource->definition();
  known_.Remove(name);
  if (last) store_.EndWatches(resource->Row(last->StorageVersion().name));
}

void CustomResourceTable::ForEach(const std::function<void(CustomResource&, const Definition&)>& each) {
  std::set<std::string> present;
  store_.ForEach(Definitions(), [&](const storage::ObjectPtr& stored) {
    const std::string name(stored->name());
    present.insert(name);
    CustomResource* resource = known_.Find(name);
    std::shared_ptr<const Definition> known = resource ? resource->definition() : nullptr;
    if (!known || known->revision != stored->revision()) {
      // Through Find(), so that the objects follow the definition.
      const size_t dot = name.find('.');
      Result<CustomResource*> found =
          Find(std::string_view(name).substr(dot + 1), std::string_view(name).substr(0, dot),
               {SteadyTime::clock::now() + kPatience, {}});
      if (!found) {
        log::Warn("Cannot serve a custom resource", {{"crd", name}, {"err", found.error()}});
        return;
      }
      resource = *found;
      known = resource ? resource->definition() : nullptr;
    }
    if (known && known->served) each(*resource, *known);
  });
  std::vector<std::string> gone;
  known_.ForEach([&](CustomResource& resource) {
    const std::string name = resource.plural + "." + resource.group;
    if (!present.contains(name)) gone.push_back(name);
  });
  for (const std::string& name : gone) Forget(name);
}

const api::ResourceInfo* CustomResourceTable::RowOf(std::string_view group, std::string_view plural,
                                                    std::string_view version, std::string_view kind) {
  const Result<CustomResource*> found = Find(group, plural, {SteadyTime::clock::now() + kPatience, {}});
  if (!found || !*found) return nullptr;
  const std::shared_ptr<const Definition> definition = (*found)->definition();
  if (!definition || !definition->served || definition->kind != kind) return nullptr;
  const apiextensions::Version* one = definition->Find(version);
  return one && one->served ? &(*found)->Row(version) : nullptr;
}

const api::ResourceInfo* CustomResourceTable::FindKind(std::string_view group, std::string_view version,
                                                       std::string_view kind) {
  const std::pair<std::string, std::string> key(group, kind);
  if (const std::shared_ptr<const Kinds> kinds = kinds_.load()) {
    auto known = kinds->find(key);
    const api::ResourceInfo* row =
        known != kinds->end() ? RowOf(group, known->second, version, kind) : nullptr;
    if (row) return row;
  }
  auto kinds = std::make_shared<Kinds>();
  ForEach([&](CustomResource& resource, const Definition& definition) {
    kinds->insert_or_assign({definition.group, definition.kind}, resource.plural);
  });
  kinds_.store(kinds);
  auto found = kinds->find(key);
  return found != kinds->end() ? RowOf(group, found->second, version, kind) : nullptr;
}

}  // namespace keelson::registry
