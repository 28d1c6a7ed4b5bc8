#include "controlplane/storage/wire.h"

#include <algorithm>
#include <optional>

#include "lib/api/codec/codec.h"

namespace keelson::storage {
namespace {

constexpr int kMetadata = 1;                       // of any object
constexpr int kResourceVersion = 6, kLabels = 11;  // of ObjectMeta
constexpr int kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;

// One field of a message; `all` is tag and value as they stand, `payload` the inside of bytes fields.
struct Field {
  int number = 0, type = 0;
  std::string_view all, payload;
};

bool ReadVarint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (in.empty()) return false;
    auto byte = static_cast<uint8_t>(in[0]);
    in.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Takes the next field off `in`; nullopt on malformed bytes. `in` must not be empty.
std::optional<Field> NextField(std::string_view& in) {
  Field field;
  std::string_view start = in;
  uint64_t tag = 0, value = 0;
  if (!ReadVarint(in, tag) || (tag >> 3) == 0 || (tag >> 3) > 0x1fffffff) return std::nullopt;
  field.number = static_cast<int>(tag >> 3);
  field.type = static_cast<int>(tag & 7);
  size_t skip = 0;
  switch (field.type) {
    case kVarint:
      if (!ReadVarint(in, value)) return std::nullopt;
      break;
    case kFixed64:
      skip = 8;
      break;
    case kFixed32:
      skip = 4;
      break;
    case kLength:
      if (!ReadVarint(in, value) || value > in.size()) return std::nullopt;
      field.payload = in.substr(0, value);
      skip = value;
      break;
    default:
      return std::nullopt;
  }
  if (skip > in.size()) return std::nullopt;
  in.remove_prefix(skip);
  field.all = start.substr(0, start.size() - in.size());
  return field;
}

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

size_t BytesFieldSize(size_t payload) { return 1 + VarintSize(payload) + payload; }  // field numbers below 16

Error Malformed() { return Error(Code::kInternal, "malformed object bytes"); }

// Fields in number order, as the library itself would write them, so that equal objects have equal bytes.
Result<> AppendMetadata(std::string_view metadata, int64_t revision, std::string& out) {
  std::string value = revision == 0 ? "" : std::to_string(revision);
  bool written = value.empty();
  while (!metadata.empty()) {
    std::optional<Field> field = NextField(metadata);
    if (!field) return Malformed();
    if (!written && field->number > kResourceVersion) {
      AppendBytes(kResourceVersion, value, out);
      written = true;
    }
    if (field->number != kResourceVersion) out += field->all;
  }
  if (!written) AppendBytes(kResourceVersion, value, out);
  return {};
}

}  // namespace

void AppendBytes(int number, std::string_view bytes, std::string& out) {
  AppendVarint(static_cast<uint64_t>(number) << 3 | kLength, out);
  AppendVarint(bytes.size(), out);
  out += bytes;
}

Result<> AppendWithRevision(std::string_view object, int64_t revision, std::string& out) {
  bool written = false;
  std::string metadata;
  for (std::string_view rest = object; !rest.empty();) {
    std::optional<Field> field = NextField(rest);
    if (!field) return Malformed();
    bool is_metadata = field->number == kMetadata && field->type == kLength;
    if (!is_metadata && written) {
      out += field->all;
      continue;
    }
    metadata.clear();
    KEELSON_RETURN_IF_ERROR(
        AppendMetadata(is_metadata ? field->payload : std::string_view(), written ? 0 : revision, metadata));
    if (is_metadata || !metadata.empty()) AppendBytes(kMetadata, metadata, out);
    written = true;
    if (!is_metadata) out += field->all;
  }
  if (!written && revision != 0) {
    KEELSON_RETURN_IF_ERROR(AppendMetadata("", revision, metadata));
    AppendBytes(kMetadata, metadata, out);
  }
  return {};
}

std::string_view MetadataOnly(std::string_view object) {
  while (!object.empty()) {
    std::optional<Field> field = NextField(object);
    if (!field) break;
    if (field->number == kMetadata) return field->all;
  }
  return {};
}

std::vector<std::pair<std::string_view, std::string_view>> FindLabels(std::string_view object) {
  std::vector<std::pair<std::string_view, std::string_view>> labels;
  while (!object.empty()) {
    std::optional<Field> field = NextField(object);
    if (!field) break;
    if (field->number != kMetadata) continue;
    for (std::string_view metadata = field->payload; !metadata.empty();) {
      std::optional<Field> entry = NextField(metadata);
      if (!entry) break;
      if (entry->number != kLabels) continue;
      std::string_view key, value;
      for (std::string_view rest = entry->payload; !rest.empty();) {
        std::optional<Field> part = NextField(rest);
        if (!part) break;
        (part->number == 1 ? key : value) = part->payload;
      }
      labels.emplace_back(key, value);
    }
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

Result<Span> AppendEnvelope(std::string_view api_version, std::string_view kind, std::string_view object,
                            std::optional<int64_t> revision, std::string& out) {
  std::string raw;
  raw.reserve(object.size() + 24);
  if (revision) {
    KEELSON_RETURN_IF_ERROR(AppendWithRevision(object, *revision, raw));
  } else {
    raw = object;
  }
  // runtime.Unknown{typeMeta{apiVersion, kind}, raw, contentEncoding "", contentType ""}
  std::string type_meta;
  AppendBytes(1, api_version, type_meta);
  AppendBytes(2, kind, type_meta);
  out.reserve(out.size() + api::kProtobufMagic.size() + BytesFieldSize(type_meta.size()) +
              BytesFieldSize(raw.size()) + 4);
  out += api::kProtobufMagic;
  AppendBytes(1, type_meta, out);
  AppendBytes(2, raw, out);
  size_t end = out.size();
  AppendBytes(3, "", out);
  AppendBytes(4, "", out);
  return Span{end - raw.size(), raw.size()};
}

}  // namespace keelson::storage
