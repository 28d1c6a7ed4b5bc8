// Requests in JSON, for kinds that lib/api does not have.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "lib/client/transport.h"

namespace keelson::kubelet {

namespace json = boost::json;

// Sends the request and parses the answer. The error of a status other than 2xx is from the Status object.
Result<json::object> AskJson(client::Transport& transport, client::ApiRequest request);

// An empty object or string if there is no such member.
const json::object& Member(const json::object& object, const char* name);
std::string Text(const json::object& object, const char* name);
// Calls `each` with the objects in the array of that name.
template <typename Each>
void ForEachObject(const json::object& object, const char* name, const Each& each) {
  const json::value* items = object.if_contains(name);
  if (!items || !items->is_array()) return;
  for (const json::value& item : items->get_array()) {
    if (item.is_object()) each(item.get_object());
  }
}

}  // namespace keelson::kubelet
