#include "controlplane/apiserver/handlers/custom_openapi.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiextensions/definition.h"
#include "lib/api/openapi/custom.h"
#include "lib/k8s/schema/open_api.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

using CRD = PublishedDefinition::CustomResourceDefinition;

metrics::Family& v2_changes = metrics::Counter(
    "apiextensions_openapi_v2_regeneration_count",
    "Counter of OpenAPI v2 spec regeneration count broken down by causing CRD name and reason.",
    {"crd", "reason"});
metrics::Family& v3_changes = metrics::Counter(
    "apiextensions_openapi_v3_regeneration_count",
    "Counter of OpenAPI v3 spec regeneration count broken down by group, version, causing CRD and reason.",
    {"crd", "group", "version", "reason"});

// Counts the difference between two states of a definition; null: it publishes nothing.
void CountChange(const PublishedDefinition* before, const PublishedDefinition* after) {
  if (before == after) return;
  const PublishedDefinition& any = after ? *after : *before;
  v2_changes.With({any.name, !after ? "remove" : before ? "update" : "add"}).Increment();
  const auto has = [](const PublishedDefinition* one, const std::string& version) {
    return one && std::any_of(one->versions.begin(), one->versions.end(),
                              [&](const auto& served) { return served.name == version; });
  };
  if (before) {
    for (const auto& version : before->versions) {
      const char* reason = has(after, version.name) ? "update" : "remove";
      v3_changes.With({any.name, any.group, version.name, reason}).Increment();
    }
  }
  if (!after) return;
  for (const auto& version : after->versions) {
    if (!has(before, version.name)) v3_changes.With({any.name, any.group, version.name, "add"}).Increment();
  }
}

bool IsPublished(const CRD& crd) {
  return apiextensions::IsConditionTrue(crd, "Established") && !crd.metadata().has_deletion_timestamp();
}

std::vector<PublishedDefinition::Version> ServedVersions(const CRD& crd) {
  std::vector<PublishedDefinition::Version> out;
  for (const auto& version : crd.spec().versions()) {
    // Requests for this name reach the built-in resource.
    const bool shadowed = api::FindResource(crd.spec().group(), version.name(), crd.spec().names().plural());
    if (version.served() && !shadowed) out.push_back({version.name(), version.subresources().has_scale()});
  }
  return out;
}

api::OpenApiCustomResource Describe(const CRD& crd, std::string_view version, api::OpenApiVersion open_api) {
  const auto& spec = crd.spec();
  api::OpenApiCustomResource out{spec.group(),
                                 std::string(version),
                                 spec.names().plural(),
                                 spec.names().kind(),
                                 spec.scope() == "Namespaced",
                                 false,
                                 false,
                                 {}};
  for (const auto& one : spec.versions()) {
    if (one.name() != version) continue;
    out.has_status = one.subresources().has_status();
    out.has_scale = one.subresources().has_scale();
  }
  for (k8s::PublishedSchema& schema : k8s::PublishSchemas(crd, version, open_api)) {
    out.schemas.emplace_back(std::move(schema.name), std::move(schema.json));
  }
  return out;
}

}  // namespace

PublishedDefinition::PublishedDefinition(const CRD& definition, storage::ObjectPtr stored)
    : name(definition.metadata().name()),
      group(definition.spec().group()),
      identity(
          fmt::format("{} {} {}\n", name, definition.metadata().uid(), definition.metadata().generation())),
      versions(ServedVersions(definition)),
      stored_(std::move(stored)),
      kept_(versions.size()) {}

void PublishedDefinition::Replace(storage::ObjectPtr stored) {
  MutexLock lock(mutex_);
  stored_ = std::move(stored);
}

std::shared_ptr<const CustomFragment> PublishedDefinition::Fragment(size_t version, OpenApiForm form,
                                                                    SteadyTime now) {
  MutexLock lock(mutex_);
  Kept& kept = kept_.at(version)[static_cast<size_t>(form)];
  if (!kept.fragment) kept.fragment = Make(versions.at(version), form);
  kept.used = now;
  return kept.fragment;
}

