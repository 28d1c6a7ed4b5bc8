#include "lib/client/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace keelson::client {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

Result<> ForEachField(std::string_view message,
                      const std::function<Result<>(int number, std::string_view payload)>& each) {
  const Error malformed(Code::kBadRequest, "malformed protobuf message");
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()), static_cast<int>(message.size()));
  while (uint32_t tag = in.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) return malformed;
      continue;
    }
    uint32_t length = 0;
    if (!in.ReadVarint32(&length)) return malformed;
    size_t start = static_cast<size_t>(in.CurrentPosition());
    if (length > message.size() - start || !in.Skip(static_cast<int>(length))) return malformed;
    RETURN_IF_ERROR(each(WireFormatLite::GetTagFieldNumber(tag), message.substr(start, length)));
  }
  if (static_cast<size_t>(in.CurrentPosition()) != message.size()) return malformed;
  return {};
}

}  // namespace keelson::client
