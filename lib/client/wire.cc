#include "lib/client/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

namespace keelson::client {

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// Field numbers that all objects share.
constexpr int kMetadata = 1, kManagedFields = 17;

struct Field {
  int number = 0;
  bool delimited = false;
  uint64_t value = 0;  // of varints
  // With and without tag and length; `payload` only for length-delimited fields.
  std::string_view whole, payload;
};

template <typename Each>
Result<> Walk(std::string_view message, const Each& each) {
  const Error malformed(Code::kBadRequest, "malformed protobuf message");
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()), static_cast<int>(message.size()));
  size_t begin = 0;
  while (const uint32_t tag = in.ReadTag()) {
    Field field{WireFormatLite::GetTagFieldNumber(tag)};
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t length = 0;
      if (!in.ReadVarint32(&length)) return malformed;
      const size_t start = static_cast<size_t>(in.CurrentPosition());
      if (length > message.size() - start || !in.Skip(static_cast<int>(length))) return malformed;
      field.delimited = true;
      field.payload = message.substr(start, length);
    } else if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_VARINT) {
      if (!in.ReadVarint64(&field.value)) return malformed;
    } else if (!WireFormatLite::SkipField(&in, tag)) {
      return malformed;
    }
    const size_t end = static_cast<size_t>(in.CurrentPosition());
    field.whole = message.substr(begin, end - begin);
    begin = end;
    KEELSON_RETURN_IF_ERROR(each(field));
  }
  if (static_cast<size_t>(in.CurrentPosition()) != message.size()) return malformed;
  return {};
}

void AppendDelimited(std::string& out, int number, const std::string& payload) {
  google::protobuf::io::StringOutputStream end(&out);
  CodedOutputStream coded(&end);
  WireFormatLite::WriteBytes(number, payload, &coded);
}

}  // namespace

Result<> ForEachField(std::string_view message,
                      const std::function<Result<>(int number, std::string_view payload)>& each) {
  return Walk(message, [&](const Field& field) -> Result<> {
    return field.delimited ? each(field.number, field.payload) : Result<>();
  });
}

Result<> ForEachWireField(std::string_view message, const std::function<Result<>(const WireField&)>& each) {
  return Walk(message, [&](const Field& field) -> Result<> {
    return each({field.number, field.payload, field.value});
  });
}

Result<std::string> TrimObject(std::string_view object, bool metadata_only) {
  std::string out;
  KEELSON_RETURN_IF_ERROR(Walk(object, [&](const Field& field) -> Result<> {
    if (field.number != kMetadata || !field.delimited) {
      if (!metadata_only) out += field.whole;
      return {};
    }
    std::string metadata;
    KEELSON_RETURN_IF_ERROR(Walk(field.payload, [&](const Field& inner) -> Result<> {
      if (inner.number != kManagedFields) metadata += inner.whole;
      return {};
    }));
    AppendDelimited(out, kMetadata, metadata);
    return {};
  }));
  out.shrink_to_fit();
  return out;
}

}  // namespace keelson::client
