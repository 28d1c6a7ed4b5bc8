#include "csi/local/model/ephemeral.h"

#include <algorithm>

#include "lib/api/quantity.h"

namespace keelson::csi::local {

namespace {

constexpr char kEphemeral[] = "csi.storage.k8s.io/ephemeral", kSize[] = "size";
constexpr std::string_view kIdPrefix = "csi-";
constexpr size_t kIdDigits = 64;

Result<int64_t> BytesOf(const std::string& text) {
  const auto amount = api::Amount::Parse(text);
  if (!amount || amount->Value() <= 0) {
    return Error(Code::kInvalid, "attribute size: \"" + text + "\" is no positive quantity");
  }
  return amount->Value();
}

}  // namespace

bool IsEphemeral(const Strings& context) {
  const auto found = context.find(kEphemeral);
  return found != context.end() && found->second == "true";
}

bool IsEphemeralId(const std::string& id) {
  const std::string_view text = id;
  if (text.size() != kIdPrefix.size() + kIdDigits || text.substr(0, kIdPrefix.size()) != kIdPrefix) {
    return false;
  }
  return std::all_of(text.begin() + kIdPrefix.size(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<EphemeralVolume> ParseEphemeral(const Strings& context, const v1::VolumeCapability& capability) {
  if (capability.has_block()) return Error(Code::kInvalid, "an ephemeral volume is no block device");
  Strings parameters = context;
  v1::CapacityRange range;
  if (const auto size = parameters.find(kSize); size != parameters.end()) {
    KEELSON_ASSIGN_OR_RETURN(const int64_t bytes, BytesOf(size->second));
    range.set_required_bytes(bytes);
    parameters.erase(kSize);
  }
  EphemeralVolume out;
  KEELSON_ASSIGN_OR_RETURN(out.parameters, ParseParameters(parameters));
  google::protobuf::RepeatedPtrField<v1::VolumeCapability> capabilities;
  *capabilities.Add() = capability;
  KEELSON_ASSIGN_OR_RETURN(out.capacity, DecideCapacity(range, LeastCapacity(capabilities)));
  return out;
}

}  // namespace keelson::csi::local
