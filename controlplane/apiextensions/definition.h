// What the API server needs of a CustomResourceDefinition, per revision of it. Immutable and thread safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"
#include "lib/k8s/schema/json_path.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson {
namespace apiextensionsv1 = api::apiextensions::v1;
}

namespace keelson::apiextensions {

// Reads the definition again: its schemas are compiled when somebody needs them, not before.
using DefinitionLoader = std::function<std::shared_ptr<const apiextensionsv1::CustomResourceDefinition>()>;

// One version of a definition.
class Version {
 public:
  struct Column {
    std::string name, type, format, description, source;  // source: the path as text
    int32_t priority = 0;
    k8s::JsonPath path;
  };
  struct Scale {
    std::string spec_path, status_path, selector_path;  // .spec.replicas; the last one may be empty
  };

  Version(const apiextensionsv1::CustomResourceDefinition& definition,
          const apiextensionsv1::CustomResourceDefinitionVersion& version, DefinitionLoader loader);

  const std::string name;
  const bool served, storage;
  const bool has_status;
  const std::optional<Scale> scale;
  const std::string deprecation_warning;             // empty: not deprecated
  const std::vector<std::string> selectable_fields;  // without the leading dot: spec.color

  // The compiled schema. Null when it cannot be compiled, which validation excludes for new definitions: then
  // nothing is known of the objects, and all of them is kept.
  std::shared_ptr<const k8s::StructuralSchema> Schema() const;
  // Of additional printer columns; the default is the age. Compiled on first use.
  const std::vector<Column>& Columns() const;

 private:
  const DefinitionLoader loader_;
  mutable Mutex mutex_;
  mutable bool compiled_ KEELSON_GUARDED_BY(mutex_) = false;
  mutable std::shared_ptr<const k8s::StructuralSchema> schema_ KEELSON_GUARDED_BY(mutex_);
  mutable std::unique_ptr<const std::vector<Column>> columns_ KEELSON_GUARDED_BY(mutex_);
};

class Definition {
 public:
  // `revision`: of the stored object.
  Definition(const apiextensionsv1::CustomResourceDefinition& definition, int64_t revision,
             DefinitionLoader loader);

  const int64_t revision;
  const std::string uid, group, plural;
  // As accepted (status.acceptedNames); as wanted while nothing is accepted.
  const std::string singular, kind, list_kind;
  const std::vector<std::string> short_names, categories;
  const bool namespaced, preserve_unknown_fields;
  // Whether the API serves the resource: its names are accepted, or once were. Discovery shows established ones.
  const bool served, established;
  const bool terminating;  // from its deletion on: nothing is created any more
  const bool converts_by_webhook;
  const std::vector<std::shared_ptr<const Version>> versions;

  std::string name() const { return plural + "." + group; }
  // Null: there is no such version.
  const Version* Find(std::string_view version) const;
  const Version& StorageVersion() const;
  // The object itself.
  std::shared_ptr<const apiextensionsv1::CustomResourceDefinition> Load() const { return loader_(); }

 private:
  const DefinitionLoader loader_;
};

// Whether a condition of the definition has status True.
bool IsConditionTrue(const apiextensionsv1::CustomResourceDefinition& definition, std::string_view type);

}  // namespace keelson::apiextensions
