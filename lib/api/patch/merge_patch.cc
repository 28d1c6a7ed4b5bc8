#include <boost/json/object.hpp>

#include "lib/api/patch/patch.h"

namespace keelson::api {

namespace json = boost::json;

json::value ApplyMergePatch(json::value document, const json::value& patch) {
  const json::object* changes = patch.if_object();
  if (!changes) return patch;
  if (!document.is_object()) document.emplace_object();
  json::object& object = document.get_object();
  for (const auto& member : *changes) {
    if (member.value().is_null()) {
      object.erase(member.key());
    } else {
      json::value& value = object[member.key()];
      value = ApplyMergePatch(std::move(value), member.value());
    }
  }
  return document;
}

}  // namespace keelson::api
