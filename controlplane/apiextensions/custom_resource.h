// Custom resources as rows of the API, beside the static table of lib/api/scheme.h.
//
// A CustomResource stands for one plural name, kind and scope; its rows keep their address for as long as the table
// lives, whatever becomes of the definition, because caches, watches and requests refer to them. What the definition
// says at present is behind definition().
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "controlplane/apiextensions/definition.h"
#include "lib/api/scheme.h"
#include "lib/base/mutex.h"

namespace keelson::apiextensions {

class CustomResource;

struct CustomRow : api::ResourceInfo {
  CustomResource* owner;
  const CustomRow* main;  // itself, unless this is a subresource
};

// The row as a custom resource's; null: the row is one of the static table.
const CustomRow* CustomOf(const api::ResourceInfo& info);

class Converter;
class CustomResources;

class CustomResource {  // thread safe
 public:
  CustomResource(const Definition& definition, const CustomResources& table);
  CustomResource(const CustomResource&) = delete;
  CustomResource& operator=(const CustomResource&) = delete;

  const std::string group, plural, kind, list_kind;
  const bool namespaced;
  const std::string etcd_prefix;  // /registry/GROUP/PLURAL/

  // The row of a version, made on first use whether the definition has that version or not: stored objects may be
  // of versions that are gone. `subresource`: "", "status" or "scale".
  const CustomRow& Row(std::string_view version, std::string_view subresource = "");
  // Null: there is no definition at present.
  std::shared_ptr<const Definition> definition() const { return definition_.load(); }
  // The version of a row in the present definition; null when there is none.
  std::shared_ptr<const Version> VersionOf(const api::ResourceInfo& row) const;

  // For strategy Webhook; null: the server has none.
  std::shared_ptr<Converter> converter() const;

  void Set(std::shared_ptr<const Definition> definition) { definition_.store(std::move(definition)); }
  bool Fits(const Definition& definition) const;

 private:
  struct OwnedRow {
    std::string version, resource;
    CustomRow row;
  };
  const CustomResources& table_;
  Mutex mutex_;
  std::deque<OwnedRow> rows_ KEELSON_GUARDED_BY(mutex_);
  std::atomic<std::shared_ptr<const Definition>> definition_;
};

// The custom resources of an API server, by name (PLURAL.GROUP).
class CustomResources {  // thread safe
 public:
  // Before the first request.
  void SetConverter(std::shared_ptr<Converter> converter) { converter_.store(std::move(converter)); }
  std::shared_ptr<Converter> converter() const { return converter_.load(); }

  // The present definition of that name, and the resource that it describes.
  CustomResource& Update(std::shared_ptr<const Definition> definition);
  void Remove(const std::string& name);
  // Null: no definition of that name is known.
  CustomResource* Find(const std::string& name) const;
  // Those that have a definition, by name.
  void ForEach(const std::function<void(CustomResource&)>& each) const;

 private:
  std::atomic<std::shared_ptr<Converter>> converter_;
  mutable Mutex mutex_;
  std::map<std::string, CustomResource*> present_ KEELSON_GUARDED_BY(mutex_);
  // All that were ever there: at most one for each name, kind and scope.
  std::deque<CustomResource> all_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiextensions
