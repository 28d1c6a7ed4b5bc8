#include "controlplane/apiextensions/definition.h"

#include <algorithm>
#include <charconv>
#include <compare>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.h"

namespace keelson::apiextensions {
namespace {

using CRD = apiextensionsv1::CustomResourceDefinition;

// The name of the accepted names, or the wanted one.
template <typename Get>
std::string AcceptedOr(const CRD& crd, Get get) {
  const std::string& accepted = get(crd.status().accepted_names());
  return accepted.empty() ? get(crd.spec().names()) : accepted;
}

const apiextensionsv1::CustomResourceDefinitionNames& NamesOf(const CRD& crd) {
  return crd.status().accepted_names().plural().empty() ? crd.spec().names() : crd.status().accepted_names();
}

std::vector<std::string> Copy(const google::protobuf::RepeatedPtrField<std::string>& list) {
  return {list.begin(), list.end()};
}

std::vector<std::shared_ptr<const Version>> VersionsOf(const CRD& crd, const DefinitionLoader& loader) {
  std::vector<std::shared_ptr<const Version>> out;
  for (const auto& version : crd.spec().versions()) {
    out.push_back(std::make_shared<const Version>(crd, version, loader));
  }
  return out;
}

std::optional<Version::Scale> ScaleOf(const apiextensionsv1::CustomResourceDefinitionVersion& version) {
  if (!version.subresources().has_scale()) return std::nullopt;
  const auto& scale = version.subresources().scale();
  return Version::Scale{scale.spec_replicas_path(), scale.status_replicas_path(),
                        scale.label_selector_path()};
}

// What a version's name says of its age: v2 > v1 > v1beta2 > v1beta1 > v1alpha1, and all of these > other names.
struct Maturity {
  int stage = -1;  // 2: generally available, 1: beta, 0: alpha, -1: a name of another form
  int major = 0, minor = 0;
  auto operator<=>(const Maturity&) const = default;
};

bool TakeNumber(std::string_view& text, int& number) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

Maturity MaturityOf(std::string_view name) {
  Maturity out;
  if (!name.starts_with('v')) return {};
  name.remove_prefix(1);
  if (!TakeNumber(name, out.major)) return {};
  if (name.empty()) return {2, out.major, 0};
  for (const auto& [word, stage] : {std::pair<std::string_view, int>{"beta", 1}, {"alpha", 0}}) {
    if (!name.starts_with(word)) continue;
    name.remove_prefix(word.size());
    if (!TakeNumber(name, out.minor) || !name.empty()) return {};
    return {stage, out.major, out.minor};
  }
  return {};
}

bool IsOlder(std::string_view a, std::string_view b) {
  const Maturity one = MaturityOf(a), other = MaturityOf(b);
  return one.stage < 0 && other.stage < 0 ? a > b : one < other;
}

// Names the newest version that is served and not deprecated, if it is newer.
std::string WarningOf(const CRD& crd, const apiextensionsv1::CustomResourceDefinitionVersion& version) {
  if (!version.deprecated()) return "";
  if (version.has_deprecation_warning()) return version.deprecation_warning();
  const std::string& group = crd.spec().group();
  const std::string& kind = crd.spec().names().kind();
  std::string_view newest = version.name();
  for (const auto& other : crd.spec().versions()) {
    if (other.served() && !other.deprecated() && IsOlder(newest, other.name())) newest = other.name();
  }
  std::string warning = fmt::format("{}/{} {} is deprecated", group, version.name(), kind);
  if (newest != version.name()) warning += fmt::format("; use {}/{} {}", group, newest, kind);
  return warning;
}

std::vector<std::string> SelectableOf(const apiextensionsv1::CustomResourceDefinitionVersion& version) {
  std::vector<std::string> out;
  for (const auto& field : version.selectable_fields()) {
    std::string_view path = field.json_path();
    if (path.starts_with('.')) path.remove_prefix(1);
    out.emplace_back(path);
  }
  return out;
}

const apiextensionsv1::CustomResourceDefinitionVersion* FindIn(const CRD& crd, std::string_view name) {
  for (const auto& version : crd.spec().versions()) {
    if (version.name() == name) return &version;
  }
  return nullptr;
}

}  // namespace

bool IsConditionTrue(const CRD& definition, std::string_view type) {
  const auto& conditions = definition.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const auto& one) { return one.type() == type && one.status() == "True"; });
}

