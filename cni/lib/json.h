// Reads configuration fields from Boost.JSON, with errors that name the field.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "cni/lib/error.h"

namespace keelson::cni {

// Field names match in any case, as in every Go plugin: containerd sends "HostPort" and "IngressRate". An
// absent or null field gives the fallback; a field of another type is kDecodingFailure.
Outcome<std::string> GetString(const boost::json::object& json, std::string_view field);
Outcome<bool> GetBool(const boost::json::object& json, std::string_view field, bool fallback = false);
Outcome<int> GetInt(const boost::json::object& json, std::string_view field, int fallback = 0);
Outcome<uint64_t> GetUnsigned(const boost::json::object& json, std::string_view field);
Outcome<std::vector<std::string>> GetStrings(const boost::json::object& json, std::string_view field);
// Null when absent.
Outcome<const boost::json::object*> GetObject(const boost::json::object& json, std::string_view field);
Outcome<const boost::json::array*> GetArray(const boost::json::object& json, std::string_view field);
// The objects in an array; empty when absent.
Outcome<std::vector<const boost::json::object*>> GetObjects(const boost::json::object& json,
                                                            std::string_view field);
// `runtimeConfig`: the runtime's values for capabilities that the configuration declares; null when absent.
inline Outcome<const boost::json::object*> RuntimeConfig(const boost::json::object& config) {
  return GetObject(config, "runtimeConfig");
}
// `args.cni`: an older way to pass such values; null when absent.
Outcome<const boost::json::object*> CniArgs(const boost::json::object& config);
Outcome<boost::json::object> ParseJson(std::string_view text, std::string_view what);

}  // namespace keelson::cni
