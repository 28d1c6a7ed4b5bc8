#include "lib/client/testing/fake_custom.h"

#include <algorithm>

#include "lib/api/codec/codec.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"
#include "lib/base/text.h"

namespace keelson::client {
namespace {

constexpr std::string_view kVerbs = "delete,deletecollection,get,list,patch,create,update,watch";

void AddRow(const api::ResourceInfo& row, api::apidiscovery::v2::APIGroupDiscoveryList& list) {
  if (row.group.empty() || row.IsSubresource()) return;
  auto groups = list.mutable_items();
  auto group = std::find_if(groups->begin(), groups->end(),
                            [&](const auto& one) { return one.metadata().name() == row.group; });
  api::apidiscovery::v2::APIGroupDiscovery& in = group == groups->end() ? *groups->Add() : *group;
  in.mutable_metadata()->set_name(std::string(row.group));
  auto versions = in.mutable_versions();
  auto version = std::find_if(versions->begin(), versions->end(),
                              [&](const auto& one) { return one.version() == row.version; });
  api::apidiscovery::v2::APIVersionDiscovery& of = version == versions->end() ? *versions->Add() : *version;
  of.set_version(std::string(row.version));
  auto& resource = *of.add_resources();
  resource.set_resource(std::string(row.resource));
  resource.mutable_response_kind()->set_kind(std::string(row.kind));
  resource.set_scope(row.namespaced ? "Namespaced" : "Cluster");
  for (std::string_view verb : SplitWords(row.verbs, ",")) resource.add_verbs(std::string(verb));
}

}  // namespace

void FakeCustom::Serve(const FakeApi::Custom& custom) {
  const api::ResourceInfo* first = Find(custom.group, custom.resource);
  std::erase_if(rows_, [&](const api::ResourceInfo* row) {
    return row->group == custom.group && row->resource == custom.resource;
  });
  for (const std::string& version : custom.versions) {
    // Objects, watches and the log refer to the first row.
    if (first && first->version == version && first->namespaced == custom.namespaced) {
      rows_.push_back(first);
      continue;
    }
    Owned& owned = owned_.emplace_back(Owned{custom.group, version, custom.resource, custom.kind, {}});
    api::ResourceInfo& row = owned.row;
    row.group = row.kind_group = owned.group;
    row.version = row.kind_version = owned.version;
    row.resource = owned.resource;
    row.kind = owned.kind;
    row.message = api::kCustomMessage;
    row.namespaced = custom.namespaced;
    row.verbs = kVerbs;
    rows_.push_back(&row);
  }
}

const api::ResourceInfo* FakeCustom::Find(std::string_view group, std::string_view resource) const {
  auto found = std::find_if(rows_.begin(), rows_.end(), [&](const api::ResourceInfo* row) {
    return row->group == group && row->resource == resource;
  });
  return found == rows_.end() ? nullptr : *found;
}

ApiResponse FakeCustom::Discovery() const {
  api::apidiscovery::v2::APIGroupDiscoveryList list;
  for (const api::ResourceInfo& row : api::Resources()) AddRow(row, list);
  for (const api::ResourceInfo* row : rows_) AddRow(*row, list);
  return {200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
          api::EncodeJson(list, {"apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"})};
}

}  // namespace keelson::client