Version::Version(const CRD& definition, const apiextensionsv1::CustomResourceDefinitionVersion& version,
                 DefinitionLoader loader)
    : name(version.name()),
      served(version.served()),
      storage(version.storage()),
      has_status(version.subresources().has_status()),
      scale(ScaleOf(version)),
      deprecation_warning(WarningOf(definition, version)),
      selectable_fields(SelectableOf(version)),
      loader_(std::move(loader)) {}

std::shared_ptr<const k8s::StructuralSchema> Version::Schema() const {
  MutexLock lock(mutex_);
  if (compiled_) return schema_;
  compiled_ = true;
  std::shared_ptr<const CRD> crd = loader_();
  const auto* version = FindIn(*crd, name);
  if (!version || !version->schema().has_open_apiv3_schema()) return nullptr;
  auto compiled = k8s::StructuralSchema::Compile(version->schema().open_apiv3_schema());
  if (compiled) {
    schema_ = std::move(*compiled);
  } else {
    log::Warn("Cannot compile the schema of a custom resource",
              {{"crd", crd->metadata().name()}, {"version", name}, {"err", compiled.error()}});
  }
  return schema_;
}

const std::vector<Version::Column>& Version::Columns() const {
  MutexLock lock(mutex_);
  if (columns_) return *columns_;
  auto columns = std::make_unique<std::vector<Column>>();
  std::shared_ptr<const CRD> crd = loader_();
  const auto* version = FindIn(*crd, name);
  auto add = [&](std::string column_name, std::string type, std::string format, std::string description,
                 int32_t priority, std::string_view path) {
    auto parsed = k8s::JsonPath::Parse(path);
    if (!parsed) {
      log::Warn("Cannot read the path of a printer column",
                {{"crd", crd->metadata().name()}, {"column", column_name}, {"err", parsed.error()}});
      return;
    }
    columns->push_back({std::move(column_name), std::move(type), std::move(format), std::move(description),
                        std::string(path), priority, std::move(*parsed)});
  };
  if (version) {
    for (const auto& column : version->additional_printer_columns()) {
      add(column.name(), column.type(), column.format(), column.description(), column.priority(),
          column.json_path());
    }
  }
  if (!version || version->additional_printer_columns().empty()) {
    add("Age", "date", "", "", 0, ".metadata.creationTimestamp");
  }
  columns_ = std::move(columns);
  return *columns_;
}

Definition::Definition(const CRD& crd, int64_t of_revision, DefinitionLoader loader)
    : revision(of_revision),
      uid(crd.metadata().uid()),
      group(crd.spec().group()),
      plural(crd.spec().names().plural()),
      singular(NamesOf(crd).singular()),
      kind(AcceptedOr(crd, [](const auto& names) -> const std::string& { return names.kind(); })),
      list_kind(AcceptedOr(crd, [](const auto& names) -> const std::string& { return names.list_kind(); })),
      short_names(Copy(NamesOf(crd).short_names())),
      categories(Copy(NamesOf(crd).categories())),
      namespaced(crd.spec().scope() == "Namespaced"),
      preserve_unknown_fields(crd.spec().preserve_unknown_fields()),
      served(IsConditionTrue(crd, "NamesAccepted") || IsConditionTrue(crd, "Established")),
      established(IsConditionTrue(crd, "Established")),
      terminating(crd.metadata().has_deletion_timestamp() || IsConditionTrue(crd, "Terminating")),
      converts_by_webhook(crd.spec().conversion().strategy() == "Webhook"),
      versions(VersionsOf(crd, loader)),
      loader_(std::move(loader)) {}

const Version* Definition::Find(std::string_view version) const {
  for (const auto& one : versions) {
    if (one->name == version) return one.get();
  }
  return nullptr;
}

const Version& Definition::StorageVersion() const {
  for (const auto& one : versions) {
    if (one->storage) return *one;
  }
  return *versions.front();
}

}  // namespace keelson::apiextensions
