// Inside lib/api only: which item of a list is which.
#pragma once

#include <string>

#include "lib/api/apply/typed.h"

namespace keelson::api {

namespace json = boost::json;

// The step of an item of a list that is a set or has keys; the error says why there is none.
Result<std::string> ItemStep(const Shape& list, const json::value& item);

}  // namespace keelson::api
