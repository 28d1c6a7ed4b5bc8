#include "lib/component/logging_options.h"

#include "lib/api/duration.h"
#include "lib/api/quantity.h"
#include "lib/base/log_format.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;

Error Mismatch(const std::string& path, const char* type) {
  return Error(Code::kBadRequest,
               "json: cannot unmarshal value into Go struct field " + path + " of type " + type);
}

std::string Text(const json::string& value) { return {value.data(), value.size()}; }

// Also of limits of a size in bytes: "64Ki", 65536.
Result<> CheckQuantity(const json::value& value, const std::string& path) {
  if (!value.is_string() && !value.is_number()) return Mismatch(path, "resource.QuantityValue");
  const std::string text = value.is_string() ? Text(value.get_string()) : json::serialize(value);
  if (auto amount = api::Amount::Parse(text); !amount) return amount.error().Wrap(path);
  return {};
}

Result<> CheckFormat(const json::value& options, const std::string& path,
                     std::vector<std::string>& problems) {
  if (options.is_null()) return {};
  if (!options.is_object()) return Mismatch(path, "struct");
  for (const auto& member : options.get_object()) {
    const std::string here = path + "." + std::string(member.key());
    if (member.key() != "splitStream" && member.key() != "infoBufferSize") {
      problems.push_back("unknown field \"" + here + "\"");
    } else if (member.value().is_null()) {
      continue;
    } else if (member.key() == "splitStream") {
      if (!member.value().is_bool()) return Mismatch(here, "bool");
    } else {
      RETURN_IF_ERROR(CheckQuantity(member.value(), here));
    }
  }
  return {};
}

Result<> CheckVmodule(const json::value& list, std::vector<std::string>& problems) {
  const std::string path = "logging.vmodule";
  if (!list.is_array()) return Mismatch(path, "slice");
  for (const json::value& item : list.get_array()) {
    if (item.is_null()) continue;
    if (!item.is_object()) return Mismatch(path, "struct");
    for (const auto& member : item.get_object()) {
      const std::string here = path + "." + std::string(member.key());
      if (member.key() == "filePattern") {
        if (!member.value().is_string()) return Mismatch(here, "string");
      } else if (member.key() == "verbosity") {
        if (!member.value().is_int64() || member.value().get_int64() < 0)
          return Mismatch(here, "v1.VerbosityLevel");
      } else {
        problems.push_back("unknown field \"" + here + "\"");
      }
    }
  }
  return {};
}

}  // namespace

Result<> ApplyLogFormat(const std::string& format) {
  if (log::SetFormat(format)) return {};
  return Error(Code::kInvalid, "initialize logging: logging.format: Invalid value: \"" + format +
                                   "\": Unsupported log format");
}

Result<> CheckLoggingOptions(const json::object& logging, std::vector<std::string>& problems) {
  if (const json::value* list = logging.if_contains("vmodule"); list && !list->is_null())
    RETURN_IF_ERROR(CheckVmodule(*list, problems));
  const json::value* options = logging.if_contains("options");
  if (!options || options->is_null()) return {};
  if (!options->is_object()) return Mismatch("logging.options", "struct");
  for (const auto& format : options->get_object()) {
    const std::string path = "logging.options." + std::string(format.key());
    if (format.key() == "json" || format.key() == "text") {
      RETURN_IF_ERROR(CheckFormat(format.value(), path, problems));
    } else {
      problems.push_back("unknown field \"" + path + "\"");
    }
  }
  return {};
}

Result<int64_t> ParseFlushFrequency(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_string()) return api::ParseGoDuration(Text(value.get_string()));
  return Error(Code::kBadRequest, "invalid duration \"" + json::serialize(value) + "\"");
}

}  // namespace keelson::k8s
