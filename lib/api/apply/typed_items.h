// Internal to lib/api: identifies the items of a list.
#pragma once

#include <string>

#include "lib/api/apply/typed.h"

namespace keelson::api {

namespace json = boost::json;

// The step of an item in a list that is a set or has keys. An error says why the item has none.
Result<std::string> ItemStep(const Shape& list, const json::value& item);

}  // namespace keelson::api