std::shared_ptr<const CustomFragment> PublishedDefinition::Make(const Version& version,
                                                                OpenApiForm form) const {
  const bool v2 = form == OpenApiForm::kV2Json || form == OpenApiForm::kV2Protobuf;
  const auto open_api = v2 ? api::OpenApiVersion::kV2 : api::OpenApiVersion::kV3;
  const auto crd = std::static_pointer_cast<const CRD>(stored_->Decode());
  const api::OpenApiCustomResource resource = Describe(*crd, version.name, open_api);
  auto out = std::make_shared<CustomFragment>();
  if (form == OpenApiForm::kV2Protobuf || form == OpenApiForm::kV3Protobuf) {
    out->paths = http::CompressPiece(api::CustomOpenApiProtobuf(resource, open_api));
  } else {
    const api::OpenApiFragment text = api::CustomOpenApiJson(resource, open_api);
    out->paths = http::CompressPiece(text.paths);
    out->schemas = http::CompressPiece(text.schemas);
  }
  return out;
}

void PublishedDefinition::DropIdle(SteadyTime then) {
  MutexLock lock(mutex_);
  for (auto& forms : kept_) {
    for (Kept& kept : forms) {
      if (kept.used <= then) kept.fragment = nullptr;
    }
  }
}

size_t PublishedDefinition::kept_bytes() const {
  MutexLock lock(mutex_);
  size_t bytes = 0;
  for (const auto& forms : kept_) {
    for (const Kept& kept : forms) {
      if (!kept.fragment) continue;
      bytes += kept.fragment->paths.deflated.capacity() + kept.fragment->schemas.deflated.capacity();
    }
  }
  return bytes;
}

std::shared_ptr<PublishedDefinition> Publish(const storage::ObjectPtr& stored) {
  const auto crd = std::static_pointer_cast<const CRD>(stored->Decode());
  if (!IsPublished(*crd)) return nullptr;
  auto out = std::make_shared<PublishedDefinition>(*crd, stored);
  return out->versions.empty() ? nullptr : out;
}

std::shared_ptr<const CustomOpenApi::Published> CustomOpenApi::Current() {
  MutexLock lock(mutex_);
  if (!definitions_) return published_;
  bool same = true;
  size_t count = 0;
  definitions_([&](const storage::ObjectPtr& object) KEELSON_REQUIRES(mutex_) {
    same = same && count < seen_.size() && seen_[count] == object;
    ++count;
  });
  if (same && count == seen_.size()) return published_;
  std::vector<storage::ObjectPtr> now;
  definitions_([&](const storage::ObjectPtr& object) { now.push_back(object); });
  Take(now);
  seen_ = std::move(now);
  return published_;
}

void CustomOpenApi::Take(const std::vector<storage::ObjectPtr>& definitions) {
  std::map<std::string, Known, std::less<>> now;
  auto published = std::make_shared<Published>();
  for (const storage::ObjectPtr& stored : definitions) {
    Known known;
    if (auto before = known_.find(stored->name()); before != known_.end()) known = before->second;
    if (known.stored != stored) {
      std::shared_ptr<PublishedDefinition> next = Publish(stored);
      if (next && known.published && next->identity == known.published->identity) {
        known.published->Replace(stored);
      } else {
        CountChange(known.published.get(), next.get());
        known.published = std::move(next);
      }
      known.stored = stored;
    }
    if (known.published) {
      published->identity += known.published->identity;
      for (size_t i = 0; i < known.published->versions.size(); ++i) {
        const Part part{known.published, i};
        published->all.push_back(part);
        published
            ->documents[fmt::format("apis/{}/{}", known.published->group, known.published->versions[i].name)]
            .push_back(part);
      }
    }
    now.emplace(stored->name(), std::move(known));
  }
  for (const auto& [name, known] : known_) {
    if (!now.contains(name)) CountChange(known.published.get(), nullptr);
  }
  known_ = std::move(now);
  published_ = std::move(published);
}

void CustomOpenApi::DropIdle(std::chrono::nanoseconds idle) {
  const std::shared_ptr<const Published> published = Current();
  const SteadyTime then = clock_.SteadyNow() - idle;
  const PublishedDefinition* last = nullptr;
  for (const Part& part : published->all) {
    if (part.definition.get() != last) part.definition->DropIdle(then);
    last = part.definition.get();
  }
}

}  // namespace keelson::apiserver
