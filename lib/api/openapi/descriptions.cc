#include "lib/api/openapi/descriptions.h"

#include <algorithm>

#include "lib/api/openapi/descriptions_table.h"

namespace keelson::api {
namespace {

constexpr std::string_view kPackagePrefix = "keelson.api.";

std::string_view TextOf(const descriptions::Piece& piece) {
  return {descriptions::kText + piece.offset, piece.size};
}

const descriptions::Message* Find(const google::protobuf::Descriptor* message) {
  std::string_view name = message->full_name();
  if (name.substr(0, kPackagePrefix.size()) != kPackagePrefix) return nullptr;
  name.remove_prefix(kPackagePrefix.size());
  const descriptions::Message* end = descriptions::kMessages + descriptions::kMessageCount;
  const descriptions::Message* at = std::lower_bound(
      descriptions::kMessages, end, name, [](const descriptions::Message& entry, std::string_view wanted) {
        return TextOf(entry.name) < wanted;
      });
  return at != end && TextOf(at->name) == name ? at : nullptr;
}

}  // namespace

std::string_view DescriptionOf(const google::protobuf::Descriptor* message) {
  const descriptions::Message* entry = Find(message);
  return entry ? TextOf(descriptions::kPieces[entry->first]) : std::string_view();
}

std::string_view DescriptionOf(const google::protobuf::FieldDescriptor* field) {
  if (field->is_extension()) return "";
  const descriptions::Message* entry = Find(field->containing_type());
  uint32_t index = static_cast<uint32_t>(field->index());
  if (!entry || index >= entry->fields) return "";
  return TextOf(descriptions::kPieces[entry->first + 1 + index]);
}

}  // namespace keelson::api
