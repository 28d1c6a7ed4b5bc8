#include "controlplane/storage/versions/definition_conversion.h"

#include "lib/base/text.h"

namespace keelson::storage {
namespace {

namespace v1 = api::apiextensions::v1;
namespace v1beta1 = api::apiextensions::v1beta1;
using Columns = google::protobuf::RepeatedPtrField<v1beta1::CustomResourceColumnDefinition>;
using Fields = google::protobuf::RepeatedPtrField<v1::SelectableField>;

void CopyColumns(const Columns& from, v1::CustomResourceDefinitionVersion& to) {
  to.clear_additional_printer_columns();
  for (const v1beta1::CustomResourceColumnDefinition& column : from) {
    v1::CustomResourceColumnDefinition& out = *to.add_additional_printer_columns();
    out.set_name(column.name());
    out.set_type(column.type());
    if (column.has_format()) out.set_format(column.format());
    if (column.has_description()) out.set_description(column.description());
    if (column.has_priority()) out.set_priority(column.priority());
    out.set_json_path(column.json_path());
  }
}

void CopyVersion(const v1beta1::CustomResourceDefinitionVersion& from,
                 v1::CustomResourceDefinitionVersion& to) {
  to.set_name(from.name());
  to.set_served(from.served());
  to.set_storage(from.storage());
  if (from.has_deprecated()) to.set_deprecated(from.deprecated());
  if (from.has_deprecation_warning()) to.set_deprecation_warning(from.deprecation_warning());
  if (from.has_schema()) *to.mutable_schema() = from.schema();
  if (from.has_subresources()) *to.mutable_subresources() = from.subresources();
  CopyColumns(from.additional_printer_columns(), to);
  *to.mutable_selectable_fields() = from.selectable_fields();
}

// What the spec has for all versions takes the place of what they have.
void CopyShared(const v1beta1::CustomResourceDefinitionSpec& from, v1::CustomResourceDefinitionVersion& to) {
  if (from.has_validation()) *to.mutable_schema() = from.validation();
  if (from.has_subresources()) *to.mutable_subresources() = from.subresources();
  if (!from.additional_printer_columns().empty()) CopyColumns(from.additional_printer_columns(), to);
  if (!from.selectable_fields().empty()) *to.mutable_selectable_fields() = from.selectable_fields();
}

void CopyConversion(const v1beta1::CustomResourceConversion& from, v1::CustomResourceConversion& to) {
  to.set_strategy(from.strategy());
  auto versions = from.conversion_review_versions();
  if (from.strategy() == "Webhook" && versions.empty()) *versions.Add() = "v1beta1";
  if (!from.has_webhook_client_config() && versions.empty()) return;
  v1::WebhookConversion& webhook = *to.mutable_webhook();
  *webhook.mutable_conversion_review_versions() = versions;
  if (!from.has_webhook_client_config()) return;
  *webhook.mutable_client_config() = from.webhook_client_config();
  if (v1::WebhookClientConfig& config = *webhook.mutable_client_config();
      config.has_service() && !config.service().has_port()) {
    config.mutable_service()->set_port(443);
  }
}

void CopySpec(const v1beta1::CustomResourceDefinitionSpec& from, v1::CustomResourceDefinitionSpec& to) {
  to.set_group(from.group());
  *to.mutable_names() = from.names();
  v1::CustomResourceDefinitionNames& names = *to.mutable_names();
  if (names.singular().empty()) names.set_singular(Lower(names.kind()));
  if (names.list_kind().empty() && !names.kind().empty()) names.set_list_kind(names.kind() + "List");
  to.set_scope(from.scope().empty() ? "Namespaced" : from.scope());
  for (const v1beta1::CustomResourceDefinitionVersion& version : from.versions()) {
    CopyVersion(version, *to.add_versions());
  }
  if (from.versions().empty() && !from.version().empty()) {
    v1::CustomResourceDefinitionVersion& only = *to.add_versions();
    only.set_name(from.version());
    only.set_served(true);
    only.set_storage(true);
  }
  for (v1::CustomResourceDefinitionVersion& version : *to.mutable_versions()) CopyShared(from, version);
  to.mutable_conversion()->set_strategy("None");
  if (from.has_conversion()) CopyConversion(from.conversion(), *to.mutable_conversion());
  if (!from.has_preserve_unknown_fields() || from.preserve_unknown_fields()) {
    to.set_preserve_unknown_fields(true);
  }
}

}  // namespace

apiextensionsv1::CustomResourceDefinition ToV1(const apiextensionsv1beta1::CustomResourceDefinition& from) {
  apiextensionsv1::CustomResourceDefinition to;
  if (from.has_metadata()) *to.mutable_metadata() = from.metadata();
  CopySpec(from.spec(), *to.mutable_spec());
  if (from.has_status()) *to.mutable_status() = from.status();
  if (!to.status().stored_versions().empty()) return to;
  for (const apiextensionsv1::CustomResourceDefinitionVersion& version : to.spec().versions()) {
    if (!version.storage()) continue;
    to.mutable_status()->add_stored_versions(version.name());
    break;
  }
  return to;
}

}  // namespace keelson::storage
