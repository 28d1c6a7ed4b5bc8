// What custom resources add to the OpenAPI documents, as of the CustomResourceDefinitions in the watch cache. A version is
// published from the moment that its definition is established until it is no longer served or the definition is being
// deleted.
//
// Each version of each definition is one part of a document, made and compressed when a request needs it, and kept until
// the definition changes or no request has used it for minutes.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/storage/object.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/http/gzip_pieces.h"

namespace keelson::apiserver {

// The forms of documents.
enum class OpenApiForm { kV2Json, kV2Protobuf, kV3Json, kV3Protobuf };
inline constexpr size_t kOpenApiForms = 4;

// A part of a document. In protobuf all of it is in `paths`.
struct CustomFragment {
  http::GzipPiece paths, schemas;
};

// A definition whose resource is published.
class PublishedDefinition {  // thread safe
 public:
  using CustomResourceDefinition = api::apiextensions::v1::CustomResourceDefinition;
  struct Version {
    std::string name;
    bool has_scale = false;
  };

  PublishedDefinition(const CustomResourceDefinition& definition, storage::ObjectPtr stored);

  const std::string name, group;
  const std::string identity;           // another one whenever the documents may have changed
  const std::vector<Version> versions;  // that are served

  // Another revision of the same identity.
  void Replace(storage::ObjectPtr stored);
  // What a version adds to documents of a form.
  std::shared_ptr<const CustomFragment> Fragment(size_t version, OpenApiForm form, SteadyTime now);
  // Drops parts that were last used before then.
  void DropIdle(SteadyTime then);
  // The bytes of parts that are kept.
  size_t kept_bytes() const;

 private:
  struct Kept {
    std::shared_ptr<const CustomFragment> fragment;
    SteadyTime used;
  };
  std::shared_ptr<const CustomFragment> Make(const Version& version, OpenApiForm form) const
      KEELSON_REQUIRES(mutex_);

  mutable Mutex mutex_;
  storage::ObjectPtr stored_ KEELSON_GUARDED_BY(mutex_);
  std::vector<std::array<Kept, kOpenApiForms>> kept_ KEELSON_GUARDED_BY(mutex_);  // by version
};

// Null: the definition publishes nothing.
std::shared_ptr<PublishedDefinition> Publish(const storage::ObjectPtr& stored);

class CustomOpenApi {  // thread safe
 public:
  // Calls its argument with all definitions.
  using Definitions = std::function<void(const std::function<void(const storage::ObjectPtr&)>&)>;
  struct Part {
    std::shared_ptr<PublishedDefinition> definition;
    size_t version;  // of PublishedDefinition::versions
  };
  struct Published {
    std::string identity;                                // of all; empty: nothing is published
    std::vector<Part> all;                               // of version 2
    std::map<std::string, std::vector<Part>> documents;  // of version 3, by path: apis/GROUP/VERSION
  };

  // `definitions` empty: there are none.
  CustomOpenApi(Definitions definitions, Clock& clock)
      : definitions_(std::move(definitions)), clock_(clock) {}

  // As of now.
  std::shared_ptr<const Published> Current();
  std::shared_ptr<const CustomFragment> Fragment(const Part& part, OpenApiForm form) const {
    return part.definition->Fragment(part.version, form, clock_.SteadyNow());
  }
  // Drops parts that were not used for that long.
  void DropIdle(std::chrono::nanoseconds idle);

 private:
  struct Known {
    storage::ObjectPtr stored;
    std::shared_ptr<PublishedDefinition> published;  // null: it publishes nothing
  };
  void Take(const std::vector<storage::ObjectPtr>& definitions) KEELSON_REQUIRES(mutex_);

  const Definitions definitions_;
  Clock& clock_;
  Mutex mutex_;
  std::vector<storage::ObjectPtr> seen_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, Known, std::less<>> known_ KEELSON_GUARDED_BY(mutex_);  // by name
  std::shared_ptr<const Published> published_ KEELSON_GUARDED_BY(mutex_) = std::make_shared<Published>();
};

}  // namespace keelson::apiserver
