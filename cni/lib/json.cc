#include "cni/lib/json.h"

#include <strings.h>

#include <boost/json/parse.hpp>

namespace keelson::cni {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

bool SameButForCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

const value* Find(const object& json, std::string_view field) {
  const value* found = json.if_contains(field);
  for (auto it = json.begin(); !found && it != json.end(); ++it) {
    if (SameButForCase(it->key(), field)) found = &it->value();
  }
  return found && !found->is_null() ? found : nullptr;
}

CniError WrongType(std::string_view field, std::string_view wanted) {
  return {kDecodingFailure, "field " + std::string(field) + " is not " + std::string(wanted), ""};
}

}  // namespace

Outcome<std::string> GetString(const object& json, std::string_view field) {
  const value* found = Find(json, field);
  if (!found) return std::string();
  if (!found->is_string()) return WrongType(field, "a string");
  return std::string(found->get_string());
}

Outcome<bool> GetBool(const object& json, std::string_view field, bool fallback) {
  const value* found = Find(json, field);
  if (!found) return fallback;
  if (!found->is_bool()) return WrongType(field, "a boolean");
  return found->get_bool();
}

Outcome<int> GetInt(const object& json, std::string_view field, int fallback) {
  const value* found = Find(json, field);
  if (!found) return fallback;
  if (!found->is_int64() || found->get_int64() != static_cast<int>(found->get_int64())) {
    return WrongType(field, "an integer");
  }
  return static_cast<int>(found->get_int64());
}

Outcome<uint64_t> GetUnsigned(const object& json, std::string_view field) {
  const value* found = Find(json, field);
  if (!found) return uint64_t{0};
  if (found->is_uint64()) return found->get_uint64();
  if (found->is_int64() && found->get_int64() >= 0) return static_cast<uint64_t>(found->get_int64());
  return WrongType(field, "an integer from 0 on");
}

Outcome<std::vector<std::string>> GetStrings(const object& json, std::string_view field) {
  std::vector<std::string> out;
  KEELSON_ASSIGN_OR_RETURN(const array* items, GetArray(json, field));
  if (!items) return out;
  for (const value& item : *items) {
    if (!item.is_string()) return WrongType(field, "a list of strings");
    out.emplace_back(item.get_string());
  }
  return out;
}

Outcome<const object*> GetObject(const object& json, std::string_view field) {
  const value* found = Find(json, field);
  if (!found) return nullptr;
  if (!found->is_object()) return WrongType(field, "an object");
  return &found->get_object();
}

Outcome<const array*> GetArray(const object& json, std::string_view field) {
  const value* found = Find(json, field);
  if (!found) return nullptr;
  if (!found->is_array()) return WrongType(field, "a list");
  return &found->get_array();
}

Outcome<std::vector<const object*>> GetObjects(const object& json, std::string_view field) {
  std::vector<const object*> out;
  KEELSON_ASSIGN_OR_RETURN(const array* items, GetArray(json, field));
  if (!items) return out;
  for (const value& item : *items) {
    if (!item.is_object()) return WrongType(field, "a list of objects");
    out.push_back(&item.get_object());
  }
  return out;
}

Outcome<const object*> CniArgs(const object& config) {
  KEELSON_ASSIGN_OR_RETURN(const object* args, GetObject(config, "args"));
  if (!args) return nullptr;
  return GetObject(*args, "cni");
}

Outcome<object> ParseJson(std::string_view text, std::string_view what) {
  boost::system::error_code failed;
  value parsed = boost::json::parse(text, failed);
  if (failed) return CniError{kDecodingFailure, "parse " + std::string(what) + ": " + failed.message(), ""};
  if (!parsed.is_object()) return CniError{kDecodingFailure, std::string(what) + " is not a JSON object", ""};
  return std::move(parsed.get_object());
}

}  // namespace keelson::cni
